//! Iterators: the pairs of a snapshot in key order (IterKVSSD, SYSTOR'23).
//!
//! A Next merges to the next key that has a value; with prefetch degree D, it starts the read of
//! the value of the pair D positions ahead; then it waits for its own pair's value. Segments of
//! levels that are not in memory are read when a cursor reaches them, or, with index prefetch,
//! while the previous segment is in use. With index prefetch, readahead never blocks a command: if
//! the merge needs a segment that has not arrived, it continues at the next command. Without index
//! prefetch, the merge reads segments when it reaches them, also during readahead. A command that
//! waits for a prefetched page makes that read urgent.
//!
//! Invariants: the pairs that an iterator returns depend only on its snapshot, not on degree,
//! prefetch or concurrent work; reads in flight hold the snapshot, so its extents are kept until
//! they end.

pub(crate) mod buffer;
pub(crate) mod index_reads;
pub(crate) mod readahead;
pub(crate) mod values;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use runtime::{JoinHandle, Nanos, PageImage};

use super::cursor::{Cursors, Direction, Target};
use super::snapshot::{Hold, Snapshot};
use super::value_reads::{Fetch, Item, Pages};
use crate::effort::Effort;
use crate::engine::{Engine, Inner};
use crate::error::EngineError;
use crate::format::entry::Mapping;
use crate::format::value::Value;
use crate::iterate::iterator::buffer::Buffer;
use crate::iterate::iterator::readahead::Readahead;
use crate::medium::Medium;
use crate::operations::check_key;
use crate::options::IteratorOptions;
use crate::version::location::{IndexPage, Piece};

/// The result of an iterator command.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The iterator is at this pair.
    Pair(Box<[u8]>, Value),
    /// The iterator is past the last pair.
    End,
    /// The skip budget of deleted keys of one command is used up; the caller repeats the command.
    Again,
}

/// An iterator over a snapshot of the store, in key order.
pub struct EngineIterator<M: Medium> {
    pub(crate) inner: Rc<Inner<M>>,
    pub(crate) hold: Rc<Hold>,
    options: IteratorOptions,
    /// The smallest key that descending Nexts return.
    lower_bound: Option<Box<[u8]>>,
    upper_bound: Option<Box<[u8]>>,
    position: Option<Position>,
    buffer: Buffer,
    pages: Rc<RefCell<Pages>>,
    /// The length of the longest value so far in bytes, by which buffer space is estimated.
    longest: Cell<u32>,
    /// Whether only keys are wanted: no value is read.
    is_of_keys: bool,
    /// The number of tombstones that the merge passed.
    stepped_over: Cell<u64>,
}

/// The position of an iterator.
struct Position {
    cursors: Cursors,
    /// Prefetched segments, by level.
    ahead: Vec<Option<Ahead>>,
    /// Segments that were read along with others, by level.
    along: Vec<Readahead>,
    /// Pairs that the merge has passed and no command has returned.
    ring: VecDeque<Item>,
    /// The number of pairs that the merge passed since the Seek.
    merged: u32,
    /// Whether the merge has reached the end.
    is_at_end: bool,
}

struct Ahead {
    at: IndexPage,
    page: Asked,
}

/// A prefetched segment or columnar table.
enum Asked {
    /// A page that was in the cache.
    Cached(PageImage),
    UnderWay(JoinHandle<Result<Piece, EngineError>>),
}

impl Asked {
    fn has_come(&self) -> bool {
        match self {
            Self::Cached(_) => true,
            Self::UnderWay(read) => read.is_finished(),
        }
    }
}

impl Position {
    /// Returns the number of pairs since the Seek that commands have returned or are about to
    /// return.
    fn returned(&self) -> u32 {
        self.merged - self.ring.len() as u32
    }
}

/// The result of a merge step.
enum Progress {
    Item(Item),
    End,
    /// The skip budget is used up.
    Budget,
    /// A segment has not arrived yet.
    Missing,
}

impl<M: Medium> Engine<M> {
    /// Creates an iterator over a snapshot of the current state, in key order up to `upper_bound`
    /// (exclusive). Dropping the iterator releases the resources it holds.
    ///
    /// # Errors
    /// [`EngineError::IteratorMemory`] if there is no memory for its buffer.
    pub fn create_iterator(
        &self,
        upper_bound: Option<&[u8]>,
    ) -> Result<EngineIterator<M>, EngineError> {
        let options = self.inner.iterator_options.get();
        let hold = self.inner.take_snapshot(options.first_buffer())?;
        Ok(EngineIterator::new(&self.inner, hold, options, None, upper_bound))
    }
}

impl<M: Medium> EngineIterator<M> {
    /// Creates an iterator over the snapshot of `hold`, which has room for the iterator's buffer.
    pub(crate) fn new(
        inner: &Rc<Inner<M>>,
        hold: Rc<Hold>,
        options: IteratorOptions,
        lower_bound: Option<&[u8]>,
        upper_bound: Option<&[u8]>,
    ) -> Self {
        inner.stats.borrow_mut().iterators.created += 1;
        let buffer = Buffer::new(&options);
        let most = options.pages_kept(buffer.pages(&inner.store.shape));
        Self {
            inner: Rc::clone(inner),
            hold,
            options,
            lower_bound: lower_bound.map(Into::into),
            upper_bound: upper_bound.map(Into::into),
            position: None,
            buffer,
            pages: Rc::new(RefCell::new(Pages::new(most))),
            longest: Cell::new(inner.surroundings.expected_value_bytes),
            is_of_keys: false,
            stepped_over: Cell::new(0),
        }
    }

    /// Makes the iterator return keys only, like a `RocksDB` iterator that does not read blob
    /// files: no value is read, and the values of pairs are empty.
    #[must_use]
    pub fn of_keys(mut self) -> Self {
        self.is_of_keys = true;
        self
    }

    /// Returns the number of tombstones that the iterator passed since its creation.
    pub fn stepped_over(&self) -> u64 {
        self.stepped_over.get()
    }

    /// Moves to the first pair at or after `key` and reads it; Nexts ascend from there. `work` is
    /// processor time that the caller owes.
    ///
    /// # Errors
    /// [`EngineError::KeyLength`], [`EngineError::SnapshotTooOld`], [`EngineError::Corrupt`].
    pub async fn seek(&mut self, key: &[u8], work: Nanos) -> Result<Step, EngineError> {
        check_key(key)?;
        self.seek_to(&Target::AtOrAfter(key.into()), work).await
    }

    /// Moves to the last pair whose key is less than `key` and the upper bound, or to the last pair
    /// of all, and reads it; Nexts descend from there to the lower bound. `work` is processor time
    /// that the caller owes.
    ///
    /// Costs the same as ascending: each index page that is not in memory is read once. In
    /// descending order, index pages are not read along with others.
    ///
    /// # Errors
    /// As [`Self::seek`].
    pub async fn seek_before(
        &mut self,
        key: Option<&[u8]>,
        work: Nanos,
    ) -> Result<Step, EngineError> {
        let ends = key.into_iter().chain(self.upper_bound.as_deref());
        let target = Target::Before(ends.min().map(Into::into));
        self.seek_to(&target, work).await
    }

    async fn seek_to(&mut self, target: &Target, work: Nanos) -> Result<Step, EngineError> {
        let snapshot = self.hold.get()?;
        self.inner.stats.borrow_mut().iterators.seeks += 1;
        self.leave();
        let mut effort = Effort::default();
        let format = self.inner.store.format;
        let lower_bound = self.lower_bound.as_deref();
        let cursors = Cursors::seek(&snapshot, target, lower_bound, format, &mut effort);
        let levels = snapshot.version.levels().len();
        let mut position = Position {
            cursors,
            ahead: (0..levels).map(|_| None).collect(),
            along: (0..levels).map(|_| Readahead::default()).collect(),
            ring: VecDeque::new(),
            merged: 0,
            is_at_end: false,
        };
        self.spend(work, effort).await;
        let read = self.read_all(&snapshot, &mut position).await?;
        self.inner.stats.borrow_mut().iterators.seek_index_reads += read;
        self.position = Some(position);
        let taken_in = Effort { page_reads: read as u32, ..Effort::default() };
        self.step(&snapshot, self.inner.store.cpu.costs.of(taken_in), 0).await
    }

    /// Moves to the next pair, in the direction of the Seek, and reads it. `ahead` is the number of
    /// further pairs that the same request will ask for: their values are read in parallel.
    ///
    /// # Errors
    /// As [`Self::seek`], and [`EngineError::NotPositioned`] before the first Seek.
    pub async fn next(&mut self, ahead: u32, work: Nanos) -> Result<Step, EngineError> {
        let snapshot = self.hold.get()?;
        if self.position.is_none() {
            return Err(EngineError::NotPositioned);
        }
        self.inner.stats.borrow_mut().iterators.nexts += 1;
        self.step(&snapshot, work, ahead).await
    }

    async fn step(
        &mut self,
        snapshot: &Rc<Snapshot>,
        work: Nanos,
        ahead: u32,
    ) -> Result<Step, EngineError> {
        let mut position = self.position.take().expect("a command begins at a position");
        let outcome = self.step_from(&mut position, snapshot, work, ahead).await;
        self.position = Some(position);
        outcome
    }

    async fn step_from(
        &self,
        position: &mut Position,
        snapshot: &Rc<Snapshot>,
        work: Nanos,
        ahead: u32,
    ) -> Result<Step, EngineError> {
        let mut effort = Effort::default();
        let mut budget = self.options.skip_budget;
        if position.ring.is_empty() {
            match self.merge_on(position, snapshot, &mut budget, &mut effort, true).await? {
                Progress::Item(item) => position.ring.push_back(item),
                Progress::End => {
                    self.spend(work, effort).await;
                    return Ok(Step::End);
                }
                Progress::Budget | Progress::Missing => {
                    self.inner.stats.borrow_mut().iterators.skips_cut_short += 1;
                    self.spend(work, effort).await;
                    return Ok(Step::Again);
                }
            }
        }
        let item = position.ring.pop_front().expect("there is one now");
        let was_asked_for = matches!(item.value, Fetch::UnderWay(_));
        // The command's own read starts before the reads of later pairs.
        let item =
            self.start(item, snapshot, ahead > 0 || self.options.degree(position.returned()) > 0);
        self.look_ahead(position, snapshot, ahead, &mut budget, &mut effort).await;
        self.spend(work, effort).await;
        let is_apart = !matches!(item.value, Fetch::Ready(_));
        let (key, value) = self.finish(item, was_asked_for).await?;
        self.inner.take_in(u32::from(is_apart)).await;
        self.longest.set(self.longest.get().max(value.len()));
        if is_apart && self.buffer.note_read(self.bytes_of_value(value.len().into())) {
            self.grow_buffer();
        }
        Ok(Step::Pair(key, value))
    }

    /// Starts reads of the values of later pairs: `ahead` pairs of this request, or the prefetch
    /// degree, whichever is more. Errors are ignored here; the command that reaches the damaged
    /// page reports them.
    async fn look_ahead(
        &self,
        position: &mut Position,
        snapshot: &Rc<Snapshot>,
        ahead: u32,
        budget: &mut u32,
        effort: &mut Effort,
    ) {
        if self.is_of_keys {
            return; // no value reads to wait for
        }
        let degree = self.options.degree(position.returned());
        let most = ahead.max(degree).min(self.values_in_buffer()) as usize;
        while position.ring.len() < most && self.under_way() <= most && !position.is_at_end {
            // Without index prefetch the merge reads segments when it reaches them.
            let may_wait = !self.options.index_prefetch;
            match self.merge_on(position, snapshot, budget, effort, may_wait).await {
                Ok(Progress::Item(item)) => {
                    let is_asked_for = position.ring.len() < ahead as usize;
                    position.ring.push_back(self.start_ahead(item, snapshot, is_asked_for));
                }
                Ok(Progress::End | Progress::Budget | Progress::Missing) | Err(_) => break,
            }
        }
    }

    /// Merges to the next key that has a value.
    async fn merge_on(
        &self,
        position: &mut Position,
        snapshot: &Rc<Snapshot>,
        budget: &mut u32,
        effort: &mut Effort,
        may_wait: bool,
    ) -> Result<Progress, EngineError> {
        loop {
            if position.is_at_end {
                return Ok(Progress::End);
            }
            if *budget == 0 {
                return Ok(Progress::Budget);
            }
            if !self.supply(position, snapshot, effort, may_wait).await? {
                return Ok(Progress::Missing);
            }
            let popped = position.cursors.pop(snapshot, effort);
            let direction = position.cursors.direction();
            let is_within = |key: &[u8]| self.is_within(key, direction);
            let Some((key, merged)) = popped.filter(|(key, _)| is_within(key)) else {
                position.is_at_end = true;
                return Ok(Progress::End);
            };
            self.prefetch_index(position, snapshot);
            let value = match merged {
                Mapping::Deleted => {
                    *budget -= 1;
                    self.inner.stats.borrow_mut().iterators.skipped += 1;
                    self.stepped_over.set(self.stepped_over.get() + 1);
                    continue;
                }
                _ if self.is_of_keys => Fetch::Ready(Value::from_bytes(&[])),
                Mapping::Value(value) => Fetch::Ready(value),
                Mapping::At(pointer) => Fetch::Demand(pointer),
            };
            let place = if let Fetch::Demand(pointer) = value { Some(pointer) } else { None };
            let to_cache = place.filter(|_| position.merged < self.options.cached_pairs);
            position.merged = position.merged.saturating_add(1);
            return Ok(Progress::Item(Item { key, value, to_cache }));
        }
    }

    /// Whether `key` is within the bound in the given direction.
    fn is_within(&self, key: &[u8], direction: Direction) -> bool {
        match direction {
            Direction::Up => self.upper_bound.as_ref().is_none_or(|end| *key < **end),
            Direction::Down => self.lower_bound.as_ref().is_none_or(|least| *key >= **least),
        }
    }

    /// Leaves the current position. Values that were prefetched for it are wasted.
    fn leave(&mut self) {
        if let Some(position) = self.position.take() {
            let wasted = position.ring.iter();
            let wasted = wasted.filter(|item| matches!(item.value, Fetch::UnderWay(_))).count();
            self.inner.stats.borrow_mut().iterators.value_prefetches_wasted += wasted as u64;
        }
    }

    async fn spend(&self, work: Nanos, effort: Effort) {
        let cpu = &self.inner.store.cpu;
        cpu.cores.spend(work + cpu.costs.of(effort)).await;
    }
}

impl<M: Medium> Drop for EngineIterator<M> {
    fn drop(&mut self) {
        self.leave();
        self.hold.give_buffer_back(self.buffer.bytes());
    }
}
