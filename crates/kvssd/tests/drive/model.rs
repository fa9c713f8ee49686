//! Random trials against the model.

use crate::trial::{Shape, Tally, run_trial};

/// A number from the environment: the one thing a test may be told from outside.
#[expect(clippy::disallowed_methods, reason = "how a person asks for more trials, or for one")]
pub(crate) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs trials; `test` is what the replay asks for.
fn model_agrees(test: &str, default: u64, shape_of: impl Fn(u64) -> Shape) {
    let seeds = match number("LEVELHEAD_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("LEVELHEAD_TRIALS").unwrap_or(default),
    };
    let mut total = Tally::default();
    for seed in seeds.clone() {
        let shape = shape_of(seed);
        let tally = run_trial(seed, &shape, None).unwrap_or_else(|error| {
            panic!("{error}\nreplay: LEVELHEAD_SEED={seed} cargo test -p kvssd --test drive {test}")
        });
        tally.assert_everything_happened(seed, &shape);
        total.add(&tally);
    }
    println!("{} trials: {total}", seeds.end - seeds.start);
}

#[test]
fn model_agrees_over_random_trials() {
    model_agrees("model_agrees_over", 60, Shape::of_seed);
}

#[test]
fn model_agrees_with_the_hash_design() {
    model_agrees("model_agrees_with_the_hash", 40, Shape::of_hash_seed);
}

#[test]
fn the_same_seed_runs_the_same_way() {
    for seed in [3, 4, 5] {
        let shape = if seed == 5 { Shape::of_hash_seed(seed) } else { Shape::of_seed(seed) };
        let first = run_trial(seed, &shape, None).expect("the model agrees");
        let second = run_trial(seed, &shape, None).expect("the model agrees");
        assert_eq!(first, second, "seed {seed}");
        assert_ne!(first.trace, 0);
    }
}
