//! The command line of this process, as text.

use std::ffi::OsString;

/// Returns the command line of this process, quoted for a shell.
pub(crate) fn command() -> String {
    words(std::env::args_os().skip(1))
}

/// Returns the command that reproduces a page, without the flags that do not change the page.
pub(crate) fn page_command() -> String {
    of_page(std::env::args_os().skip(1))
}

fn of_page(arguments: impl IntoIterator<Item = OsString>) -> String {
    let mut arguments = arguments.into_iter();
    let mut kept = Vec::new();
    while let Some(argument) = arguments.next() {
        let text = argument.to_string_lossy();
        let (flag, value) = text.split_once('=').map_or((&*text, None), |(f, v)| (f, Some(v)));
        match flag {
            "--resume" | "--force" => {}
            "--shard" | "--threads" | "--progress" if value.is_some() => {}
            "--shard" | "--threads" | "--progress" => drop(arguments.next()),
            _ => kept.push(argument),
        }
    }
    words(kept)
}

fn words(arguments: impl IntoIterator<Item = OsString>) -> String {
    let quoted = |argument: String| {
        let is_plain = |c: char| c.is_alphanumeric() || "-_=.,/:%+@".contains(c);
        let is_word = !argument.is_empty() && argument.chars().all(is_plain);
        if is_word { argument } else { format!("'{}'", argument.replace('\'', "'\\''")) }
    };
    let arguments = arguments.into_iter().map(|a| quoted(a.to_string_lossy().into_owned()));
    [String::from("levelhead")].into_iter().chain(arguments).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_of_a_page_is_that_of_the_whole_sweep() {
        let of = |line: &str| of_page(line.split(' ').map(OsString::from));
        let whole = "levelhead bench --design pink,hash --out s";
        for given in [
            "bench --design pink,hash --out s",
            "bench --design pink,hash --resume --out s --threads 2",
            "bench --shard 1/2 --design pink,hash --progress=none --out s",
            "bench --design pink,hash --out s --force --shard=2/2",
        ] {
            assert_eq!(of(given), whole, "{given}");
        }
        assert_eq!(of("bench --set a=b|c"), "levelhead bench --set 'a=b|c'");
    }
}
