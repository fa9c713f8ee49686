//! Runs many trials, by seed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use testkit::fuzz::from_environment;

use crate::fault::Fault;
use crate::shape::Shape;
use crate::tally::Tally;
use crate::trial_of_seed::run_trial;

/// Default number of trials.
const TRIALS: u64 = 60;

/// Runs the trial of a seed. The inner result is the store's error, if any.
///
/// # Errors
/// Returns the text of a panic in the trial.
pub fn outcome(
    seed: u64,
    shape: impl FnOnce() -> Shape,
    fault: Option<Fault>,
) -> Result<Result<Tally, testkit::trial::Complaint>, String> {
    catch_unwind(AssertUnwindSafe(|| run_trial(seed, shape(), fault)))
        .map_err(|panic| format!("panic: {}", runtime::planted::panic_text(&*panic)))
}

/// Runs the trials of `LEVELHEAD_TRIALS` seeds from `LEVELHEAD_FIRST` on, or only that of
/// `LEVELHEAD_SEED`. In a run of at least the default length, each event counter must be above 0 in
/// total, except the counters named in `rare`.
///
/// # Panics
/// Panics if a trial finds an error, or if such a counter is 0.
pub fn agree(shape_of: fn(u64) -> Shape, test: &str, rare: &[&str]) {
    let one = from_environment("LEVELHEAD_SEED");
    let trials = from_environment("LEVELHEAD_TRIALS").unwrap_or(TRIALS);
    let first = from_environment("LEVELHEAD_FIRST").unwrap_or(0);
    let seeds = one.map_or(first..first + trials, |seed| seed..seed + 1);
    let mut total = Tally::default();
    let mut wrong = Vec::new();
    for seed in seeds.clone() {
        let outcome = outcome(seed, || shape_of(seed), None);
        match outcome.and_then(|found| found.map_err(|complaint| complaint.to_string())) {
            Ok(tally) => total.add(&tally),
            Err(text) => {
                println!(
                    "{text}\nreplay: LEVELHEAD_SEED={seed} cargo test -p torture --test trials {test}"
                );
                wrong.push(seed);
            }
        }
    }
    println!("{} trials: {total:?}", seeds.end - seeds.start);
    assert_eq!(wrong, [0; 0], "seeds whose trials found something");
    if one.is_none() && trials >= TRIALS {
        let missing = total.missing();
        assert!(missing.iter().all(|name| rare.contains(name)), "never happened: {missing:?}");
    }
}
