//! Random trials against the model.

use std::panic::{AssertUnwindSafe, catch_unwind};

use testkit::fuzz::from_environment;
use volume::Fault;

use crate::trial::{Tally, World, run_trial};

const TRIALS: u64 = 300;

/// Runs a trial. A panic counts as a complaint, too.
pub(crate) fn complaint_or_tally(
    seed: u64,
    world: World,
    fault: Option<Fault>,
) -> Result<Tally, String> {
    catch_unwind(AssertUnwindSafe(|| run_trial(seed, world, fault)))
        .unwrap_or_else(|panic| Err(format!("panic: {}", runtime::planted::panic_text(&*panic))))
}

#[test]
fn model_agrees_over_random_trials() {
    let total = agree(World::of_seed, "model_agrees_over");
    let Some(total) = total else { return };
    let Tally { volume, .. } = total;
    let counts = [
        volume.rebuilt_reads,
        volume.parity_pages,
        volume.degraded_writes,
        volume.stale_extents,
        volume.refilled_bytes,
        volume.lost_pages,
        volume.lost_members,
        total.healed,
        total.errors,
        total.replaced,
        total.returned,
        total.beyond,
    ];
    assert!(counts.iter().all(|count| *count > 0), "not everything happened: {counts:?}");
}

#[test]
fn model_agrees_with_windows() {
    let total = agree(World::with_windows_of_seed, "model_agrees_with_windows");
    let Some(total) = total else { return };
    let Tally { windows, slots, cached_reads, quiet_rebuilds, .. } = total;
    let counts = [windows, slots, cached_reads, quiet_rebuilds];
    assert!(counts.iter().all(|count| *count > 0), "not everything happened: {counts:?}");
}

#[test]
fn model_agrees_with_a_journal_that_waits_for_no_slot() {
    let total = agree(World::with_journal_at_once_of_seed, "model_agrees_with_a_journal");
    let Some(total) = total else { return };
    let Tally { slots, cached_reads, quiet_rebuilds, journal_writes, .. } = total;
    let counts = [slots, cached_reads, quiet_rebuilds, journal_writes];
    assert!(counts.iter().all(|count| *count > 0), "not everything happened: {counts:?}");
}

/// Runs trials by seed. Returns their total tally, if at least the usual number was run.
fn agree(world_of: fn(u64) -> World, test: &str) -> Option<Tally> {
    let one = from_environment("LEVELHEAD_SEED");
    let trials = from_environment("LEVELHEAD_TRIALS").unwrap_or(TRIALS);
    let first = from_environment("LEVELHEAD_FIRST").unwrap_or(0);
    let seeds = one.map_or(first..first + trials, |seed| seed..seed + 1);
    let mut total = Tally::default();
    for seed in seeds.clone() {
        let tally = complaint_or_tally(seed, world_of(seed), None).unwrap_or_else(|error| {
            panic!(
                "{error}\nreplay: LEVELHEAD_SEED={seed} cargo test -p volume --test volume {test}"
            )
        });
        total.add(&tally);
    }
    println!("{} trials: {total:?}", seeds.end - seeds.start);
    (one.is_none() && trials >= TRIALS).then_some(total)
}

#[test]
fn the_same_seed_runs_the_same_way() {
    for seed in [1, 2] {
        let run = || run_trial(seed, World::of_seed(seed), None).expect("the model agrees");
        assert_eq!(run(), run(), "seed {seed}");
    }
}
