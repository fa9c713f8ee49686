//! Checks of the checker: deliberate bugs, each of which some trial must catch, by what it does.

use std::panic::{AssertUnwindSafe, catch_unwind};

use ssd::Fault;

use crate::crash_points::cut_right_after_a_recovery;
use crate::damage::damage_is_kept_apart;
use crate::trial::run_trial;
use ssd::specimens::shape::Shape;

/// Seeds within which a fault must show.
const WITHIN: u64 = 200;

/// A client read what it must not: an older version, or one that nobody wrote.
const WRONG_READ: &str = "read: block";
/// A client could not read what it had written.
const UNREADABLE: &str = "Unreadable";
/// A power cut left what it must not: an older version, or a block that cannot be read.
const WRONG_AFTER_CUT: &str = "after recovery: block";
/// A set did not come back from a power cut.
const LOST_SET: &str = "after recovery: NVM set";
/// Some client waits for ever.
const HANGS: &str = "hangs in";

/// What a fault does, in the words of a complaint: some of these. It counts as caught only by that,
/// and not by what it harms besides.
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
        // The block reads as zeros: without an error, and without bytes.
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

/// A drive that a fault can harm.
fn shape(seed: u64, fault: Fault) -> Shape {
    let mut shape = Shape::of_seed(seed);
    let has_capacitors = &mut shape.profile.buffer.has_capacitors;
    match fault {
        // With capacitors nothing has to be saved at work.
        Fault::EraseBeforeSaved | Fault::FlushTooEarly | Fault::IgnoreForce => {
            *has_capacitors = false;
        }
        // Without them nothing is dumped; a drive may have no dump, and does not miss it.
        Fault::DumpWithoutBuffer | Fault::EraseDumpInUse => *has_capacitors = true,
        _ => {}
    }
    shape
}

/// What went wrong in the trial of `seed` with `fault` planted, as a complaint or a panic.
fn complaint(seed: u64, fault: Fault) -> Option<String> {
    let trial = || match fault {
        // Needs damaged pages, which ordinary trials do not have.
        Fault::LostAsZeros => damage_is_kept_apart(seed, Some(fault)),
        // Needs two power cuts in a row, the first while a superblock is erased.
        Fault::FillErased => cut_right_after_a_recovery(seed, Some(fault)),
        _ => run_trial(seed, &shape(seed, fault), Some(fault)).map(|_| ()),
    };
    match catch_unwind(AssertUnwindSafe(trial)) {
        Ok(Ok(())) => None,
        Ok(Err(complaint)) => Some(complaint),
        Err(panic) => Some(format!("panic: {}", ::planted::panic_text(&*panic))),
    }
}
