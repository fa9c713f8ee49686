//! Random trials against the model.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::shape::Shape;
use crate::tally::Tally;
use crate::trial::run_trial;

/// A number from the environment: the one thing a test may be told from outside.
#[expect(clippy::disallowed_methods, reason = "how a person asks for more trials, or for one")]
pub(crate) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The seeds to run: one, or a number of them.
fn seeds(default: u64) -> std::ops::Range<u64> {
    let first = number("LEVELHEAD_FIRST").unwrap_or(0);
    match number("LEVELHEAD_SEED") {
        Some(seed) => seed..seed + 1,
        None => first..first + number("LEVELHEAD_TRIALS").unwrap_or(default),
    }
}

/// Runs trials; `test` is what the replay asks for.
fn model_agrees(
    test: &str,
    default: u64,
    shape_of: impl Fn(u64) -> Shape,
    check: impl Fn(u64, &Shape, &Tally),
) {
    let seeds = seeds(default);
    let mut total = Tally::default();
    for seed in seeds.clone() {
        let replay =
            format!("replay: LEVELHEAD_SEED={seed} cargo test -p kvssd --test drive {test}");
        let trial = AssertUnwindSafe(|| {
            let shape = shape_of(seed);
            let tally = run_trial(seed, &shape, None).unwrap_or_else(|error| panic!("{error}"));
            check(seed, &shape, &tally);
            tally
        });
        let tally = catch_unwind(trial).unwrap_or_else(|panic| {
            eprintln!("{replay}");
            resume_unwind(panic)
        });
        total.add(&tally);
    }
    println!("{} trials: {total}", seeds.end - seeds.start);
}

#[test]
fn model_agrees_over_random_trials() {
    let check = |seed, shape: &Shape, tally: &Tally| tally.assert_everything_happened(seed, shape);
    model_agrees("model_agrees_over", 40, Shape::of_seed, check);
}

#[test]
fn model_agrees_with_the_hash_design() {
    let check = |seed, shape: &Shape, tally: &Tally| tally.assert_everything_happened(seed, shape);
    model_agrees("model_agrees_with_the_hash", 25, Shape::of_hash_seed, check);
}

#[test]
fn the_same_seed_runs_the_same_way() {
    let shapes = [(3, Shape::of_seed(3)), (5, Shape::of_hash_seed(5))];
    for (seed, shape) in shapes {
        let first = run_trial(seed, &shape, None).expect("the model agrees");
        let second = run_trial(seed, &shape, None).expect("the model agrees");
        assert_eq!(first, second, "seed {seed}");
        assert_ne!(first.trace, 0);
    }
}
