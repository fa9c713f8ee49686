//! Completion scripts, man pages and built-in files.

use std::fs;
use std::path::Path;

use super::run::levelhead;

#[test]
fn each_shell_gets_a_script_that_knows_the_commands_and_their_flags() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ended = levelhead(&["completions", shell]);
        assert_eq!(ended.code, Some(0), "{shell}: {}", ended.stderr);
        for word in ["reproduce", "queue-depth", "plm-cache"] {
            assert!(ended.stdout.contains(word), "{shell} is not told of {word}");
        }
    }
    let ended = levelhead(&["completions", "dos"]);
    assert!(ended.code != Some(0) && ended.stderr.contains("bash"), "{}", ended.stderr);
}

#[test]
fn the_program_and_each_command_have_a_page() {
    let program = levelhead(&["man"]).stdout;
    assert!(program.contains(".TH levelhead 1"), "{program}");
    let help = levelhead(&["help"]).stdout;
    let (_, commands) = help.split_once("Commands:\n").expect("it lists them");
    let mut count = 0;
    for line in commands.lines().take_while(|line| !line.is_empty()) {
        let name = line.split_whitespace().next().expect("a name");
        if name == "help" {
            continue;
        }
        assert!(program.contains(&format!("levelhead\\-{name}(1)")), "{name} is not on the page");
        let page = levelhead(&["man", name]).stdout;
        assert!(page.contains(&format!(".TH levelhead-{name} 1")), "{page}");
        count += 1;
    }
    assert!(count > 15, "{help}");
    let ended = levelhead(&["man", "bensh"]);
    assert!(ended.stderr.contains("bench"), "{}", ended.stderr);
}

#[test]
fn built_in_files_are_written_and_mean_the_same() {
    let directory =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("shown-{}", std::process::id()));
    let out = directory.to_str().expect("the path is text");
    let ended = levelhead(&["show", "--out", out]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let files = fs::read_dir(directory.join("design")).expect("designs are there");
    for file in files {
        let path = file.expect("a file").path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
        let shown = levelhead(&["show", name, "--kind", "design"]).stdout;
        assert_eq!(fs::read_to_string(&path).expect("it is text").trim_end(), shown.trim_end());
    }
    let one = directory.join("one");
    let ended = levelhead(&["show", "windows", "--out", one.to_str().expect("the path is text")]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(one.join("job/windows.toml").is_file());
    let _ = fs::remove_dir_all(&directory);
    let ended = levelhead(&["show"]);
    assert!(ended.code != Some(0) && ended.stderr.contains("<NAME>"), "{}", ended.stderr);
}
