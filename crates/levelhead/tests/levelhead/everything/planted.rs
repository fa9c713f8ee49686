//! Planted fault: syncs without effect are detected by the data that is lost.

use faultfs::Ignored;

use super::history;

/// Seeds within which the fault must be detected.
const WITHIN: u64 = 40;
/// The complaints about a store that lost data.
const SYMPTOMS: [&str; 4] = ["explain it", "it does not open", "it cannot be read", "is too short"];

fn are_caught(which: &str, members: usize, ignored: Ignored) {
    for seed in 0..WITHIN {
        let Some(outcome) = history(seed, members, ignored) else { return };
        let Err(text) = outcome else { continue };
        let line = text.lines().next().unwrap_or_default();
        let last = line.rsplit("; ").next().unwrap_or_default();
        println!("syncs {which} over {members}: seed {seed}: {last}");
        let is_it = SYMPTOMS.iter().any(|symptom| line.contains(symptom));
        // A history that also fails without the fault does not count.
        if is_it && history(seed, members, Ignored::default()).is_none_or(|it| it.is_ok()) {
            return;
        }
    }
    panic!("syncs {which} may be left out over {members}, and nobody notices");
}

#[test]
fn syncs_that_do_nothing_are_caught_while_everything_happens() {
    for members in [1, 3] {
        are_caught("of the data", members, Ignored { file: Some("data"), ..Ignored::default() });
        are_caught("of directories", members, Ignored { directories: true, ..Ignored::default() });
    }
}
