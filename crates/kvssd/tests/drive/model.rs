//! Random trials against the model.

use crate::trial::{Shape, Tally, run_trial};

/// A number from the environment: the one thing a test may be told from outside.
#[expect(clippy::disallowed_methods, reason = "how a person asks for more trials, or for one")]
pub(crate) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn model_agrees_over_random_trials() {
    let seeds = match number("LEVELHEAD_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("LEVELHEAD_TRIALS").unwrap_or(60),
    };
    let mut total = Tally::default();
    for seed in seeds.clone() {
        let shape = Shape::of_seed(seed);
        let tally = run_trial(seed, &shape, None).unwrap_or_else(|error| {
            panic!("{error}\nreplay: LEVELHEAD_SEED={seed} cargo test -p kvssd --test drive model")
        });
        tally.assert_everything_happened(seed, &shape);
        total.add(&tally);
    }
    println!("{} trials: {total}", seeds.end - seeds.start);
}

#[test]
fn the_same_seed_runs_the_same_way() {
    for seed in [3, 4] {
        let shape = Shape::of_seed(seed);
        let first = run_trial(seed, &shape, None).expect("the model agrees");
        let second = run_trial(seed, &shape, None).expect("the model agrees");
        assert_eq!(first, second, "seed {seed}");
        assert_ne!(first.trace, 0);
    }
}
