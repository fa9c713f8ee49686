//! A compaction that somebody asks for: `RocksDB`'s manual compaction (`CompactRange`), Pebble's `Compact`.
//!
//! The tasks that compact and collect do the work. Here is what they are asked for, one thing at a time: to bring a level down,
//! or to collect extents that are worth it. Each is bounded when it is asked for (by the last key of the level, by the newest extent), so
//! that it ends however much is written meanwhile.
//!
//! Levels go down from the first on, so each is rewritten once. What was written, or moved by the collection of garbage, after
//! a level was asked for may stay above the last one.

use std::cell::{Cell, RefCell};

use pages::effort::Effort;
use pages::error::EngineError;
use pages::medium::{ExtentId, Medium, Stream};
use pages::operations::{Fullness, UsedUp};
use pages::store::extent::{Extent, State};
use runtime::Semaphore;

use crate::format::meta_segment::MetaSegment;
use crate::lsm::collect::WORTH_COPYING;
use crate::lsm::level::Level;
use crate::lsm::{Engine, Inner};

/// Extents of objects with more than this share in use are left alone by a compaction that is asked for: to gain a byte it moves
/// no more than three.
const WORTH_ASKING: f64 = 0.75;

/// What background work is asked for.
pub(crate) struct Manual {
    /// One caller at a time.
    turn: Semaphore,
    request: RefCell<Option<Request>>,
    /// Whether the last compaction was of the level that is asked for: then one that is due goes first.
    went_last: Cell<bool>,
}

/// One thing that is asked for.
#[derive(Debug, PartialEq, Eq)]
enum Request {
    /// A level is to go down.
    Level(Descent),
    /// Extents that were opened after `tried`, up to `newest`, are to be collected. Each is tried once, the oldest first.
    Garbage { tried: u64, newest: u64 },
}

/// How far a level has come down.
#[derive(Debug, PartialEq, Eq)]
struct Descent {
    level: usize,
    /// What was there before this key when it was asked for is below.
    next: Box<[u8]>,
    /// The last key that was there then.
    last: Box<[u8]>,
    is_done: bool,
}

impl Descent {
    /// The keys from `begin` on and before `end` went down; no `end` is that of the level.
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

    /// The level that is to go down, with the key it goes on at.
    fn descending(&self) -> Option<(usize, Box<[u8]>)> {
        match &*self.request.borrow() {
            Some(Request::Level(descent)) if !descent.is_done => {
                Some((descent.level, descent.next.clone()))
            }
            _ => None,
        }
    }

    /// The level that is to go down.
    pub(crate) fn level(&self) -> Option<usize> {
        self.descending().map(|(level, _)| level)
    }

    /// Whether that goes first now, where another level is due as well.
    pub(crate) fn goes_first(&self) -> bool {
        !self.went_last.get()
    }

    /// A task has begun to compact `level`.
    pub(crate) fn note_turn(&self, level: usize) {
        self.went_last.set(self.level() == Some(level));
    }

    /// The segment at which a slice of `level` begins, if it is asked for.
    pub(crate) fn start_in(&self, level: usize, segments: &Level) -> Option<usize> {
        let (_, next) = self.descending().filter(|(asked, _)| *asked == level)?;
        // A flush may have put other bounds between segments: the one that has the key.
        Some(segments.covering(&next, None, &mut Effort::default()).unwrap_or(0))
    }

    /// The keys of `level` from `begin` on and before `end` went down while nobody else changed the level.
    pub(crate) fn went_down(&self, level: usize, begin: &[u8], end: Option<&[u8]>) {
        if let Some(Request::Level(descent)) = &mut *self.request.borrow_mut()
            && descent.level == level
        {
            descent.went(begin, end);
        }
    }

    /// Whether somebody waits for background work.
    pub(crate) fn is_asked(&self) -> bool {
        self.request.borrow().is_some()
    }

    fn ask(&self, request: Request) -> Asked<'_> {
        let before = self.request.replace(Some(request));
        assert_eq!(before, None, "one thing is asked for at a time");
        Asked(self)
    }
}

/// Something is asked for until this is dropped.
struct Asked<'a>(&'a Manual);

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.0.request.take();
    }
}

impl<M: Medium> Engine<M> {
    /// Flushes what is in memtables, compacts all levels into the last one and collects extents of which at least a quarter is
    /// garbage. Others go on meanwhile; what they write may stay above the last level. Levels of tables are left to their own rules. Where space is
    /// short, collection is due anyway and goes by its own rules: it may go on behind this.
    ///
    /// Who calls it while another call is under way waits for that. If the future is dropped, background work leaves it at
    /// what has been done.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`]; [`EngineError::Corrupt`] if the end of a level cannot be read; [`EngineError::Full`] if there is no
    /// space for what a compaction writes, and none to be had.
    pub async fn compact(&self) -> Result<(), EngineError> {
        let inner = &*self.inner;
        let _turn = inner.manual.turn.acquire(1).await;
        inner.bring_all_down().await?;
        if inner.collect_what_pays().await? {
            inner.bring_all_down().await?;
        }
        Ok(())
    }
}

impl<M: Medium> Inner<M> {
    /// Brings what is in memtables and levels now into the last level.
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

    /// Brings what is in a level now into the one below.
    async fn bring_down(&self, level: usize) -> Result<(), EngineError> {
        let Some(last) = self.last_key(level).await? else { return Ok(()) };
        let descent = Descent { level, next: Box::default(), last, is_done: false };
        let _asked = self.manual.ask(Request::Level(descent));
        self.store.work.notify_all();
        let is_down =
            || self.manual.level().is_none() || self.version.borrow().level(level).len() == 0;
        self.wait_for_background(is_down).await
    }

    /// The last key of a level.
    async fn last_key(&self, level: usize) -> Result<Option<Box<[u8]>>, EngineError> {
        // The page that is read is not to come to mean another one.
        let _guard = self.store.epochs.enter();
        let version = self.version.borrow().clone();
        let level = version.level(level);
        let Some(last) = level.len().checked_sub(1) else { return Ok(None) };
        let images = self.load(level, last..last + 1).await?;
        let image = images.last().expect("a segment has a page");
        let segment = MetaSegment::new(image.bytes(), self.store.format).expect("it was checked");
        Ok(segment.len().checked_sub(1).map(|last| segment.key(last).into()))
    }

    /// Has extents collected that are worth it, of those that there are now. Whether objects were moved.
    async fn collect_what_pays(&self) -> Result<bool, EngineError> {
        let moved = || self.stats.borrow().gc_objects_moved;
        let before = moved();
        let newest = self.store.extents.borrow().opened();
        let _asked = self.manual.ask(Request::Garbage { tried: 0, newest });
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
        // A store that is short of extents collects what it can in any case.
        let is_over =
            || self.is_collection_due() || self.asked_victim().is_none() && !is_collecting();
        self.wait_for_background(is_over).await?;
        Ok(moved() > before)
    }

    /// The extent that a compaction that is asked for has collected next.
    pub(crate) fn asked_victim(&self) -> Option<ExtentId> {
        let Some(Request::Garbage { tried, newest }) = *self.manual.request.borrow() else {
            return None;
        };
        if !self.store.is_healthy() {
            return None;
        }
        let extents = self.store.extents.borrow();
        let is_worth_it = |id: ExtentId| {
            let extent = extents.get(id);
            let most = if extent.stream == Stream::Objects { WORTH_ASKING } else { WORTH_COPYING };
            let is_asked_for = extent.age > tried && extent.age <= newest;
            let is_of_use = || extents.utilisation(extent) < most && !self.store.is_pinned(id);
            let is_closed = extent.state == State::Closed;
            is_closed && is_asked_for && is_of_use() && self.can_be_collected(id)
        };
        let worth_it = extents.iter().filter(|(id, _)| is_worth_it(*id));
        worth_it.min_by_key(|(_, extent)| extent.age).map(|(id, _)| id)
    }

    /// The same, which is going to be collected. Who asked is told when there is none left.
    pub(crate) fn take_asked_victim(&self) -> Option<ExtentId> {
        let Some(id) = self.asked_victim() else {
            if self.manual.is_asked() {
                self.store.work.notify_all();
            }
            return None;
        };
        let age = self.store.extents.borrow().get(id).age;
        if let Some(Request::Garbage { tried, .. }) = &mut *self.manual.request.borrow_mut() {
            *tried = age;
        }
        Some(id)
    }

    /// Waits for what background work is asked for.
    async fn wait_for_background(
        &self,
        mut is_done: impl FnMut() -> bool,
    ) -> Result<(), EngineError> {
        let is_stuck = || self.front.fullness.get() == Fullness::Stuck;
        let is_over = || is_done() || !self.store.is_healthy() || is_stuck();
        self.store.work.wait_until(is_over).await;
        self.store.check_healthy()?;
        if is_done() { Ok(()) } else { Err(EngineError::Full(UsedUp::Space)) }
    }
}
