//! Manual compaction, like `RocksDB`'s `CompactRange` and Pebble's `Compact`.
//!
//! The compaction and collection tasks do the work. This module holds the request, one at a time:
//! compact a level down, or collect the extents that are worth it. Each request is bounded when it
//! is made (by the last key of the level, or by the newest extent), so that it ends no matter how
//! much is written meanwhile.
//!
//! A store that is short of extents also collects for its writers; it alternates between the
//! writers' needs and the request. A store that was full before stays marked as full; this is
//! reconsidered once the collector has found nothing more to do, or has had as many turns as there
//! are extents.
//!
//! Levels are compacted from the first to the last, so each is rewritten once. Entries that were
//! written, or moved by garbage collection, after a level was requested may stay above the last
//! level.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use runtime::{Notify, Semaphore};

use crate::effort::Effort;
use crate::engine::{Engine, Inner};
use crate::error::{EngineError, UsedUp};
use crate::format::meta_segment::MetaSegment;
use crate::gc::sweep::WORTH_COLLECTING;
use crate::gc::values::WORTH_COPYING;
use crate::medium::{ExtentId, Medium, MediumError, Stream};
use crate::operations::Fullness;
use crate::space::extent::{Extent, State};
use crate::version::level::Level;

/// The largest live share of an extent of objects that a manual compaction collects while there is
/// room: it moves at most three bytes to free one.
const WORTH_ASKING: f64 = 0.75;

/// The manual compaction request, if there is one.
pub(crate) struct Manual {
    /// Admits one caller at a time.
    turn: Semaphore,
    request: RefCell<Option<Request>>,
    /// Whether the last compaction was of the requested level: then a level that is due goes first.
    went_last: Cell<bool>,
}

/// A unit of requested work.
#[derive(Debug, PartialEq, Eq)]
enum Request {
    /// Compact a level down.
    Level(Descent),
    /// Collect extents.
    Garbage(Garbage),
}

/// A request to collect the current extents that are worth it, and to let the collection that is
/// due come to its end.
#[derive(Debug, PartialEq, Eq)]
struct Garbage {
    /// The age of the newest extent of the request.
    newest: u64,
    /// The ages of extents that were collected or tried: each is tried once.
    tried: BTreeSet<u64>,
    /// Whether the last collected extent was one of the request: then one that writers need goes
    /// first, if collection is due.
    went_last: bool,
    /// How often the collector has looked for work since no extent of the request was left.
    looks: u32,
}

impl Garbage {
    fn up_to(newest: u64) -> Request {
        let tried = BTreeSet::new();
        Request::Garbage(Self { newest, tried, went_last: false, looks: 0 })
    }

    fn asks_for(&self, extent: &Extent) -> bool {
        extent.age <= self.newest && !self.tried.contains(&extent.age)
    }
}

/// The progress of a level's compaction.
#[derive(Debug, PartialEq, Eq)]
struct Descent {
    level: usize,
    /// Keys below this key that were in the level at the time of the request are in lower levels
    /// now.
    next: Box<[u8]>,
    /// The last key of the level at the time of the request.
    last: Box<[u8]>,
    is_done: bool,
}

impl Descent {
    /// Records that the keys from `begin` (inclusive) to `end` (exclusive) were compacted down.
    /// `None` is the end of the level.
    fn went(&mut self, begin: &[u8], end: Option<&[u8]>) {
        if *begin > *self.next {
            return;
        }
        match end {
            Some(end) if *end <= *self.last => {
                if *end > *self.next {
                    self.next = end.into();
                }
            }
            _ => self.is_done = true,
        }
    }
}

impl Manual {
    pub(crate) fn new() -> Self {
        let (turn, request) = (Semaphore::new(1), RefCell::default());
        Self { turn, request, went_last: Cell::new(false) }
    }

    /// Returns the requested level and the key at which its compaction continues.
    fn descending(&self) -> Option<(usize, Box<[u8]>)> {
        match &*self.request.borrow() {
            Some(Request::Level(descent)) if !descent.is_done => {
                Some((descent.level, descent.next.clone()))
            }
            _ => None,
        }
    }

    /// Returns the requested level.
    pub(crate) fn level(&self) -> Option<usize> {
        self.descending().map(|(level, _)| level)
    }

    /// Whether the requested level goes first now if another level is due too.
    pub(crate) fn goes_first(&self) -> bool {
        !self.went_last.get()
    }

    /// Notes that a task has begun to compact `level`.
    pub(crate) fn note_turn(&self, level: usize) {
        self.went_last.set(self.level() == Some(level));
    }

    /// Whether an extent of the request goes first now if collection is due.
    pub(crate) fn garbage_goes_first(&self) -> bool {
        match &mut *self.request.borrow_mut() {
            Some(Request::Garbage(garbage)) => !std::mem::take(&mut garbage.went_last),
            _ => false,
        }
    }

    /// Whether the request includes extents that were not tried yet.
    pub(crate) fn asks_for_garbage(&self) -> bool {
        matches!(&*self.request.borrow(), Some(Request::Garbage(garbage)) if garbage.newest > 0)
    }

    /// Notes that the collector has found nothing to do, and wakes the caller of the request.
    pub(crate) fn note_rest(&self, work: &Notify) {
        if let Some(Request::Garbage(garbage)) = &mut *self.request.borrow_mut() {
            garbage.looks = u32::MAX;
        }
        if self.is_asked() {
            work.notify_all();
        }
    }

    /// Returns the segment at which a slice of `level` begins, if the level is requested.
    pub(crate) fn start_in(&self, level: usize, segments: &Level) -> Option<usize> {
        let (_, next) = self.descending().filter(|(asked, _)| *asked == level)?;
        // A flush may have moved the bounds of segments, so the segment is found by its key.
        Some(segments.covering(&next, None, &mut Effort::default()).unwrap_or(0))
    }

    /// Records that the keys of `level` from `begin` (inclusive) to `end` (exclusive) were
    /// compacted down. Requires: no other task changed the level meanwhile.
    pub(crate) fn went_down(&self, level: usize, begin: &[u8], end: Option<&[u8]>) {
        if let Some(Request::Level(descent)) = &mut *self.request.borrow_mut()
            && descent.level == level
        {
            descent.went(begin, end);
        }
    }

    /// Whether a caller waits for background work.
    pub(crate) fn is_asked(&self) -> bool {
        self.request.borrow().is_some()
    }

    /// Makes a request. `work` is notified when the request ends.
    fn ask<'a>(&'a self, request: Request, work: &'a Notify) -> Asked<'a> {
        let before = self.request.replace(Some(request));
        assert_eq!(before, None, "one thing is asked for at a time");
        Asked { manual: self, work }
    }
}

/// A request that is active until it is dropped.
struct Asked<'a> {
    manual: &'a Manual,
    work: &'a Notify,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if let Some(Request::Garbage(_)) = self.manual.request.take() {
            self.work.notify_all(); // deletes may wait for the end of the request
        }
    }
}

impl<M: Medium> Engine<M> {
    /// Flushes all memtables, compacts all levels into the last one and collects extents with
    /// enough garbage: a quarter of an extent of objects, a third of one of the index, or a
    /// twentieth of either while space is short. Other operations continue meanwhile; their writes
    /// may stay above the last level. Levels of tables are not compacted here: they follow their
    /// own rules. If the store was full and garbage was found, puts are accepted again when this
    /// returns.
    ///
    /// A concurrent call waits for the call in progress. If the future is dropped, background work
    /// stops the request where it is.
    ///
    /// # Errors
    /// - [`EngineError::ReadOnly`] if the store is read-only.
    /// - [`EngineError::Medium`] if the medium lacks room.
    /// - [`EngineError::Corrupt`] if the end of a level cannot be read.
    /// - [`EngineError::Full`] if a compaction has no space to write to and none can be freed.
    pub async fn compact(&self) -> Result<(), EngineError> {
        let inner = &*self.inner;
        let _turn = inner.manual.turn.acquire(1).await;
        inner.bring_all_down().await?;
        let newest = inner.store.extents.borrow().opened();
        if inner.collect_garbage(newest).await? {
            inner.bring_all_down().await?;
        }
        if inner.front.fullness.get() != Fullness::Room {
            // The moved objects are flushed, and their extents can be released by the collector.
            inner.collect_garbage(0).await?;
            inner.take_puts_again();
        }
        // The next opening of the store must find this state.
        inner.wait_for_commits().await
    }
}

impl<M: Medium> Inner<M> {
    /// Compacts the current contents of memtables and levels into the last level.
    async fn bring_all_down(&self) -> Result<(), EngineError> {
        let until = self.front.flushes_until_empty();
        let is_flushed = || {
            self.front.freeze_until(until);
            self.front.has_flushed(until)
        };
        self.wait_for_background(is_flushed).await?;
        if self.options.is_leveled() {
            return Ok(());
        }
        for level in 0..self.options.levels as usize - 1 {
            self.bring_down(level).await?;
        }
        Ok(())
    }

    /// Compacts the current contents of a level into the level below.
    async fn bring_down(&self, level: usize) -> Result<(), EngineError> {
        let Some(last) = self.last_key(level).await? else { return Ok(()) };
        let descent = Descent { level, next: Box::default(), last, is_done: false };
        let _asked = self.manual.ask(Request::Level(descent), &self.store.work);
        self.store.work.notify_all();
        let is_down =
            || self.manual.level().is_none() || self.version.borrow().level(level).len() == 0;
        self.wait_for_background(is_down).await
    }

    /// Reads the last key of a level.
    async fn last_key(&self, level: usize) -> Result<Option<Box<[u8]>>, EngineError> {
        // Held so that the page number cannot be reused for another page during the read.
        let _guard = self.store.epochs.enter();
        let version = self.version.borrow().clone();
        let level = version.level(level);
        let Some(last) = level.len().checked_sub(1) else { return Ok(None) };
        let images = self.load(level, last..last + 1).await?;
        let image = images.last().expect("a segment has a page");
        let segment = MetaSegment::new(image.bytes(), self.store.format).expect("it was checked");
        Ok(segment.len().checked_sub(1).map(|last| segment.key(last).into()))
    }

    /// Collects the extents up to age `newest` that are worth it, and lets collection that is due
    /// come to its end. Returns whether objects were moved.
    async fn collect_garbage(&self, newest: u64) -> Result<bool, EngineError> {
        let moved = || self.stats.borrow().gc_objects_moved;
        let before = moved();
        let _asked = self.manual.ask(Garbage::up_to(newest), &self.store.work);
        self.store.work.notify_all();
        let is_collecting = || {
            let extents = self.store.extents.borrow();
            let moved = self.store.moved.borrow();
            let is_one = |(id, extent): (ExtentId, &Extent)| {
                let is_emptied = || moved.iter().any(|(moved, _)| *moved == id);
                extent.state == State::Collecting && extent.age <= newest && !is_emptied()
            };
            extents.iter().any(is_one)
        };
        let is_over = || {
            let is_due = self.is_collection_due() && !self.has_looked_enough();
            !is_due && self.asked_victim().is_none() && !is_collecting()
        };
        self.wait_for_background(is_over).await?;
        Ok(moved() > before)
    }

    /// Whether the collector, with no extent of the request left, has found nothing to do, or has
    /// had as many turns as there are extents: with concurrent writers it may never run out of
    /// work.
    fn has_looked_enough(&self) -> bool {
        match &*self.manual.request.borrow() {
            Some(Request::Garbage(garbage)) => garbage.looks > self.store.shape.extents,
            _ => true,
        }
    }

    /// Returns the next extent of the request to collect: the one with the smallest live share.
    fn asked_victim(&self) -> Option<ExtentId> {
        let request = self.manual.request.borrow();
        let Some(Request::Garbage(garbage)) = &*request else { return None };
        if !self.store.is_healthy() {
            return None;
        }
        let extents = self.store.extents.borrow();
        let is_short = self.is_collection_due();
        let most = |extent: &Extent| match extent.stream {
            _ if is_short => WORTH_COLLECTING,
            Stream::Objects => WORTH_ASKING,
            _ => WORTH_COPYING,
        };
        extents.choose_victim(WORTH_COLLECTING, |id| {
            let extent = extents.get(id);
            let is_worth_it = || extents.utilisation(extent) < most(extent);
            let may_go = || !self.store.is_pinned(id) && self.can_be_collected(id);
            garbage.asks_for(extent) && is_worth_it() && may_go()
        })
    }

    /// Takes the next extent of the request to collect. While collection is due, every second turn
    /// is for the request. Notifies the caller if no extent is left.
    pub(crate) fn take_asked_victim(&self) -> Option<ExtentId> {
        if !self.manual.is_asked() {
            return None;
        }
        let victim = self.asked_victim();
        let age = victim.map(|id| self.store.extents.borrow().get(id).age);
        if let Some(Request::Garbage(garbage)) = &mut *self.manual.request.borrow_mut() {
            match age {
                Some(age) => {
                    garbage.tried.insert(age);
                    garbage.went_last = true;
                }
                None => garbage.looks = garbage.looks.saturating_add(1),
            }
        }
        if victim.is_none() {
            self.store.work.notify_all();
        }
        victim
    }

    /// Waits for requested background work.
    async fn wait_for_background(
        &self,
        mut is_done: impl FnMut() -> bool,
    ) -> Result<(), EngineError> {
        self.store.work.wait_until(|| is_done() || self.front.is_halted()).await;
        self.store.check_healthy()?;
        match is_done() {
            true => Ok(()),
            false if self.store.lacks_room() => Err(MediumError::NoSpace.into()),
            false => Err(EngineError::Full(UsedUp::Space)),
        }
    }
}
