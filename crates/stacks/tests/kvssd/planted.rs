//! Tests of the tests: deliberate bugs, each of which some trial must catch by its symptoms.
//!
//! `LEVELHEAD_FAULT=N` plants only one of them, by its number in the test's output, and
//! `LEVELHEAD_SEED=N` runs one trial.

use std::panic::{AssertUnwindSafe, catch_unwind};

use engine::{Fault, Options, Preemption};
use runtime::Nanos;
use stacks::design::IndexOptions;
use testkit::trial::{Complaint, Kind};

use crate::damage::{damage_is_caught, misplaced_pages_are_caught};
use crate::model::number;
use crate::shape::{Cuts, Shape};
use crate::trial::run_trial;

/// Seeds within which a fault must show.
const WITHIN: u64 = 200;

/// Returns the symptoms of a fault: one of them must occur; other harm does not count as catching
/// it. Panics do not count either: a client does not see the engine's assertions.
fn kinds(fault: Fault) -> &'static [Kind] {
    match fault {
        Fault::SkipChecksum => &[Kind::Foreign],
        // The reader finds an empty page or another page in place of its own, and detects that.
        Fault::ReleaseEarly
        | Fault::ReadWithoutEpoch
        | Fault::ReleaseUnderSnapshot
        | Fault::MoveUnderSnapshot
        | Fault::PublishBeforeDurable
        | Fault::ReleaseBeforeMoved => &[Kind::Corrupt],
        Fault::CollectWithoutRecheck
        | Fault::DeleteNotLogged
        | Fault::DropTombstonesEarly
        | Fault::CompactNewestAlone
        | Fault::MergedL0GoesFirst => &[Kind::Stale],
        // The newest write is lost: the previous value is found, or none if there was none.
        Fault::DumpWithoutFrozen
        | Fault::AcknowledgeEarly
        | Fault::HashForgetsDirtyPages
        // An older page in place of a segment leads to older values, or to none.
        | Fault::BelieveStalePages
        // A cache that ignores generations returns the former contents of a segment's place; if
        // entries are lost before they are merged, older entries below reappear.
        | Fault::DiscardedIsPublished
        | Fault::SequenceGoesBack
        | Fault::CacheForgetsGenerations
        // An older memtable is merged over newer entries, or dropped before it is merged.
        | Fault::FlushOutOfTurn => &[Kind::Lost, Kind::Stale],
        // Of two unacknowledged writes the later one exists, and the earlier one does not.
        Fault::FilterForgetsKeys
        | Fault::ColumnForgetsKeys
        | Fault::HashSkipsKeyCompare => &[Kind::Lost],
        // The journal is checked as a whole when it is read: missing or torn parts are detected
        // there.
        Fault::TrimLogEarly
        | Fault::TakeTornGroup
        | Fault::ReplayTrimmedLog
        | Fault::CommitBeforeSegments
        | Fault::ReleaseBeforeNoted
        | Fault::TrimLogBeforeCommit => &[Kind::Unopened],
        // The index of a table is read when the store is opened, its other pages later.
        Fault::CommitBeforeTables => &[Kind::Unopened, Kind::Corrupt],
        // L0 is never compacted again.
        Fault::DiscardedKeepsClaim => &[Kind::Hung],
        Fault::OverwriteUnderSnapshot | Fault::ReadPastSnapshot => &[Kind::Iterator],
        Fault::HashForgetsUprooted => &[Kind::Leak],
        Fault::UnreadableIsOld | Fault::UnreadableIsNeeded | Fault::CheckpointBeforeDurable => {
            unreachable!("drives do not show it")
        }
    }
}

#[test]
fn every_planted_fault_is_caught_by_what_it_does() {
    let only = number("LEVELHEAD_FAULT");
    let seeds = number("LEVELHEAD_SEED").map_or(0..WITHIN, |seed| seed..seed + 1);
    let faults = (0..).zip(crate::fault::faults());
    for (number, fault) in faults.filter(|(number, _)| only.is_none_or(|only| only == *number)) {
        let kinds = kinds(fault);
        let mut others = 0;
        let caught = seeds.clone().find_map(|seed| {
            let complaint = outcome(seed, fault)?.ok().filter(|c| kinds.contains(&c.kind));
            others += u64::from(complaint.is_none());
            complaint.map(|complaint| (seed, complaint))
        });
        let Some((seed, complaint)) = caught else {
            panic!(
                "{fault:?} was not caught as {kinds:?}, and {others} times as something else\n\
                 replay: LEVELHEAD_FAULT={number} cargo test -p stacks --test kvssd -- --nocapture \
                 planted"
            );
        };
        let text = complaint.to_string();
        let line = text.lines().next().unwrap_or_default();
        println!("{number} {fault:?}: seed {seed}, after {others} other complaints: {line}");
    }
}

/// Returns the complaint of the trial of `seed` with `fault` planted, if any; `Err` is the text of
/// a panic.
fn outcome(seed: u64, fault: Fault) -> Option<Result<Complaint, String>> {
    let trial = || match fault {
        // Need damaged pages, which ordinary trials do not have.
        Fault::SkipChecksum => damage_is_caught(seed, Some(fault)),
        Fault::BelieveStalePages => misplaced_pages_are_caught(seed, Some(fault)),
        _ => run_trial(seed, &shape(seed, fault), Some(fault)).map(|_| ()),
    };
    match catch_unwind(AssertUnwindSafe(trial)) {
        Ok(Ok(())) => None,
        Ok(Err(complaint)) => Some(Ok(complaint)),
        Err(panic) => Some(Err(runtime::planted::panic_text(&*panic).to_owned())),
    }
}

/// Returns a drive that a fault can harm, and clients that will detect it.
fn shape(seed: u64, fault: Fault) -> Shape {
    match fault {
        Fault::ReleaseEarly | Fault::ReadWithoutEpoch => late_reads(seed, 1_400),
        // Moved objects are being overwritten.
        Fault::CollectWithoutRecheck => late_reads(seed, 500),
        // One of the designs with filters.
        Fault::FilterForgetsKeys => Shape { scanners: 0, ..Shape::of_seed(11 * seed + 3) },
        Fault::ColumnForgetsKeys => {
            Shape { scanners: 0, ..Shape::of_seed(seed).with_columns(seed) }
        }
        Fault::HashSkipsKeyCompare | Fault::HashForgetsDirtyPages | Fault::HashForgetsUprooted => {
            Shape::of_hash_seed(seed)
        }
        // Scanners might detect a loss before other clients, and report it as their own symptom.
        Fault::TrimLogEarly
        | Fault::TakeTornGroup
        | Fault::ReplayTrimmedLog
        | Fault::CommitBeforeSegments
        | Fault::DeleteNotLogged
        | Fault::AcknowledgeEarly
        | Fault::ReleaseBeforeMoved
        | Fault::SequenceGoesBack
        | Fault::ReleaseBeforeNoted
        | Fault::TrimLogBeforeCommit => Shape { scanners: 0, ..Shape::of_restless_log_seed(seed) },
        Fault::CommitBeforeTables => Shape { scanners: 0, ..Shape::of_restless_tables_seed(seed) },
        Fault::FlushOutOfTurn => side_by_side(seed),
        Fault::CompactNewestAlone => Shape { scanners: 0, ..Shape::of_tables_seed(seed) },
        Fault::MergedL0GoesFirst => Shape::of_crowded_tables_seed(seed),
        Fault::CacheForgetsGenerations => {
            Shape { scanners: 0, ..Shape::of_seed(11 * seed + 3) }.with_caches()
        }
        Fault::DiscardedIsPublished => yielding(seed),
        Fault::DiscardedKeepsClaim => {
            let mut shape = yielding(seed);
            let IndexOptions::Lsm(options) = &mut shape.engine else { unreachable!("a tree") };
            // L0 cannot be compacted within itself, and has time to fill up.
            options.tables.table_bytes = 8 << 10;
            options.tables.max_compaction_bytes = 8 << 10;
            Shape { cuts: Cuts::Seldom { longest: Nanos::from_millis(3_000) }, ..shape }
        }
        _ => Shape::of_seed(seed),
    }
}

/// Flushes several memtables at a time.
fn side_by_side(seed: u64) -> Shape {
    let mut shape = Shape { scanners: 0, ..Shape::of_seed(seed) };
    let IndexOptions::Lsm(options) = &mut shape.engine else { unreachable!("a tree") };
    options.frozen_memtables = 3;
    shape
}

/// Compactions that give way to those of L0 and discard their work.
fn yielding(seed: u64) -> Shape {
    let mut shape = Shape { scanners: 0, ..Shape::of_tables_seed(seed) };
    shape.yield_by(Preemption::Discard);
    shape
}

impl Shape {
    /// Adds caches larger than the stored data, so that nothing is evicted.
    fn with_caches(mut self) -> Self {
        let IndexOptions::Lsm(options) = &mut self.engine else { unreachable!("it is a tree") };
        (options.page_cache_bytes, options.value_cache_bytes) = (1 << 20, 1 << 20);
        self.device.dram.index_bytes += options.cache_bytes();
        self
    }
}

/// Slow firmware, fast flash and many clients: the result of a lookup is old when it is used.
fn late_reads(seed: u64, keys: usize) -> Shape {
    let mut shape = Shape::of_seed(5 * seed + 1);
    shape.device.flash.timing.erase_us = 10.0;
    Shape {
        engine: Options { memtable_bytes: 4 << 10, ..Options::pink() }.into(),
        keys,
        clients: 40,
        scanners: 0,
        cuts: Cuts::Seldom { longest: Nanos::from_millis(900) },
        ..shape
    }
}
