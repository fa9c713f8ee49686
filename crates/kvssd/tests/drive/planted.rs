//! Tests of the tests: deliberate bugs, each of which some trial must catch by its symptoms.
//!
//! `LEVELHEAD_FAULT=N` plants only one of them, by its number in the test's output, and
//! `LEVELHEAD_SEED=N` runs one trial.

use std::panic::{AssertUnwindSafe, catch_unwind};

use design::IndexOptions;
use engine::Fault as InTree;
use engine::{Options, Preemption};
use hashkv::Fault as InTable;
use pages::Fault as InPages;
use runtime::Nanos;

use crate::damage::{damage_is_caught, misplaced_pages_are_caught};
use crate::fault::Fault;
use crate::model::number;
use crate::shape::{Cuts, Shape};
use crate::trial::run_trial;
use trial::{Complaint, Kind};

/// Seeds within which a fault must show.
const WITHIN: u64 = 200;

/// Returns the symptoms of a fault: one of them must occur; other harm does not count as catching
/// it. Panics do not count either: a client does not see the engine's assertions.
fn kinds(fault: Fault) -> &'static [Kind] {
    match fault {
        Fault::Pages(fault) => kinds_of_pages(fault),
        Fault::Tree(fault) => kinds_of_tree(fault),
        Fault::Table(fault) => kinds_of_table(fault),
    }
}

fn kinds_of_pages(fault: InPages) -> &'static [Kind] {
    match fault {
        InPages::SkipChecksum => &[Kind::Foreign],
        // The reader finds an empty page or another page in place of its own, and detects that.
        InPages::ReleaseEarly
        | InPages::ReadWithoutEpoch
        | InPages::ReleaseUnderSnapshot
        | InPages::MoveUnderSnapshot
        | InPages::PublishBeforeDurable
        | InPages::ReleaseBeforeMoved => &[Kind::Corrupt],
        InPages::CollectWithoutRecheck | InPages::DeleteNotLogged => &[Kind::Stale],
        // The newest write is lost: the previous value is found, or none if there was none.
        InPages::DumpWithoutFrozen
        | InPages::AcknowledgeEarly
        // An older page in place of a segment leads to older values, or to none.
        | InPages::BelieveStalePages => &[Kind::Lost, Kind::Stale],
        // Of two unacknowledged writes the later one exists, and the earlier one does not.
        InPages::TableBeforeLog => &[Kind::Lost],
        // The journal is checked as a whole when it is read: missing or torn parts are detected
        // there.
        InPages::TrimLogEarly
        | InPages::TakeTornGroup
        | InPages::ReplayTrimmedLog
        | InPages::CommitBeforeSegments => &[Kind::Unopened],
        // The index of a table is read when the store is opened, its other pages later.
        InPages::CommitBeforeTables => &[Kind::Unopened, Kind::Corrupt],
        InPages::UnreadableIsOld | InPages::UnreadableIsNeeded => {
            unreachable!("they are left to crate `engine`")
        }
    }
}

fn kinds_of_tree(fault: InTree) -> &'static [Kind] {
    match fault {
        InTree::DropTombstonesEarly | InTree::CompactNewestAlone | InTree::MergedL0GoesFirst => {
            &[Kind::Stale]
        }
        // L0 is never compacted again.
        InTree::DiscardedKeepsClaim => &[Kind::Hung],
        // A cache that ignores generations returns the former contents of a segment's place; if
        // entries are lost before they are merged, older entries below reappear.
        InTree::DiscardedIsPublished
        | InTree::SequenceGoesBack
        | InTree::CacheForgetsGenerations
        // An older memtable is merged over newer entries, or dropped before it is merged.
        | InTree::FlushOutOfTurn => &[Kind::Lost, Kind::Stale],
        InTree::FilterForgetsKeys | InTree::ColumnForgetsKeys => &[Kind::Lost],
        InTree::OverwriteUnderSnapshot | InTree::ReadPastSnapshot => &[Kind::Iterator],
        InTree::ReleaseBeforeNoted | InTree::TrimLogBeforeCommit => &[Kind::Unopened],
        InTree::CheckpointBeforeDurable => unreachable!("it is left to crate `torture`"),
    }
}

fn kinds_of_table(fault: InTable) -> &'static [Kind] {
    match fault {
        InTable::HashForgetsDirtyPages => &[Kind::Lost, Kind::Stale],
        InTable::HashSkipsKeyCompare => &[Kind::Lost],
        InTable::HashForgetsUprooted => &[Kind::Leak],
    }
}

#[test]
fn every_planted_fault_is_caught_by_what_it_does() {
    let only = number("LEVELHEAD_FAULT");
    let seeds = number("LEVELHEAD_SEED").map_or(0..WITHIN, |seed| seed..seed + 1);
    let faults = (0..).zip(Fault::all());
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
                 replay: LEVELHEAD_FAULT={number} cargo test -p kvssd --test drive -- --nocapture \
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
        Fault::Pages(InPages::SkipChecksum) => damage_is_caught(seed, Some(fault)),
        Fault::Pages(InPages::BelieveStalePages) => misplaced_pages_are_caught(seed, Some(fault)),
        _ => run_trial(seed, &shape(seed, fault), Some(fault)).map(|_| ()),
    };
    match catch_unwind(AssertUnwindSafe(trial)) {
        Ok(Ok(())) => None,
        Ok(Err(complaint)) => Some(Ok(complaint)),
        Err(panic) => Some(Err(::planted::panic_text(&*panic).to_owned())),
    }
}

/// Returns a drive that a fault can harm, and clients that will detect it.
fn shape(seed: u64, fault: Fault) -> Shape {
    match fault {
        Fault::Pages(InPages::ReleaseEarly | InPages::ReadWithoutEpoch) => late_reads(seed, 1_400),
        // Moved objects are being overwritten.
        Fault::Pages(InPages::CollectWithoutRecheck) => late_reads(seed, 500),
        // One of the designs with filters.
        Fault::Tree(InTree::FilterForgetsKeys) => {
            Shape { scanners: 0, ..Shape::of_seed(11 * seed + 3) }
        }
        Fault::Tree(InTree::ColumnForgetsKeys) => {
            Shape { scanners: 0, ..Shape::of_seed(seed).with_columns(seed) }
        }
        Fault::Table(_) => Shape::of_hash_seed(seed),
        // Scanners might detect a loss before other clients, and report it as their own symptom.
        Fault::Pages(
            InPages::TrimLogEarly
            | InPages::TakeTornGroup
            | InPages::ReplayTrimmedLog
            | InPages::CommitBeforeSegments
            | InPages::DeleteNotLogged
            | InPages::AcknowledgeEarly
            | InPages::ReleaseBeforeMoved,
        )
        | Fault::Tree(
            InTree::SequenceGoesBack | InTree::ReleaseBeforeNoted | InTree::TrimLogBeforeCommit,
        ) => Shape { scanners: 0, ..Shape::of_restless_log_seed(seed) },
        Fault::Pages(InPages::CommitBeforeTables) => {
            Shape { scanners: 0, ..Shape::of_restless_tables_seed(seed) }
        }
        Fault::Tree(InTree::FlushOutOfTurn) => side_by_side(seed),
        Fault::Tree(InTree::CompactNewestAlone) => {
            Shape { scanners: 0, ..Shape::of_tables_seed(seed) }
        }
        Fault::Tree(InTree::MergedL0GoesFirst) => Shape::of_crowded_tables_seed(seed),
        Fault::Tree(InTree::CacheForgetsGenerations) => {
            Shape { scanners: 0, ..Shape::of_seed(11 * seed + 3) }.with_caches()
        }
        Fault::Tree(InTree::DiscardedIsPublished) => yielding(seed),
        Fault::Tree(InTree::DiscardedKeepsClaim) => {
            let mut shape = yielding(seed);
            let IndexOptions::Lsm(options) = &mut shape.engine else { unreachable!("a tree") };
            // L0 cannot be compacted within itself, and has time to fill up.
            options.tables.table_bytes = 8 << 10;
            options.tables.max_compaction_bytes = 8 << 10;
            Shape { cuts: Cuts::Seldom { longest: Nanos::from_millis(3_000) }, ..shape }
        }
        Fault::Pages(InPages::TableBeforeLog) => Shape::of_restless_hash_log_seed(seed),
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
