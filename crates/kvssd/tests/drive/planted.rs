//! Checks of the checker: deliberate bugs, each of which some trial must catch.

use std::panic::{AssertUnwindSafe, catch_unwind};

use engine::Fault;

use crate::damage::damage_is_caught;
use crate::shape::Shape;
use crate::trial::run_trial;

/// Seeds within which a fault must show.
const WITHIN: u64 = 200;

#[test]
fn every_planted_fault_is_caught() {
    let only = crate::model::number("LEVELHEAD_FAULT");
    let chosen = |n: &usize| only.is_none_or(|only| only == *n as u64);
    for fault in (0..Fault::ALL.len()).filter(chosen).map(|n| Fault::ALL[n]) {
        let caught = (0..WITHIN).find_map(|seed| complaint(seed, fault).map(|text| (seed, text)));
        let (seed, text) = caught.unwrap_or_else(|| panic!("{fault:?} was not caught"));
        println!("{fault:?}: seed {seed}: {}", text.lines().next().unwrap_or_default());
    }
}

/// What went wrong in the trial of `seed` with `fault` planted, as a complaint or a panic.
fn complaint(seed: u64, fault: Fault) -> Option<String> {
    let outcome = catch_unwind(AssertUnwindSafe(|| match fault {
        // Needs damaged pages, which ordinary trials do not have.
        Fault::SkipChecksum => damage_is_caught(seed, Some(fault)),
        Fault::HashSkipsKeyCompare | Fault::HashForgetsDirtyPages | Fault::HashForgetsUprooted => {
            run_trial(seed, &Shape::of_hash_seed(seed), Some(fault)).map(|_| ())
        }
        Fault::TableBeforeLog => {
            run_trial(seed, &Shape::of_restless_hash_log_seed(seed), Some(fault)).map(|_| ())
        }
        Fault::AcknowledgeEarly
        | Fault::TrimLogEarly
        | Fault::TakeTornGroup
        | Fault::ReplayTrimmedLog => {
            run_trial(seed, &Shape::of_restless_log_seed(seed), Some(fault)).map(|_| ())
        }
        _ => run_trial(seed, &Shape::of_seed(seed), Some(fault)).map(|_| ()),
    }));
    match outcome {
        Ok(Ok(())) => None,
        Ok(Err(complaint)) => Some(complaint.to_string()),
        Err(panic) => Some(match panic.downcast_ref::<String>() {
            Some(text) => format!("panic: {text}"),
            None => "panic".to_owned(),
        }),
    }
}
