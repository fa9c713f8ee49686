//! Histories in which everything happens at once: commands of one member, of two, of all fail for a moment, power is cut at other
//! moments of each member, members are blank or replaced, and filled meanwhile, while clients of all kinds are at work.
//!
//! Nothing that was acknowledged is lost, no store opens with less, none stays shut that could open, no client waits for
//! ever, and a member that is said to be whole is: each of the others can be taken away.

mod clients;
mod enumerated;
mod history;
mod openings;
mod planted;

use std::panic::{AssertUnwindSafe, catch_unwind};

use fuzz::from_environment;
use runtime::Nanos;
use volume::Fault;

use self::history::History;

const TRIALS: u64 = 150;
/// A client that has no answer for so long, while commands answer, waits for ever. Longer than a filling reads again what cannot
/// be read.
pub(crate) const PATIENCE: Nanos = Nanos::from_millis(60_000);
/// The same for fillings of all extents, which are taken up again for an hour, and read again for seconds each time.
pub(crate) const FILLS_WITHIN: Nanos = Nanos::from_millis(14_400_000);

/// What happened in histories.
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
    /// Members that came back after they had been replaced.
    returned: u64,
    away: u64,
    cut_in_filling: u64,
    lost_pages: u64,
    /// Times that each member was taken away from a store that was whole.
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

/// Runs the history of `seed`; a panic is a complaint, too.
fn history(seed: u64, fault: Option<Fault>) -> Result<Tally, String> {
    let mut history = History::new(seed, fault);
    let outcome = catch_unwind(AssertUnwindSafe(|| history.run()))
        .unwrap_or_else(|panic| Err(format!("panic: {}", ::planted::panic_text(&*panic))));
    let History { seed, story, .. } = &history;
    outcome.map_err(|error| format!("seed {seed}: {}: {error}", story.join("; ")))?;
    Ok(history.tally)
}

/// An extent of the index, of objects or of an older manifest was about to be released, a second member is noted to lack it, and a third one is
/// blank: nobody needs what cannot be read of it.
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
