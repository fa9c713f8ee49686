//! Random trials against the model.

use crate::shape::Shape;
use crate::tally::Tally;
use crate::trial::run_trial;

/// Trials without being asked for more.
const TRIALS: u64 = 60;

/// A number from the environment: the one thing a test may be told from outside.
#[expect(clippy::disallowed_methods, reason = "how a person asks for more trials, or for one")]
pub(crate) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn model_agrees_over_random_trials() {
    let one = number("LEVELHEAD_SEED");
    let seeds = match one {
        Some(seed) => seed..seed + 1,
        None => 0..number("LEVELHEAD_TRIALS").unwrap_or(TRIALS),
    };
    let mut total = Tally::default();
    for seed in seeds.clone() {
        let tally = run_trial(seed, &Shape::of_seed(seed), None).unwrap_or_else(|error| {
            panic!("{error}\nreplay: LEVELHEAD_SEED={seed} cargo test -p ssd --test drive model")
        });
        total.add(&tally);
    }
    println!("{} trials: {total}", seeds.end - seeds.start);
    if one.is_none() {
        total.assert_everything_happened();
    }
}

#[test]
fn the_same_seed_runs_the_same_way() {
    for seed in [1, 2] {
        let shape = Shape::of_seed(seed);
        let first = run_trial(seed, &shape, None).expect("the model agrees");
        let second = run_trial(seed, &shape, None).expect("the model agrees");
        assert_eq!(first, second, "seed {seed}");
        assert_ne!(first.trace, 0);
    }
}
