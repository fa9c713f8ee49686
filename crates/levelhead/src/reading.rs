//! Open snapshots and ranges. They live inside the runtime; callers refer to them by number.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use engine::{EngineError, EngineIterator, EngineSnapshot, IndexPart, Step};
use runtime::{Handle, Nanos};

use crate::file_engine::{FileEngine, Files};

/// The maximum size of the pairs of one fetch, in bytes, not counting the last pair.
pub(crate) const MOST_BYTES: usize = 256 << 10;

pub(crate) type Pair = (Box<[u8]>, Vec<u8>);

/// The pairs of one fetch.
#[derive(Default)]
pub(crate) struct Fetched {
    pub pairs: Vec<Pair>,
    /// Tombstones between and before the pairs.
    pub stepped_over: u64,
    /// Whether the range has no more pairs.
    pub is_end: bool,
}

/// The instant of a range.
#[derive(Clone, Copy)]
pub(crate) enum Instant {
    Present,
    OfSnapshot(u64),
    /// The instant of another range.
    OfRange(u64),
}

/// The bounds of a range (`from` inclusive, `to` exclusive) and the kind of its items.
#[derive(Clone, Default)]
pub(crate) struct Limits {
    pub from: Box<[u8]>,
    pub to: Option<Box<[u8]>>,
    pub gives: Gives,
}

/// The kind of a range's items.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Gives {
    #[default]
    Pairs,
    /// Keys alone: values are not read, and are empty.
    Keys,
}

/// The limits of one fetch.
#[derive(Clone, Copy)]
pub(crate) struct Most {
    /// Pairs.
    pub pairs: usize,
    /// Tombstones; the last step may exceed the limit.
    pub deletions: u64,
}

/// The start position and direction of a range.
pub(crate) enum Beginning {
    /// Ascending from this key or the next one after it.
    Key(Box<[u8]>),
    /// Descending from the upper bound.
    Last,
}

/// The open snapshots and ranges, by number.
pub(crate) struct Reading {
    handle: Handle,
    last: Cell<u64>,
    snapshots: RefCell<BTreeMap<u64, FileSnapshot>>,
    ranges: RefCell<BTreeMap<u64, FileIterator>>,
}

type FileSnapshot = EngineSnapshot<Files>;
type FileIterator = EngineIterator<Files>;

fn iterator(snapshot: &FileSnapshot, limits: &Limits) -> Result<FileIterator, EngineError> {
    let iterator = snapshot.iterator(Some(&limits.from[..]), limits.to.as_deref())?;
    Ok(if limits.gives == Gives::Keys { iterator.of_keys() } else { iterator })
}

/// Returns the pair at `beginning`, or the next pair. `ahead` is the number of further pairs to
/// prefetch.
async fn step(
    iterator: &mut FileIterator,
    beginning: Option<Beginning>,
    ahead: usize,
) -> Result<Step, EngineError> {
    match beginning {
        Some(Beginning::Key(key)) => iterator.seek(&key, Nanos::ZERO).await,
        Some(Beginning::Last) => iterator.seek_before(None, Nanos::ZERO).await,
        None => iterator.next(ahead as u32, Nanos::ZERO).await,
    }
}

impl Reading {
    pub(crate) fn new(handle: &Handle) -> Self {
        let (snapshots, ranges) = (RefCell::default(), RefCell::default());
        Self { handle: handle.clone(), last: Cell::default(), snapshots, ranges }
    }

    fn number(&self) -> u64 {
        self.last.set(self.last.get() + 1);
        self.last.get()
    }

    /// Takes a snapshot and returns its number.
    pub(crate) fn begin_snapshot(&self, engine: &FileEngine) -> Result<u64, EngineError> {
        let snapshot = engine.snapshot()?;
        let number = self.number();
        self.snapshots.borrow_mut().insert(number, snapshot);
        Ok(number)
    }

    /// Returns an open snapshot.
    pub(crate) fn snapshot(&self, number: u64) -> FileSnapshot {
        self.snapshots.borrow().get(&number).expect("a snapshot that is read lives").clone()
    }

    /// Opens a range and returns its number.
    pub(crate) fn begin(
        &self,
        engine: &FileEngine,
        instant: Instant,
        limits: &Limits,
    ) -> Result<u64, EngineError> {
        let snapshot = match instant {
            Instant::Present => engine.snapshot()?,
            Instant::OfSnapshot(number) => self.snapshot(number),
            Instant::OfRange(number) => {
                let ranges = self.ranges.borrow();
                ranges.get(&number).expect("a range that is read has not ended").snapshot()
            }
        };
        let iterator = iterator(&snapshot, limits)?;
        let number = self.number();
        self.ranges.borrow_mut().insert(number, iterator);
        Ok(number)
    }

    /// Returns the next pairs of a range, starting at `beginning` if given, up to the limits `most`
    /// and [`MOST_BYTES`]. Yields to other tasks between pairs, however many tombstones precede
    /// them.
    pub(crate) async fn next(
        &self,
        number: u64,
        beginning: Option<Beginning>,
        most: Most,
    ) -> Result<Fetched, EngineError> {
        // Removes the iterator from the map meanwhile, so that only this task uses it.
        let taken = self.ranges.borrow_mut().remove(&number);
        let mut iterator = taken.expect("a range that is read has begun and not ended");
        let (mut pairs, mut bytes, mut beginning) = (Vec::new(), 0, beginning);
        let before = iterator.stepped_over();
        let outcome = loop {
            let stepped_over = iterator.stepped_over() - before;
            let is_much = bytes >= MOST_BYTES || stepped_over > most.deletions;
            if pairs.len() == most.pairs || is_much {
                break Ok(Fetched { pairs, stepped_over, is_end: false });
            }
            let ahead = most.pairs - pairs.len() - 1;
            self.handle.give_way().await;
            match step(&mut iterator, beginning.take(), ahead).await {
                Ok(Step::Pair(key, value)) => {
                    let value = Vec::from(value);
                    bytes += key.len() + value.len();
                    pairs.push((key, value));
                }
                Ok(Step::Again) => {}
                Ok(Step::End) => {
                    let stepped_over = iterator.stepped_over() - before;
                    break Ok(Fetched { pairs, stepped_over, is_end: true });
                }
                Err(error) => break Err(error),
            }
        };
        self.ranges.borrow_mut().insert(number, iterator);
        outcome
    }

    /// Returns the damaged part of the index, if `error` is due to one.
    pub(crate) fn damaged_part(&self, number: u64, error: &EngineError) -> Option<IndexPart> {
        let EngineError::Corrupt(page, _) = error else { return None };
        let ranges = self.ranges.borrow();
        let iterator = ranges.get(&number).expect("a range that is read has not ended");
        iterator.part_in(*page).ok().flatten()
    }

    /// Drops a snapshot.
    pub(crate) fn end_snapshot(&self, number: u64) {
        let ended = self.snapshots.borrow_mut().remove(&number);
        drop(ended);
    }

    /// Drops a range.
    pub(crate) fn end(&self, number: u64) {
        let ended = self.ranges.borrow_mut().remove(&number);
        drop(ended);
    }
}
