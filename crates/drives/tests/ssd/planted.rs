//! Tests of the tests: deliberate bugs, each of which some trial must catch by its symptoms.

use std::panic::{AssertUnwindSafe, catch_unwind};

use drives::ssd::Fault;
use drives::ssd::specimens::shape::Shape;

use crate::crash_points::cut_right_after_a_recovery;
use crate::damage::damage_is_kept_apart;
use crate::trial::run_trial;

/// Seeds within which a fault must show.
const WITHIN: u64 = 200;

/// A client read a wrong version: an older one, or one that was never written.
const WRONG_READ: &str = "read: block";
/// A client could not read a block that it had written.
const UNREADABLE: &str = "Unreadable";
/// A power cut left a wrong state: an older version, or an unreadable block.
const WRONG_AFTER_CUT: &str = "after recovery: block";
/// A set did not recover from a power cut.
const LOST_SET: &str = "after recovery: NVM set";
/// A client hangs.
const HANGS: &str = "hangs in";

/// Symptoms of a fault, as substrings of a complaint; one of them must occur. Other harm does not
/// count as catching the fault.
fn symptoms(fault: Fault) -> &'static [&'static str] {
    match fault {
        Fault::MapBeforeProgram | Fault::EraseUnderReaders | Fault::NoReclaim => &[UNREADABLE],
        Fault::ForgetBufferAtWindow | Fault::MoveWithoutRecheck | Fault::StaleCache => {
            &[WRONG_READ]
        }
        Fault::CopyAsNew
        | Fault::ForgetDiscards
        | Fault::EraseBeforeSaved
        | Fault::FlushTooEarly
        | Fault::IgnoreForce
        | Fault::DumpWithoutBuffer
        | Fault::SequenceRestarts => &[WRONG_AFTER_CUT],
        Fault::FillErased => &[WRONG_AFTER_CUT, "was filled up with nothing"],
        Fault::EraseBeforeCopied => &["data would be lost", UNREADABLE],
        Fault::JobsInWindow => &[
            "an internal job is under way in a deterministic window",
            "internal work in a deterministic window",
        ],
        Fault::EraseDumpInUse => &[LOST_SET],
        // The block reads as zeros: no error, and no bytes.
        Fault::LostAsZeros => &["lost: true, version: Ok(None)"],
        Fault::LockdownWithoutRoom => &[HANGS],
    }
}

#[test]
fn every_planted_fault_is_caught_by_what_it_does() {
    for fault in Fault::ALL {
        let caught = (0..WITHIN).any(|seed| {
            let Some(text) = complaint(seed, fault) else { return false };
            let line = text.lines().next().unwrap_or_default();
            let is_it = symptoms(fault).iter().any(|symptom| text.contains(symptom));
            println!("{fault:?}: seed {seed}{}: {line}", if is_it { "" } else { " (not it)" });
            is_it
        });
        assert!(caught, "{fault:?} was not caught as one of {:?}", symptoms(fault));
    }
}

/// Returns a drive that a fault can harm.
fn shape(seed: u64, fault: Fault) -> Shape {
    let mut shape = Shape::of_seed(seed);
    let has_capacitors = &mut shape.profile.buffer.has_capacitors;
    match fault {
        // With capacitors nothing must be saved during operation.
        Fault::EraseBeforeSaved | Fault::FlushTooEarly | Fault::IgnoreForce => {
            *has_capacitors = false;
        }
        // Without capacitors there is no dump at a power cut; a missing dump is no error.
        Fault::DumpWithoutBuffer | Fault::EraseDumpInUse => *has_capacitors = true,
        _ => {}
    }
    shape
}

/// Returns the complaint or panic of the trial of `seed` with `fault` planted.
fn complaint(seed: u64, fault: Fault) -> Option<String> {
    let trial = || match fault {
        // Needs damaged pages, which ordinary trials do not have.
        Fault::LostAsZeros => damage_is_kept_apart(seed, Some(fault)),
        // Needs two power cuts in a row, the first during the erase of a superblock.
        Fault::FillErased => cut_right_after_a_recovery(seed, Some(fault)),
        _ => run_trial(seed, &shape(seed, fault), Some(fault)).map(|_| ()),
    };
    match catch_unwind(AssertUnwindSafe(trial)) {
        Ok(Ok(())) => None,
        Ok(Err(complaint)) => Some(complaint),
        Err(panic) => Some(format!("panic: {}", runtime::planted::panic_text(&*panic))),
    }
}
