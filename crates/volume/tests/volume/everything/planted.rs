//! Planted faults of notes, recovery and filling (docs/decisions/0056): each is caught by its
//! symptoms.

use volume::Fault;

use super::history;

/// Number of seeds within which a fault must show.
const WITHIN: u64 = 600;

/// The symptoms of each fault: parts of complaint messages. Other complaints do not count.
const FAULTS: [(Fault, &[&str]); 5] = [
    (Fault::AcknowledgeBeforeNote, &["is damaged", "not a round of"]),
    (Fault::BelieveReleased, &["it does not open: the device is gone"]),
    (Fault::BelieveReplaced, &["is damaged", "not a round of", "it does not open"]),
    (Fault::GiveUpAtOnce, &["pages were given up at once"]),
    (Fault::LeaveStrayHeaders, &["it does not open: the device is gone"]),
];

#[test]
fn planted_faults_of_what_is_noted_believed_and_filled_are_caught() {
    for (fault, symptoms) in FAULTS {
        let caught = (0..WITHIN).any(|seed| {
            let Err(text) = history(seed, Some(fault)) else { return false };
            let line = text.lines().next().unwrap_or_default();
            let is_it = symptoms.iter().any(|symptom| line.contains(symptom));
            println!("{fault:?}: seed {seed}: {}", line.split("; ").last().unwrap_or_default());
            // A complaint that also occurs without the fault does not count.
            is_it && history(seed, None).is_ok()
        });
        assert!(caught, "{fault:?} was not caught as one of {symptoms:?}");
    }
}
