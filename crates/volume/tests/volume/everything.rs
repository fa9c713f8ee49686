//! Histories with all kinds of failures at once. Commands of one member, of two, or of all fail for
//! a moment. Power is cut at a different moment for each member. Members are emptied or replaced,
//! and filled meanwhile. Clients of all kinds run throughout.
//!
//! No acknowledged data is lost. No store opens with less data, and none that could open stays
//! shut. No client waits forever. If a member is reported as whole, it is: each of the other
//! members can be removed.

mod clients;
mod enumerated;
mod history;
mod openings;
mod planted;

use std::panic::{AssertUnwindSafe, catch_unwind};

use runtime::Nanos;
use testkit::fuzz::from_environment;
use volume::Fault;

use self::history::History;

const TRIALS: u64 = 150;
/// The time after which a client without an answer counts as hanging, while commands succeed.
/// Longer than a filling retries unreadable pages.
pub(crate) const PATIENCE: Nanos = Nanos::from_millis(60_000);
/// The same limit for filling all extents. Fillings are retried for an hour, and each retry rereads
/// pages for seconds.
pub(crate) const FILLS_WITHIN: Nanos = Nanos::from_millis(14_400_000);

/// Counts of events in histories.
#[derive(Clone, Copy, Default, Debug)]
struct Tally {
    operations: u64,
    opened: u64,
    refused: u64,
    cut_in_opening: u64,
    cuts_apart: u64,
    kills: u64,
    quiet_ends: u64,
    blank: u64,
    rotten: u64,
    replaced: u64,
    /// Number of replaced members that came back.
    returned: u64,
    away: u64,
    cut_in_filling: u64,
    lost_pages: u64,
    /// Number of checks that removed a member from a whole store.
    taken_away: u64,
}

impl Tally {
    fn add(&mut self, more: &Self) {
        self.operations += more.operations;
        self.opened += more.opened;
        self.refused += more.refused;
        self.cut_in_opening += more.cut_in_opening;
        self.cuts_apart += more.cuts_apart;
        self.kills += more.kills;
        self.quiet_ends += more.quiet_ends;
        self.blank += more.blank;
        self.rotten += more.rotten;
        self.replaced += more.replaced;
        self.returned += more.returned;
        self.away += more.away;
        self.cut_in_filling += more.cut_in_filling;
        self.lost_pages += more.lost_pages;
        self.taken_away += more.taken_away;
    }

    fn counts(&self) -> [u64; 14] {
        [
            self.operations,
            self.opened,
            self.refused,
            self.cut_in_opening,
            self.cuts_apart,
            self.kills,
            self.quiet_ends,
            self.blank,
            self.rotten,
            self.replaced,
            self.returned,
            self.away,
            self.cut_in_filling,
            self.taken_away,
        ]
    }
}

/// Runs the history of `seed`. A panic counts as a complaint, too.
fn history(seed: u64, fault: Option<Fault>) -> Result<Tally, String> {
    let mut history = History::new(seed, fault);
    let outcome = catch_unwind(AssertUnwindSafe(|| history.run()))
        .unwrap_or_else(|panic| Err(format!("panic: {}", runtime::planted::panic_text(&*panic))));
    let History { seed, story, .. } = &history;
    outcome.map_err(|error| format!("seed {seed}: {}: {error}", story.join("; ")))?;
    Ok(history.tally)
}

/// An extent of the index, of objects or of an older manifest was about to be released. A second
/// member is noted to lack it, and a third one is empty. Its unreadable pages are not needed.
#[test]
fn what_nobody_needs_keeps_no_store_shut() {
    for seed in [1262, 2177] {
        history(seed, None).unwrap_or_else(|error| panic!("{error}"));
    }
}

#[test]
fn model_agrees_when_everything_happens_at_once() {
    let one = from_environment("LEVELHEAD_SEED");
    let trials = from_environment("LEVELHEAD_TRIALS").unwrap_or(TRIALS);
    let first = from_environment("LEVELHEAD_FIRST").unwrap_or(0);
    let (mut failed, mut total) = (0, Tally::default());
    for seed in one.map_or(first..first + trials, |seed| seed..seed + 1) {
        match history(seed, None) {
            Ok(tally) => total.add(&tally),
            Err(error) => {
                failed += 1;
                println!(
                    "{error}\nreplay: LEVELHEAD_SEED={seed} cargo test -p volume --test volume model_agrees_when_everything"
                );
            }
        }
    }
    println!("{trials} histories, {failed} failed: {total:?}");
    assert_eq!(failed, 0, "histories failed");
    if one.is_none() && trials >= TRIALS {
        let counts = total.counts();
        assert!(counts.iter().all(|count| *count > 0), "not everything happened: {counts:?}");
    }
}
