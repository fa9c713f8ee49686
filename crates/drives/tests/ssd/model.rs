//! Random trials against the model.

use drives::ssd::specimens::shape::Shape;

use crate::tally::Tally;
use crate::trial::run_trial;

/// Returns a number from the environment: the only input of a test.
#[expect(clippy::disallowed_methods, reason = "how a person asks for more trials, or for one")]
pub(crate) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs trials. `test` is the name in the replay command.
fn model_agrees(test: &str, default: u64, shape_of: impl Fn(u64) -> Shape) -> Tally {
    let seeds = match number("LEVELHEAD_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("LEVELHEAD_TRIALS").unwrap_or(default),
    };
    let mut total = Tally::default();
    for seed in seeds.clone() {
        let tally = run_trial(seed, &shape_of(seed), None).unwrap_or_else(|error| {
            panic!("{error}\nreplay: LEVELHEAD_SEED={seed} cargo test -p drives --test ssd {test}")
        });
        total.add(&tally);
    }
    println!("{} trials: {total}", seeds.end - seeds.start);
    total
}

#[test]
fn model_agrees_over_random_trials() {
    const TRIALS: u64 = 70;
    let total = model_agrees("model_agrees_over", TRIALS, Shape::of_seed);
    let has_few = number("LEVELHEAD_TRIALS").is_some_and(|trials| trials < TRIALS);
    if number("LEVELHEAD_SEED").is_none() && !has_few {
        total.assert_everything_happened();
    }
}

#[test]
fn model_agrees_through_many_power_cuts() {
    const TRIALS: u64 = 50;
    let total = model_agrees("model_agrees_through", TRIALS, Shape::of_restless_seed);
    let has_few = number("LEVELHEAD_TRIALS").is_some_and(|trials| trials < TRIALS);
    if number("LEVELHEAD_SEED").is_none() && !has_few {
        total.assert_cuts_did_harm(TRIALS);
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

/// Regression: reads endangered data faster than they could be moved, and a lockdown never got its
/// room.
#[test]
fn a_drive_whose_data_are_in_danger_makes_room_all_the_same() {
    let tally = run_trial(620_193, &Shape::of_restless_seed(620_193), None);
    let tally = tally.unwrap_or_else(|error| panic!("{error}"));
    assert!(tally.reclaims > 0, "{tally}");
}

/// Regression, a deadlock: clients waited for mapping pages, these for superblocks, and collection
/// for clients.
#[test]
fn a_paged_drive_comes_to_no_standstill() {
    let tally = run_trial(689, &Shape::of_seed(689), None).expect("the model agrees");
    assert!(tally.mapping_writes > 0, "{tally}");
}
