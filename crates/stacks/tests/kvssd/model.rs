//! Random trials against the model.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use engine::{HashOptions, Options};
use runtime::Nanos;
use stacks::design::IndexOptions;

use crate::harness::{for_hash, small_hash};
use crate::shape::{Cuts, Shape};
use crate::tally::Tally;
use crate::trial::run_trial;

/// Returns a number from the environment: the only input of a test.
#[expect(clippy::disallowed_methods, reason = "how a person asks for more trials, or for one")]
pub(crate) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Returns the seeds to run: one, or a number of them.
fn seeds(default: u64) -> std::ops::Range<u64> {
    let first = number("LEVELHEAD_FIRST").unwrap_or(0);
    match number("LEVELHEAD_SEED") {
        Some(seed) => seed..seed + 1,
        None => first..first + number("LEVELHEAD_TRIALS").unwrap_or(default),
    }
}

/// Runs trials. `test` is the name in the replay command.
fn model_agrees(
    test: &str,
    default: u64,
    shape_of: impl Fn(u64) -> Shape,
    check: impl Fn(u64, &Shape, &Tally),
) -> Tally {
    let seeds = seeds(default);
    let mut total = Tally::default();
    for seed in seeds.clone() {
        let replay =
            format!("replay: LEVELHEAD_SEED={seed} cargo test -p stacks --test kvssd {test}");
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
    total
}

#[test]
fn model_agrees_over_random_trials() {
    let check = |seed, shape: &Shape, tally: &Tally| tally.assert_everything_happened(seed, shape);
    model_agrees("model_agrees_over", 20, Shape::of_seed, check);
}

#[test]
fn model_agrees_with_the_hash_design() {
    let check = |seed, shape: &Shape, tally: &Tally| tally.assert_everything_happened(seed, shape);
    model_agrees("model_agrees_with_the_hash", 13, Shape::of_hash_seed, check);
}

#[test]
fn model_agrees_without_capacitors() {
    let total =
        model_agrees("model_agrees_without_capacitors", 7, Shape::of_log_seed, |_, _, _| {});
    let Tally { torn, data_extents, meta_extents, objects_moved, .. } = total;
    let happened = [torn, data_extents, meta_extents, objects_moved];
    let is_alone = number("LEVELHEAD_SEED").is_some();
    assert!(is_alone || happened.iter().all(|count| *count > 0), "{total}");
}

#[test]
fn model_agrees_without_capacitors_through_many_power_cuts() {
    let name = "model_agrees_without_capacitors_through";
    let total = model_agrees(name, 4, Shape::of_restless_log_seed, |_, _, _| {});
    let is_alone = number("LEVELHEAD_SEED").is_some();
    assert!(is_alone || total.torn > 0 && total.cuts_of_recoveries > 0, "{total}");
}

#[test]
fn nothing_is_lost_without_capacitors_through_200_power_cuts_in_a_row() {
    let usual = Shape::of_restless_log_seed(0);
    let shape = Shape { sessions: 200, clients: 64, scanners: 0, ..usual };
    let tally = run_trial(1, &shape, None).unwrap_or_else(|error| panic!("{error}"));
    assert!(tally.power_cuts >= 200 && tally.torn > 0, "{tally}");
}

/// Default number of trials with random shapes.
const RANDOM: u64 = 60;

/// Requires every mechanism to run in some trial, not in each.
fn model_agrees_in_sum(test: &str, shape_of: impl Fn(u64) -> Shape) {
    let total = model_agrees(test, RANDOM, shape_of, |_, _, _| {});
    let is_whole = number("LEVELHEAD_TRIALS").is_none_or(|trials| trials >= RANDOM);
    if is_whole && number("LEVELHEAD_SEED").is_none() {
        total.assert_everything_happened_somewhere();
    }
}

#[test]
fn model_agrees_in_random_shapes() {
    model_agrees_in_sum("model_agrees_in_random", Shape::of_random_seed);
}

#[test]
fn model_agrees_through_many_power_cuts() {
    model_agrees_in_sum("model_agrees_through", Shape::of_restless_seed);
}

#[test]
fn model_agrees_in_wild_shapes() {
    model_agrees("model_agrees_in_wild", 15, Shape::of_wild_seed, |_, _, _| {});
}

#[test]
fn model_agrees_in_wild_shapes_through_many_power_cuts() {
    let name = "model_agrees_in_wild_shapes_through";
    model_agrees(name, 15, Shape::of_restless_wild_seed, |_, _, _| {});
}

#[test]
fn model_agrees_with_tables() {
    let total = model_agrees("model_agrees_with_tables", 15, Shape::of_tables_seed, |_, _, _| {});
    let Tally { torn, data_extents, objects_moved, .. } = total;
    let is_alone = number("LEVELHEAD_SEED").is_some();
    let happened = [torn, data_extents, objects_moved];
    assert!(is_alone || happened.iter().all(|count| *count > 0), "{total}");
}

#[test]
fn model_agrees_with_tables_through_many_power_cuts() {
    let name = "model_agrees_with_tables_through";
    let total = model_agrees(name, 10, Shape::of_restless_tables_seed, |_, _, _| {});
    let is_alone = number("LEVELHEAD_SEED").is_some();
    assert!(is_alone || total.torn > 0 && total.cuts_of_recoveries > 0, "{total}");
}

#[test]
fn model_agrees_with_tables_where_l0_is_crowded() {
    let name = "model_agrees_with_tables_where";
    model_agrees(name, 10, Shape::of_crowded_tables_seed, |_, _, _| {});
}

#[test]
fn model_agrees_with_tables_that_give_way() {
    let name = "model_agrees_with_tables_that_give_way";
    let total = model_agrees(name, 15, Shape::of_yielding_tables_seed, |_, _, _| {});
    let restless = |seed| Shape {
        sessions: 12,
        cuts: Cuts::Seldom { longest: Nanos::from_millis(120) },
        is_filled: false,
        ..Shape::of_yielding_tables_seed(seed)
    };
    let cut = model_agrees(name, 6, restless, |_, _, _| {});
    let is_alone = number("LEVELHEAD_SEED").is_some();
    let happened = [total.yields, total.discarded, cut.discarded];
    assert!(is_alone || happened.iter().all(|count| *count > 0), "{total} {cut}");
}

#[test]
fn model_agrees_with_tables_in_wild_shapes() {
    let name = "model_agrees_with_tables_in_wild_shapes";
    model_agrees(name, 10, Shape::of_wild_tables_seed, |_, _, _| {});
    model_agrees(name, 10, Shape::of_restless_wild_tables_seed, |_, _, _| {});
}

#[test]
fn model_agrees_with_groups() {
    let total = model_agrees("model_agrees_with_groups", 20, Shape::of_grouped_seed, |_, _, _| {});
    let Tally { groups, groups_moved, scanned, .. } = total;
    let is_alone = number("LEVELHEAD_SEED").is_some();
    let happened = [groups, groups_moved, scanned];
    assert!(is_alone || happened.iter().all(|count| *count > 0), "{total}");
}

#[test]
fn model_agrees_with_groups_through_many_power_cuts() {
    let name = "model_agrees_with_groups_through";
    let total = model_agrees(name, 10, Shape::of_restless_grouped_seed, |_, _, _| {});
    let is_alone = number("LEVELHEAD_SEED").is_some();
    assert!(is_alone || total.torn > 0 && total.cuts_of_recoveries > 0, "{total}");
}

#[test]
fn model_agrees_with_groups_in_wild_shapes() {
    let name = "model_agrees_with_groups_in_wild_shapes";
    model_agrees(name, 10, Shape::of_wild_grouped_seed, |_, _, _| {});
}

#[test]
fn model_agrees_with_columns() {
    let total = model_agrees("model_agrees_with_columns", 20, Shape::of_columns_seed, |_, _, _| {});
    let Tally { groups, groups_moved, scanned, .. } = total;
    let is_alone = number("LEVELHEAD_SEED").is_some();
    let happened = [groups, groups_moved, scanned];
    assert!(is_alone || happened.iter().all(|count| *count > 0), "{total}");
}

#[test]
fn model_agrees_with_columns_through_many_power_cuts() {
    let name = "model_agrees_with_columns_through";
    let total = model_agrees(name, 10, Shape::of_restless_columns_seed, |_, _, _| {});
    let is_alone = number("LEVELHEAD_SEED").is_some();
    assert!(is_alone || total.torn > 0 && total.cuts_of_recoveries > 0, "{total}");
}

#[test]
fn model_agrees_with_columns_in_wild_shapes() {
    let name = "model_agrees_with_columns_in_wild_shapes";
    model_agrees(name, 10, Shape::of_wild_columns_seed, |_, _, _| {});
}

/// Full drives with few pages per extent and several per append unit. They once refused deletes for
/// good: most of an index extent was padding.
#[test]
fn deletes_are_never_refused_on_full_drives() {
    let shapes = [
        (48, Shape::of_random_seed(48)),
        (240, Shape::of_random_seed(240)),
        (262, Shape::of_random_seed(262)),
        (316, Shape::of_random_seed(316)),
        (561, Shape::of_random_seed(561)),
        (1115, Shape::of_random_seed(1115)),
        (399, Shape::of_restless_seed(399)),
        // A flush that power cuts interrupted again and again used up one extent after another; a
        // client starved.
        (25, Shape::of_restless_seed(25)),
        // Objects of interrupted flushes counted as in use, although no slot pointed to them.
        (2493, Shape::of_restless_seed(2493)),
        // Extents that were set aside again counted as room; a client waited for it.
        (344, Shape::of_random_seed(344)),
    ];
    for (seed, shape) in shapes {
        run_trial(seed, &shape.without_caches(), None)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

/// Legal but extreme shapes that once hung, or exceeded the space reserved for them.
#[test]
fn wild_shapes_that_failed_once() {
    let seeds = [
        // No extent was left for a bucket page: full append units of one page each.
        343, // Deletes of keys that never existed: more index than fits a dump.
        357, // Obsolete groups that no client waited for filled the log.
        456,
    ];
    for seed in seeds {
        let shape = Shape::of_wild_seed(seed).without_caches();
        run_trial(seed, &shape, None).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    // The flush of moved objects used up the space that its bucket pages needed.
    for seed in [22, 938] {
        let shape = Shape::of_wild_seed(seed);
        run_trial(seed, &shape, None).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

#[test]
fn nothing_is_lost_through_200_power_cuts_in_a_row() {
    let large_memtables = Options { memtable_bytes: 16 << 10, ..Options::pink() };
    let designs: [IndexOptions; 3] = [
        large_memtables.clone().into(),
        Options { frozen_memtables: 3, ..large_memtables }.into(),
        HashOptions { buffer_bytes: 16 << 10, ..small_hash() }.into(),
    ];
    for engine in designs {
        let usual = Shape::of_seed(0);
        let device = match &engine {
            IndexOptions::Lsm(_) => usual.device,
            IndexOptions::Hash(_) => for_hash(usual.device),
        };
        let cuts = Cuts::Restless;
        let shape =
            Shape { engine, device, clients: 64, scanners: 0, sessions: 200, cuts, ..usual };
        let tally = run_trial(1, &shape, None).unwrap_or_else(|error| panic!("{error}"));
        assert!(tally.power_cuts >= 200, "{tally}");
    }
}

#[test]
fn the_same_seed_runs_the_same_way() {
    let shapes = [
        (3, Shape::of_seed(3)),
        (5, Shape::of_hash_seed(5)),
        (6, Shape::of_random_seed(6)),
        (7, Shape::of_restless_seed(7)),
        (8, Shape::of_tables_seed(8)),
    ];
    for (seed, shape) in shapes {
        let first = run_trial(seed, &shape, None).expect("the model agrees");
        let second = run_trial(seed, &shape, None).expect("the model agrees");
        assert_eq!(first, second, "seed {seed}");
        assert_ne!(first.trace, 0);
    }
}
