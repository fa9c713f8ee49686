//! Compaction: segments of one level are merged into the next.
//!
//! `picker` picks a level; a task claims it and the level below, takes a slice (with
//! [`Granularity::Whole`] slice after slice of the whole level), merges it, writes the segments
//! that are not pinned, and publishes the result. Reads continue in the old version until the new
//! one is installed. Pinned levels cost no flash I/O: their segments are merged in memory, and the
//! segments of the last pinned level are read from memory.
//!
//! Space for a slice is promised before its merge begins: a task that waits for a claimed level
//! waits for work that can make progress.

pub(crate) mod accelerator;
pub(crate) mod merge;
pub(crate) mod picker;
pub(crate) mod placing;

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

use runtime::IoClass;

use crate::compaction::sliced::accelerator::Inputs;
use crate::compaction::sliced::merge::{BuiltSegment, SegmentRun, merge, rest_from};
use crate::compaction::sliced::picker::{LevelState, Slice};
use crate::compaction::sliced::placing::{Place, Places, pages_of_slice};
use crate::engine::Inner;
use crate::error::EngineError;
use crate::manifest::edit::Edit;
use crate::medium::{Medium, Stream};
use crate::options::Granularity;
use crate::planted::Fault;
use crate::space::priority::Claimant;
use crate::version::level::{Level, NamedSegment, Segment};
use crate::version::location::Location;
use crate::version::{LevelEdit, Version};

/// Segments that are written out at a time after a plan stops pinning their level.
const SPILL_SEGMENTS: usize = 64;

impl<M: Medium> Inner<M> {
    /// Runs one of the compaction tasks: compacts the levels that are due, forever.
    pub(crate) async fn compact_forever(self: Rc<Self>) {
        loop {
            if self.spill_unpinned().await {
                continue;
            }
            let Some(level) = self.pick() else {
                self.store.work.notified().await;
                continue;
            };
            self.manual.note_turn(level);
            self.claim(&[level, level + 1], || true).await;
            let outcome = match self.options.compaction {
                Granularity::Partial => self.compact_slice(level, false).await,
                Granularity::Whole => self.compact_whole(level).await,
                Granularity::Leveled => unreachable!("tables are compacted by tasks of their own"),
            };
            let is_done = self.done_or_failed(outcome);
            self.stats.borrow_mut().compactions[level] += u64::from(is_done);
            self.unclaim(&[level, level + 1]);
            if is_done {
                self.store.handle.yield_now().await; // other tasks may wait for these levels
            } else {
                self.store.work.notified().await;
            }
        }
    }

    async fn compact_whole(&self, level: usize) -> Result<bool, EngineError> {
        let mut is_done = true;
        while is_done && self.version.borrow().level(level).len() > 0 && self.store.is_healthy() {
            is_done = self.compact_slice(level, true).await?;
        }
        Ok(is_done)
    }

    /// Returns whether background work was done. Makes the store read-only if it failed.
    fn done_or_failed(&self, outcome: Result<bool, EngineError>) -> bool {
        outcome.unwrap_or_else(|error| {
            self.store.fail(error);
            false
        })
    }

    /// Returns the state of each level for the picker.
    pub(crate) fn level_states(&self) -> Vec<LevelState> {
        let version = self.version.borrow();
        let busy = self.busy.borrow();
        let has_failed = !self.store.is_healthy();
        let pages = |level: &Level| level.totals().pages() as usize;
        let mut headroom = self.flush_segments();
        let mut states = Vec::with_capacity(version.levels().len());
        for (n, level) in version.levels().iter().enumerate() {
            let below = version.levels().get(n + 1).map_or(0, |below| pages(below));
            let most = self.slice_pages(n + 1);
            let slice = match self.options.compaction {
                Granularity::Partial => {
                    let each = pages(level).div_ceil(level.len().max(1)).max(1);
                    each * picker::slice_len(level.len(), below, most)
                }
                Granularity::Whole | Granularity::Leveled => pages(level).max(self.capacity(n)),
            };
            let capacity = self.capacity(n);
            let is_busy = busy[n] || has_failed;
            let has_space = n + 1 == version.levels().len() || self.has_space_for_slice(n);
            let segments = pages(level);
            states.push(LevelState { segments, capacity, slice, headroom, is_busy, has_space });
            headroom = slice;
        }
        states
    }

    /// Whether a small slice of `level` could be written now, or the last slice that lacked space,
    /// if there is one.
    fn has_space_for_slice(&self, level: usize) -> bool {
        let pages = self.short_of.get().max(self.store.in_units(2));
        let claimant = Claimant::Compaction;
        self.is_in_memory_only(level + 1) || self.store.can_promise(Stream::Index, pages, claimant)
    }

    /// Whether writes to a level stay in memory only: the level is pinned and memory survives a
    /// power cut.
    pub(crate) fn is_in_memory_only(&self, level: usize) -> bool {
        self.is_pinned(level) && self.manifest.is_none()
    }

    pub(crate) fn is_pinned(&self, level: usize) -> bool {
        level < self.plan.borrow().pinned as usize
    }

    /// Whether a level is due but cannot be compacted for lack of space.
    pub(crate) fn compaction_is_starved(&self) -> bool {
        if self.options.is_leveled() {
            return self.tables_are_starved();
        }
        let states = self.level_states();
        let mut with_space = states.clone();
        for state in &mut with_space {
            state.has_space = true;
        }
        self.pick_of(&states).is_none() && self.pick_of(&with_space).is_some()
    }

    /// Returns the level to compact next, if any.
    fn pick(&self) -> Option<usize> {
        self.pick_of(&self.level_states())
    }

    fn pick_of(&self, states: &[LevelState]) -> Option<usize> {
        match self.manual.level() {
            _ if self.is_squeezing.get() => picker::pick_to_squeeze(states),
            Some(asked) => picker::pick_asked(states, asked, self.manual.goes_first()),
            None => picker::pick(states),
        }
    }

    /// Returns the pages that a slice rewrites: on flash enough to keep every die busy, in memory
    /// few, so that a merge is short.
    fn slice_pages(&self, into: usize) -> usize {
        if self.is_in_memory_only(into) { 32 } else { 2 * self.store.shape.parallelism as usize }
    }

    pub(crate) fn capacity(&self, level: usize) -> usize {
        self.plan.borrow().capacities[level] as usize
    }

    /// Merges one slice of `level` into the level below. Returns false if there is no space for it
    /// or if it is damaged. Requires: the caller has claimed both levels.
    async fn compact_slice(&self, level: usize, from_start: bool) -> Result<bool, EngineError> {
        let version = Rc::clone(&self.version.borrow());
        let (upper, lower) = (version.level(level), version.level(level + 1));
        assert!(upper.len() > 0, "level {level} was picked, and there is nothing in it");
        let start = if from_start { 0 } else { self.cursor(level, upper) };
        let slice_of = |pages| {
            let below = lower.totals().pages() as usize;
            let count = picker::slice_len(upper.len(), below, pages);
            picker::slice_at(upper, lower, start, count, 2 * pages)
        };
        // If space is short, a smaller slice may fit.
        let most = self.slice_pages(level + 1);
        let sizes = std::iter::successors(Some(most), |pages| (*pages > 1).then_some(pages / 2));
        let placed = sizes.map(slice_of).find_map(|slice| {
            let places = self.places_for(&version, level, &slice)?;
            Some((slice, places))
        });
        let Some((slice, places)) = placed else { return Ok(false) };
        self.front.make_progress();
        let first = slice.upper.start;
        let begin = if first == 0 { &[] } else { upper.first_key(first) };
        let end = slice.end_key.clone();
        let pages = pages_of_slice(&version, level, &slice);
        let edit = self.merge_slice(level, slice, places).await?;
        self.install(edit)?;
        self.note_freed(pages);
        self.manual.went_down(level, begin, end.as_deref());
        self.cursors.borrow_mut()[level] = end.unwrap_or_default();
        Ok(true)
    }

    /// Writes out some of the segments that are in memory although the plan no longer pins their
    /// level. Returns false if none exist or no space is free for them.
    async fn spill_unpinned(&self) -> bool {
        let version = Rc::clone(&self.version.borrow());
        let Some(n) = self.level_to_spill(&version) else { return false };
        let level = version.level(n);
        let in_memory = |i: &usize| level.segment(*i).location.image().is_some();
        let start = (0..level.len()).find(in_memory).unwrap_or(0);
        let end = (start..level.len())
            .take_while(in_memory)
            .take(SPILL_SEGMENTS)
            .last()
            .map_or(start, |i| i + 1);
        if self.manifest.is_some() {
            self.forget_images(n, start..end);
            return true;
        }
        let segments = level.named(start..end).into_iter().filter_map(built).collect();
        // The space is promised before the claim: releasing a claim wakes all other workers, and
        // they would wake this one.
        let most = self.most_pages_for(n, (end - start) as u32);
        let Some(place) = self.place_for(n, most) else { return false };
        self.claim(&[n], || true).await;
        let outcome = self.spill(n, start..end, segments, place).await;
        self.unclaim(&[n]);
        self.done_or_failed(outcome)
    }

    /// Returns a level that has segments in memory although the plan does not pin it.
    fn level_to_spill(&self, version: &Version) -> Option<usize> {
        let pinned = self.plan.borrow().pinned as usize;
        let is_over = |n: &usize| version.level(*n).totals().pinned > 0 && !self.busy.borrow()[*n];
        (pinned..version.levels().len()).find(is_over)
    }

    /// Whether writing out segments can free memory now.
    fn can_spill(&self) -> bool {
        let version = self.version.borrow();
        let has_space = |n: usize| {
            let segments = version.level(n).totals().pinned.min(SPILL_SEGMENTS as u32);
            let pages = self.store.in_units(self.most_pages_for(n, segments));
            self.store.can_promise(Stream::Index, pages, Claimant::Compaction)
        };
        self.level_to_spill(&version).is_some_and(|n| self.manifest.is_some() || has_space(n))
    }

    /// Drops the in-memory images of the segments at `range` of level `n`, which are also on the
    /// medium. Changes nothing that has to survive a power cut.
    fn forget_images(&self, n: usize, range: Range<usize>) {
        let mut new = self.version.borrow().level(n).named(range.clone());
        for named in &mut new {
            let (location, entries) = (&named.segment.location, named.segment.entries);
            let page = location.pages().next().expect("it is on the medium");
            named.segment = Segment::new(Location::Stored(page), entries, &self.pool);
        }
        let edit = Edit { levels: vec![LevelEdit { level: n, range, new }], ..Edit::default() };
        self.apply(edit);
        self.store.work.notify_all();
        self.store.room.notify_all();
    }

    /// Writes `segments`, which are at `range` of level `n`.
    async fn spill(
        &self,
        n: usize,
        range: Range<usize>,
        segments: Vec<BuiltSegment>,
        place: Place<'_>,
    ) -> Result<bool, EngineError> {
        let new = self.place(segments, place, IoClass::CompactionWrite, || 1.0).await?;
        self.install(self.edit_of(vec![LevelEdit { level: n, range, new }]))?;
        Ok(true)
    }

    /// Returns the index at which the next slice of `level` begins.
    fn cursor(&self, level: usize, segments: &Level) -> usize {
        if let Some(asked) = self.manual.start_in(level, segments) {
            return asked;
        }
        segments.first_at_or_after(&self.cursors.borrow()[level])
    }

    /// Merges a slice of `level` into the next level.
    async fn merge_slice(
        &self,
        level: usize,
        slice: Slice,
        places: Places<'_>,
    ) -> Result<Edit, EngineError> {
        let version = Rc::clone(&self.version.borrow());
        let (format, payload) = (self.store.format, self.store.shape.payload_bytes);
        let pages = pages_of_slice(&version, level, &slice);
        let _buffers = self.buffers(pages);
        let urgency = || self.urgency_of(level);
        let inputs = self.merge_inputs(&version, level, &slice, places.copies, urgency).await?;
        let Inputs { newer, older, merger } = inputs;
        let Slice { upper, below, until, .. } = slice;
        let drops_tombstones = level + 2 == self.options.levels as usize
            || self.planted.has(Fault::DropTombstonesEarly);
        let merging = self.store.handle.compute(move || {
            let rest = until.as_ref().map(|until| rest_from(&newer, until, format, payload));
            let newer = SegmentRun::until(&newer, format, until);
            let older = SegmentRun::new(&older, format);
            (rest, merge(newer, older, format, payload, drops_tombstones))
        });
        let (rest, merged) = merging.await;
        self.spend_on_merge(merger, pages, merged.entries, merged.segments.len()).await;
        let class = IoClass::CompactionWrite;
        let rest = self.place(rest.unwrap_or_default(), places.rest, class, urgency).await?;
        let new = self.place(merged.segments, places.merged, class, urgency).await?;
        self.count_merge(merged.entries, merged.duplicates);
        let edit = self.edit_of(vec![
            LevelEdit { level, range: upper, new: rest },
            LevelEdit { level: level + 1, range: below, new },
        ]);
        Ok(self.with_dead(edit, &merged.dead).await)
    }

    /// Reports the heap memory that is freed soon after a merge of `pages` index pages: the input
    /// pages and the buffers of the output.
    pub(crate) fn note_freed(&self, pages: usize) {
        self.store.handle.note_freed(2 * pages as u64 * u64::from(self.store.shape.page_bytes));
    }

    /// Counts the pages that a compaction holds in memory, until the result is dropped.
    pub(crate) fn buffers(&self, pages: usize) -> Buffers<'_> {
        let bytes = pages as u64 * u64::from(self.store.shape.page_bytes);
        self.compaction_buffers.set(self.compaction_buffers.get() + bytes);
        Buffers { in_use: &self.compaction_buffers, bytes }
    }

    /// Returns how close `level` is to blocking writers: 0 when it has just become due, 1 when it
    /// is full.
    fn urgency_of(&self, level: usize) -> f64 {
        let states = self.level_states();
        let state = &states[level];
        let headroom = state.headroom.clamp(1, state.capacity.max(2) / 2) as f64;
        let due_at = state.capacity as f64 - headroom;
        let own = (state.segments as f64 - due_at) / headroom;
        // Full levels above are just as urgent.
        states[..level]
            .iter()
            .map(picker::score)
            .fold(own, |most, score| most.max((score - 1.0) * 4.0))
    }

    pub(crate) fn count_merge(&self, entries: usize, duplicates: usize) {
        let mut stats = self.stats.borrow_mut();
        stats.merged_entries += entries as u64;
        stats.dropped_duplicates += duplicates as u64;
    }

    /// Waits until `levels` are free and `is_ready` holds, and marks them as busy.
    pub(crate) async fn claim(&self, levels: &[usize], is_ready: impl Fn() -> bool) {
        let is_free = || levels.iter().all(|level| !self.busy.borrow()[*level]);
        self.store.work.wait_until(|| is_free() && is_ready()).await;
        for level in levels {
            self.busy.borrow_mut()[*level] = true;
        }
    }

    pub(crate) fn unclaim(&self, levels: &[usize]) {
        for level in levels {
            let was_busy = std::mem::take(&mut self.busy.borrow_mut()[*level]);
            assert!(was_busy, "level {level} is given back, and nobody had claimed it");
        }
        self.store.work.notify_all();
        self.store.room.notify_all();
    }

    pub(crate) fn is_settled(&self) -> bool {
        let is_idle = self.busy.borrow().iter().all(|busy| !busy);
        let is_flushed =
            self.front.memtables.borrow().frozen.is_empty() && self.uncommitted.borrow().is_empty();
        let has_no_work = || {
            if self.options.is_leveled() {
                self.tables_are_settled()
            } else {
                self.pick().is_none() && !self.can_spill()
            }
        };
        !self.store.is_healthy() || is_idle && is_flushed && has_no_work()
    }
}

pub(crate) struct Buffers<'a> {
    in_use: &'a Cell<u64>,
    bytes: u64,
}

impl Drop for Buffers<'_> {
    fn drop(&mut self) {
        let in_use = self.in_use.get();
        assert!(in_use >= self.bytes, "{} of {in_use} bytes of buffers go", self.bytes);
        self.in_use.set(in_use - self.bytes);
    }
}

/// Converts a pinned segment to the form that a merge returns.
fn built(named: NamedSegment) -> Option<BuiltSegment> {
    let NamedSegment { first_key, segment, filter: _ } = named;
    let Location::Pinned(image) = segment.location else {
        return None;
    };
    Some(BuiltSegment { first_key, bytes: image.bytes().to_vec(), entries: segment.entries })
}
