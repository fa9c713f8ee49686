//! Randomized histories on real files that combine all faults. Requests of one, two or all members
//! fail temporarily or permanently; disks fill up and get space again; the power of each member is
//! cut at a different moment; the process is killed; members are blank or away. Meanwhile clients
//! of all kinds run.
//!
//! The tests check that no acknowledged write is lost, that no store opens with less, that every
//! store that can open does open, that no call hangs, that a temporary fault needs no reopening,
//! and that any member of a complete store may be removed. Threads are real: a seed determines the
//! faults and the requests of each client, but not the order of threads.
//!
//! kills.rs kills real processes. Here a kill is the end of all requests; each write is as durable
//! as it was.

mod clients;
mod history;
mod line;
mod plan;
mod planted;
mod watch;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use faultfs::Ignored;

pub(crate) use self::clients::pause;
use self::history::History;
use self::plan::{Ending, Plan, Step};
use self::watch::{Watch, watched};
use crate::scratch::wanted;

/// Histories of each test; `LEVELHEAD_ROUNDS` sets another number, and `LEVELHEAD_FIRST` the first
/// seed.
const ROUNDS: u64 = 6;
/// From this number of histories on, each kind of event must have occurred.
const MANY: u64 = 200;

/// The events in histories.
#[derive(Clone, Copy, Default, Debug)]
struct Tally {
    operations: u64,
    opened: u64,
    refused: u64,
    failing: u64,
    full: u64,
    cuts: u64,
    kills: u64,
    blank: u64,
    /// Members that returned after they had been replaced.
    returned: u64,
    away: u64,
    /// Times that a store took writes again without being reopened.
    went_on: u64,
    /// Times that a member had to be filled.
    filled: u64,
    /// Times that a member was removed at the end.
    taken_away: u64,
}

impl Tally {
    /// Counts the events of a run in which the store was open.
    fn count(&mut self, plan: &Plan) {
        let has = |is_it: fn(&Step) -> bool| u64::from(plan.all_steps().any(is_it));
        self.failing += has(|step| matches!(step, Step::Fail(..)));
        self.full += has(|step| matches!(step, Step::Fill(..)));
        self.cuts += u64::from(matches!(plan.ending, Ending::Cut(_)));
        self.kills += u64::from(plan.ending == Ending::Kill);
    }

    /// Returns the counts that must be positive after many histories.
    fn counts(&self, members: usize) -> Vec<u64> {
        let Self { operations, opened, refused, failing, full, cuts, kills, went_on, .. } = *self;
        let any = vec![operations, opened, refused, failing, full, cuts, kills, went_on];
        let of_several = vec![self.blank, self.returned, self.away, self.filled, self.taken_away];
        if members == 1 { any } else { [any, of_several].concat() }
    }

    fn add(&mut self, more: &Self) {
        self.operations += more.operations;
        self.opened += more.opened;
        self.refused += more.refused;
        self.failing += more.failing;
        self.full += more.full;
        self.cuts += more.cuts;
        self.kills += more.kills;
        self.blank += more.blank;
        self.returned += more.returned;
        self.away += more.away;
        self.went_on += more.went_on;
        self.filled += more.filled;
        self.taken_away += more.taken_away;
    }
}

/// Runs the history of `seed`; a panic counts as a failure. Returns `None` if FUSE is not
/// available.
fn history(seed: u64, members: usize, ignored: Ignored) -> Option<Result<Tally, String>> {
    let watch = Arc::new(Watch::default());
    let test = if members == 1 { "in_one_directory" } else { "in_three_directories" };
    let replay = format!(
        "replay: LEVELHEAD_SEED={seed} cargo test -p levelhead --test levelhead -- --nocapture everything_happens_{test}"
    );
    watched(&watch, &replay, || {
        let mut history = History::new(seed, members, ignored, &watch)?;
        let outcome = catch_unwind(AssertUnwindSafe(|| history.run()))
            .unwrap_or_else(|_| Err("a panic, see above".to_owned()));
        let told = |error| {
            let headers = if members > 1 { history.headers() } else { String::new() };
            format!("seed {seed}: {}: {error}\n{headers}{replay}", watch.story())
        };
        let outcome = outcome.map_err(told);
        Some(outcome.map(|()| history.tally))
    })
}

fn histories(members: usize) {
    let rounds = wanted("LEVELHEAD_ROUNDS").unwrap_or(ROUNDS);
    let first = wanted("LEVELHEAD_FIRST").unwrap_or(0);
    let one: Option<u64> = wanted("LEVELHEAD_SEED");
    let (mut failed, mut total) = (0, Tally::default());
    for seed in one.map_or(first..first + rounds, |seed| seed..seed + 1) {
        match history(seed, members, Ignored::default()) {
            None => return,
            Some(Ok(tally)) => total.add(&tally),
            Some(Err(error)) => {
                failed += 1;
                println!("{error}");
            }
        }
    }
    println!("{rounds} histories over {members}, {failed} failed: {total:?}");
    assert_eq!(failed, 0, "histories failed");
    if one.is_none() && rounds >= MANY {
        let counts = total.counts(members);
        assert!(counts.iter().all(|count| *count > 0), "not everything happened: {counts:?}");
    }
}

/// Regression test: a disk was full for a moment while the store was opened, when a write was
/// essential. In 3 of 100 runs the store took no writes until it was reopened.
#[test]
fn a_history_that_failed_once_does_not_again() {
    for _ in 0..10 {
        match history(900_227, 3, Ignored::default()) {
            None => return,
            Some(outcome) => drop(outcome.unwrap_or_else(|error| panic!("{error}"))),
        }
    }
}

#[test]
fn everything_happens_in_three_directories() {
    histories(3);
}

#[test]
fn everything_happens_in_one_directory() {
    histories(1);
}
