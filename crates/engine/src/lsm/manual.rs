//! A compaction that somebody asks for: `RocksDB`'s manual compaction (`CompactRange`), Pebble's `Compact`.
//!
//! The tasks that compact and collect do the work. Here is what they are asked for, one thing at a time: to bring a level down,
//! or to collect extents that are worth it. Each is bounded when it is asked for (by the last key of the level, by the newest extent), so
//! that it ends however much is written meanwhile.
//!
//! A store that is short of extents collects anyway, by what writers need: they and the request take turns then. How full the store is was said
//! before; it is said anew once the collector has found nothing more to do, or has looked as often as there are extents.
//!
//! Levels go down from the first on, so each is rewritten once. What was written, or moved by the collection of garbage, after
//! a level was asked for may stay above the last one.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use pages::effort::Effort;
use pages::error::EngineError;
use pages::medium::{ExtentId, Medium, MediumError, Stream};
use pages::operations::{Fullness, UsedUp};
use pages::store::extent::{Extent, State};
use pages::store::sweep::WORTH_COLLECTING;
use runtime::{Notify, Semaphore};

use crate::format::meta_segment::MetaSegment;
use crate::lsm::collect::WORTH_COPYING;
use crate::lsm::level::Level;
use crate::lsm::{Engine, Inner};

/// Extents of objects with more than this share in use are left alone by a compaction that is asked for, as long as there is room: to gain a
/// byte it moves no more than three.
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
    /// Extents are to be collected.
    Garbage(Garbage),
}

/// Extents of now that are worth it are to be collected, and what collection is due is to come to its end.
#[derive(Debug, PartialEq, Eq)]
struct Garbage {
    /// The age of the newest extent that is asked for.
    newest: u64,
    /// Ages of those that have had their turn: each has one.
    tried: BTreeSet<u64>,
    /// Whether one of them was collected last: then one goes first that writers need, where collection is due.
    went_last: bool,
    /// How often the collector has looked since for something to do where none was left of what is asked for.
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

    /// Whether an extent that is asked for goes first now, where collection is due.
    pub(crate) fn garbage_goes_first(&self) -> bool {
        match &mut *self.request.borrow_mut() {
            Some(Request::Garbage(garbage)) => !std::mem::take(&mut garbage.went_last),
            _ => false,
        }
    }

    /// Whether extents are asked for that were not tried yet.
    pub(crate) fn asks_for_garbage(&self) -> bool {
        matches!(&*self.request.borrow(), Some(Request::Garbage(garbage)) if garbage.newest > 0)
    }

    /// The collector has found nothing to do. Who asked is told.
    pub(crate) fn note_rest(&self, work: &Notify) {
        if let Some(Request::Garbage(garbage)) = &mut *self.request.borrow_mut() {
            garbage.looks = u32::MAX;
        }
        if self.is_asked() {
            work.notify_all();
        }
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

    /// Asks for something; `work` is told when that is over.
    fn ask<'a>(&'a self, request: Request, work: &'a Notify) -> Asked<'a> {
        let before = self.request.replace(Some(request));
        assert_eq!(before, None, "one thing is asked for at a time");
        Asked { manual: self, work }
    }
}

/// Something is asked for until this is dropped.
struct Asked<'a> {
    manual: &'a Manual,
    work: &'a Notify,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if let Some(Request::Garbage(_)) = self.manual.request.take() {
            self.work.notify_all(); // deletes may wait for it
        }
    }
}

impl<M: Medium> Engine<M> {
    /// Flushes what is in memtables, compacts all levels into the last one and collects extents of which at least a quarter is
    /// garbage; where space is short, of which a twentieth is, until it is short no more. Others go on meanwhile; what they write may stay above the
    /// last level. Levels of tables are left to their own rules. Of a store that was full puts are taken again when this returns, if there was garbage.
    ///
    /// Who calls it while another call is under way waits for that. If the future is dropped, background work leaves it at
    /// what has been done.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`]; [`EngineError::Medium`] if it lacks room; [`EngineError::Corrupt`] if the end of a level cannot be read; [`EngineError::Full`] if there is no
    /// space for what a compaction writes, and none to be had.
    pub async fn compact(&self) -> Result<(), EngineError> {
        let inner = &*self.inner;
        let _turn = inner.manual.turn.acquire(1).await;
        inner.bring_all_down().await?;
        let newest = inner.store.extents.borrow().opened();
        if inner.collect_garbage(newest).await? {
            inner.bring_all_down().await?;
        }
        if inner.front.fullness.get() != Fullness::Room {
            // What was moved is flushed, and its extents can go: that is the collector's.
            inner.collect_garbage(0).await?;
            inner.take_puts_again();
        }
        // Whoever opens the store next is to find it so.
        inner.wait_for_commits().await
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
        let _asked = self.manual.ask(Request::Level(descent), &self.store.work);
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

    /// Has extents collected that are worth it, of those up to an age, and lets collection that is due come to its end. Whether objects were moved.
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

    /// Whether the collector, while nothing was left of what is asked for, has found nothing to do, or has had as many turns as there are extents:
    /// beside writers it may never find nothing.
    fn has_looked_enough(&self) -> bool {
        match &*self.manual.request.borrow() {
            Some(Request::Garbage(garbage)) => garbage.looks > self.store.shape.extents,
            _ => true,
        }
    }

    /// The extent that a compaction that is asked for has collected next: the one with the least in use.
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

    /// The same, which is going to be collected. Where collection is due, it is asked for every other time. Who asked is told when there is none left.
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

    /// Waits for what background work is asked for.
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
