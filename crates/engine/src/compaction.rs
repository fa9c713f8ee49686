//! Compaction: segments of one level merge into the next.
//!
//! `picker` says which level; a task claims it and the one below, takes a slice (or, level by
//! level, slice after slice of the whole), merges, writes what is not pinned, and publishes. Reads
//! go on in the old version until the new one stands. Pinned levels cost no flash I/O: their
//! segments are merged in memory, and the last pinned level's are read from there.

use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

use runtime::{IoClass, PageImage};

use crate::engine::Inner;
use crate::error::EngineError;
use crate::extents::Purpose;
use crate::level::{Level, Location, NamedSegment, Segment};
use crate::medium::{Medium, PageNo};
use crate::merge::{BuiltSegment, SegmentRun, merge};
use crate::picker::{self, Granularity, LevelState};
use crate::planted::Fault;
use crate::pointer::Pointer;
use crate::version::LevelEdit;

/// Where merged segments go.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    /// 0 is L1.
    pub level: usize,
    /// How urgent writing them is; see [`crate::pacing`].
    pub urgency: &'a dyn Fn() -> f64,
}

impl<M: Medium> Inner<M> {
    /// One of the tasks that compact whatever is due, for ever.
    pub(crate) async fn compact_forever(self: Rc<Self>) {
        loop {
            if self.spill_unpinned().await {
                continue;
            }
            let Some(level) = self.pick() else {
                self.work.notified().await;
                continue;
            };
            self.claim(&[level, level + 1], || true).await;
            match self.options.compaction {
                Granularity::Partial => self.compact_slice(level, false).await,
                Granularity::Whole => {
                    while self.version.borrow().level(level).len() > 0 && self.is_healthy() {
                        self.compact_slice(level, true).await;
                    }
                }
            }
            self.stats.borrow_mut().compactions[level] += 1;
            self.unclaim(&[level, level + 1]);
            self.room.notify_all();
            self.handle.yield_now().await; // others may want these levels too
        }
    }

    /// The levels as the picker sees them.
    pub(crate) fn level_states(&self) -> Vec<LevelState> {
        let version = self.version.borrow();
        let busy = self.busy.borrow();
        let has_failed = !self.is_healthy();
        let mut headroom = self.flush_segments();
        let mut states = Vec::with_capacity(version.levels().len());
        for (n, level) in version.levels().iter().enumerate() {
            let below = version.levels().get(n + 1).map_or(0, |below| below.len());
            let pages = self.slice_pages(n + 1);
            let slice = match self.options.compaction {
                Granularity::Partial => picker::slice_len(level.len(), below, pages),
                Granularity::Whole => level.len().max(self.capacity(n)),
            };
            let capacity = self.capacity(n);
            let is_busy = busy[n] || has_failed;
            states.push(LevelState { segments: level.len(), capacity, slice, headroom, is_busy });
            headroom = slice;
        }
        states
    }

    /// The level to compact next, if any.
    fn pick(&self) -> Option<usize> {
        let states = self.level_states();
        if self.is_squeezing.get() {
            picker::pick_to_squeeze(&states)
        } else {
            picker::pick(&states)
        }
    }

    /// Pages that a slice rewrites: enough to keep every die busy where they go to flash, few
    /// enough in memory that a merge is short.
    fn slice_pages(&self, into: usize) -> usize {
        let in_memory = into < self.plan.borrow().pinned as usize;
        if in_memory { 32 } else { 2 * self.shape.parallelism as usize }
    }

    pub(crate) fn capacity(&self, level: usize) -> usize {
        self.plan.borrow().capacities[level] as usize
    }

    /// Merges one slice of `level`, which is claimed with the one below, into the latter.
    async fn compact_slice(&self, level: usize, from_start: bool) {
        let version = Rc::clone(&self.version.borrow());
        let (upper, lower) = (version.level(level), version.level(level + 1));
        let pages = self.slice_pages(level + 1);
        let slice = picker::slice_len(upper.len(), lower.len(), pages);
        let cursor = if from_start { 0 } else { self.cursor(level, upper) };
        let range = picker::next_slice(cursor, slice, upper.len());
        let end_key: Option<Box<[u8]>> =
            (range.end < upper.len()).then(|| upper.first_key(range.end).into());
        let below = lower.overlapping(upper.first_key(range.start), end_key.as_deref());
        let Some(edits) = self.merge_ranges(level, upper, range, lower, below).await else {
            return;
        };
        self.cursors.borrow_mut()[level] = end_key.unwrap_or_default();
        self.publish(edits);
    }

    /// Writes segments out that are in memory although the plan no longer pins their level, some
    /// at a time. True if there were any.
    async fn spill_unpinned(&self) -> bool {
        let pinned = self.plan.borrow().pinned as usize;
        let version = Rc::clone(&self.version.borrow());
        let is_over = |n: &usize| version.level(*n).totals().pinned > 0 && !self.busy.borrow()[*n];
        let Some(n) = (pinned..version.levels().len()).find(is_over) else {
            return false;
        };
        self.claim(&[n], || true).await;
        let level = version.level(n);
        let in_memory = |i: &usize| matches!(level.segment(*i).location, Location::Pinned(_));
        let start = (0..level.len()).find(in_memory).unwrap_or(0);
        let end =
            (start..level.len()).take_while(in_memory).take(64).last().map_or(start, |i| i + 1);
        let segments = level.named(start..end).into_iter().filter_map(built).collect();
        let place = Place { level: n, urgency: &|| 1.0 };
        let new = self.place(segments, place, IoClass::CompactionWrite).await;
        self.publish(vec![LevelEdit { level: n, range: start..end, new }]);
        self.unclaim(&[n]);
        self.room.notify_all();
        true
    }

    /// Where the next slice of `level` begins.
    fn cursor(&self, level: usize, segments: &Level) -> usize {
        segments.first_at_or_after(&self.cursors.borrow()[level])
    }

    async fn merge_ranges(
        &self,
        level: usize,
        upper: &Level,
        range: Range<usize>,
        lower: &Level,
        below: Range<usize>,
    ) -> Option<Vec<LevelEdit>> {
        let buffers = (range.len() + below.len()) as u64 * u64::from(self.shape.page_bytes);
        self.compaction_buffers.set(self.compaction_buffers.get() + buffers);
        let loaded = match self.load(upper, range.clone()).await {
            Some(newer) => self.load(lower, below.clone()).await.map(|older| (newer, older)),
            None => None,
        };
        let Some((newer, older)) = loaded else {
            self.compaction_buffers.set(self.compaction_buffers.get() - buffers);
            return None;
        };
        let merged = merge(
            SegmentRun::new(newer, self.format),
            SegmentRun::new(older, self.format),
            self.format,
            self.shape.payload_bytes,
            level + 2 == self.options.levels as usize
                || self.planted.has(Fault::DropTombstonesEarly),
        );
        self.cpu.cores.spend_in_background(self.cpu.costs.of_merge(merged.entries)).await;
        let place = Place { level: level + 1, urgency: &|| self.urgency_of(level) };
        let (segments, dead, entries) = (merged.segments, merged.dead, merged.entries);
        let new = self.place(segments, place, IoClass::CompactionWrite).await;
        self.count_merge(entries, &dead);
        self.bury(&dead);
        self.bury_segments(upper, range.clone());
        self.bury_segments(lower, below.clone());
        self.compaction_buffers.set(self.compaction_buffers.get() - buffers);
        Some(vec![
            LevelEdit { level, range, new: Vec::new() },
            LevelEdit { level: level + 1, range: below, new },
        ])
    }

    /// How far `level` is towards holding writers up: 0 when it just became due, 1 when full.
    fn urgency_of(&self, level: usize) -> f64 {
        let states = self.level_states();
        let state = &states[level];
        let headroom = state.headroom.clamp(1, state.capacity.max(2) / 2) as f64;
        let due_at = state.capacity as f64 - headroom;
        let own = (state.segments as f64 - due_at) / headroom;
        // What is full above pushes just as hard.
        states[..level]
            .iter()
            .map(picker::score)
            .fold(own, |most, score| most.max((score - 1.0) * 4.0))
    }

    /// The segments `range` of a level as pages, from memory or the medium. `None` if one is
    /// damaged: the store is read-only from then on.
    pub(crate) async fn load(&self, level: &Level, range: Range<usize>) -> Option<Vec<PageImage>> {
        let mut pages = Vec::with_capacity(range.len());
        let mut under_way = VecDeque::new();
        let window = 2 * self.shape.parallelism as usize;
        for index in range {
            match &level.segment(index).location {
                Location::Pinned(image) => under_way.push_back(Loading::Ready(image.clone())),
                Location::Stored(page) => {
                    let read = self.medium.read(*page, IoClass::CompactionRead);
                    under_way.push_back(Loading::Reading(*page, read));
                }
            }
            if under_way.len() >= window {
                pages.push(self.finish_loading(under_way.pop_front()?).await?);
            }
        }
        for loading in under_way {
            pages.push(self.finish_loading(loading).await?);
        }
        Some(pages)
    }

    async fn finish_loading<F>(&self, loading: Loading<F>) -> Option<PageImage>
    where
        F: Future<Output = Result<PageImage, crate::medium::Unreadable>>,
    {
        match loading {
            Loading::Ready(image) => Some(image),
            Loading::Reading(page, read) => {
                let image = self.checked_meta(page, read.await);
                if image.is_err() {
                    self.fail(page);
                }
                image.ok()
            }
        }
    }

    fn checked_meta(
        &self,
        page: PageNo,
        read: Result<PageImage, crate::medium::Unreadable>,
    ) -> Result<PageImage, EngineError> {
        let image = read.map_err(|_| EngineError::Corrupt(page))?;
        self.check_meta(page, image)
    }

    /// Gives merged segments their place: in memory if their level is pinned, else on the medium.
    pub(crate) async fn place(
        &self,
        segments: Vec<BuiltSegment>,
        place: Place<'_>,
        class: IoClass,
    ) -> Vec<NamedSegment> {
        if place.level < self.plan.borrow().pinned as usize {
            return segments.into_iter().map(pin).collect();
        }
        let (names, pages): (Vec<_>, Vec<_>) = segments
            .into_iter()
            .map(|built| ((built.first_key, built.entries), built.bytes))
            .unzip();
        let firsts = self.write_segments(pages, class, place.urgency).await;
        names
            .into_iter()
            .zip(firsts)
            .map(|((first_key, entries), page)| NamedSegment {
                first_key,
                segment: Segment { location: Location::Stored(page), entries },
            })
            .collect()
    }

    /// Writes meta segments, unsealed, one page each, and counts them as in use.
    pub(crate) async fn write_segments(
        &self,
        pages: Vec<Vec<u8>>,
        class: IoClass,
        urgency: impl Fn() -> f64,
    ) -> Vec<PageNo> {
        let groups = pages.into_iter().map(|page| vec![page]).collect();
        let numbers = self.write_groups(Purpose::Meta, groups, class, urgency).await;
        let mut extents = self.extents.borrow_mut();
        for page in &numbers {
            extents.publish(*page);
        }
        self.published(&numbers, numbers.iter().map(|_| 1));
        numbers
    }

    /// The objects of `dead` are obsolete. Those of an earlier generation went when their extent
    /// was collected.
    pub(crate) fn bury(&self, dead: &[Pointer]) {
        let mut extents = self.extents.borrow_mut();
        for pointer in dead {
            let (page, _) = self.format.locate(*pointer);
            let generation = extents.generation(page);
            if !self.format.is_of(*pointer, generation) {
                continue;
            }
            if self.format.tells_apart(generation) {
                extents.bury_certainly(page);
            } else {
                extents.bury(page);
            }
        }
    }

    /// The meta pages of these segments are obsolete.
    pub(crate) fn bury_segments(&self, level: &Level, range: Range<usize>) {
        let mut extents = self.extents.borrow_mut();
        for index in range {
            if let Location::Stored(page) = level.segment(index).location {
                extents.bury(page);
            }
        }
    }

    pub(crate) fn count_merge(&self, entries: usize, dead: &[Pointer]) {
        let mut stats = self.stats.borrow_mut();
        stats.merged_entries += entries as u64;
        stats.dropped_duplicates += dead.len() as u64;
    }

    /// Makes the version that `edits` lead to the current one.
    pub(crate) fn publish(&self, edits: Vec<LevelEdit>) {
        let next = self.version.borrow().edited(edits);
        self.account(&next);
        *self.version.borrow_mut() = Rc::new(next);
        self.work.notify_all();
    }

    /// Waits until `levels` are free and `is_ready` holds, and makes them busy.
    pub(crate) async fn claim(&self, levels: &[usize], is_ready: impl Fn() -> bool) {
        let is_free = || levels.iter().all(|level| !self.busy.borrow()[*level]);
        self.work.wait_until(|| is_free() && is_ready()).await;
        for level in levels {
            self.busy.borrow_mut()[*level] = true;
        }
    }

    pub(crate) fn unclaim(&self, levels: &[usize]) {
        for level in levels {
            self.busy.borrow_mut()[*level] = false;
        }
        self.work.notify_all();
    }

    /// Background work cannot go on: `page` is damaged.
    pub(crate) fn fail(&self, page: PageNo) {
        self.failure.set(Some(page));
        self.room.notify_all();
        self.work.notify_all();
    }

    pub(crate) fn is_healthy(&self) -> bool {
        self.failure.get().is_none()
    }

    pub(crate) fn is_settled(&self) -> bool {
        let is_idle = self.busy.borrow().iter().all(|busy| !busy);
        let is_flushed = self.memtables.borrow().frozen.is_empty();
        !self.is_healthy() || is_idle && is_flushed && self.pick().is_none()
    }
}

enum Loading<F> {
    Ready(PageImage),
    Reading(PageNo, F),
}

/// A pinned segment as a merge would have made it.
fn built(named: NamedSegment) -> Option<BuiltSegment> {
    let NamedSegment { first_key, segment } = named;
    let Location::Pinned(image) = segment.location else {
        return None;
    };
    Some(BuiltSegment { first_key, bytes: image.bytes().to_vec(), entries: segment.entries })
}

fn pin(built: BuiltSegment) -> NamedSegment {
    let location = Location::Pinned(PageImage::new(&built.bytes));
    let segment = Segment { location, entries: built.entries };
    NamedSegment { first_key: built.first_key, segment }
}
