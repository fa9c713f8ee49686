//! Accounting for the memory a store takes, and keeping it within its budget.
//!
//! Level lists are charged by what the firmware would keep (key and page address of each segment),
//! not by what this program's structures happen to take.

use pages::MAX_KEY_BYTES;
use pages::format::object::SHORTEST_OBJECT_BYTES;
use pages::medium::{Medium, Shape, Stream};
use pages::stats::MemoryUse;

use crate::format::inlining::Inlining;
use crate::lsm::Inner;
use crate::lsm::columns::{Bulk, ColumnForm};
use crate::lsm::groups::GroupForm;
use crate::lsm::level::Totals;
use crate::lsm::segment_codec::SEGMENT_BYTES;
use crate::lsm::tables::extents_of_memtable;
use crate::lsm::version::Version;
use crate::options::{Filters, Options};
use crate::sizing::monkey::MOST_BITS_PER_KEY;
use crate::sizing::{self, LevelPlan, PAGE_ADDRESS_BYTES, RANGE_POINTER_BYTES, SizingInput};
use crate::tables::codec;

/// Bytes of a pooled segment descriptor besides its key: page address, references, generation.
pub(crate) const DESCRIPTOR_OVERHEAD_BYTES: u64 = PAGE_ADDRESS_BYTES + 8;

/// Index memory of a version, with the other fields left at zero.
fn index_memory(version: &Version, prefix_bytes: u64, page_bytes: u64) -> MemoryUse {
    let mut memory = MemoryUse {
        range_pointers: version.range_pointers() * RANGE_POINTER_BYTES,
        ..MemoryUse::default()
    };
    for level in version.levels() {
        let totals = level.totals();
        memory.level_lists += totals.key_bytes + u64::from(totals.segments) * PAGE_ADDRESS_BYTES;
        memory.prefixes += u64::from(totals.segments) * prefix_bytes;
        memory.pinned_segments += u64::from(totals.pinned) * page_bytes;
        memory.filters += totals.filter_bytes;
    }
    memory
}

/// Bytes that level lists which take `memory_bytes` add to a dump at most: where all keys have one byte.
pub fn dumped_bytes_of_lists(memory_bytes: u64, prefix_bytes: usize) -> u64 {
    // A longer prefix is not relied upon.
    let in_memory = 1 + PAGE_ADDRESS_BYTES + prefix_bytes.min(4) as u64;
    memory_bytes * (1 + SEGMENT_BYTES) / in_memory
}

/// Bytes that a flush adds to a dump at most, where its segments stay in memory.
pub fn dumped_bytes_of_flush(options: &Options, payload_bytes: u32) -> u64 {
    let inlining = Inlining::new(options.inline_up_to, payload_bytes);
    let segments = u64::from(inlining.most_pages_of_memtable(options.memtable_bytes));
    segments * (u64::from(payload_bytes) + MAX_KEY_BYTES as u64 + SEGMENT_BYTES)
}

/// What the levels take of a checkpoint.
pub(crate) fn checkpoint_bytes(version: &Version) -> u64 {
    let totals = version.levels().iter().map(|level| level.totals());
    totals.map(|of| of.key_bytes + of.filter_bytes + u64::from(of.segments) * SEGMENT_BYTES).sum()
}

/// Tables by which a flush makes the tree grow at most, with the compactions that follow from it.
const TABLES_PER_FLUSH: u64 = 4;

/// Pages by which a flush makes the index grow at most; tables have extents of their own.
pub(crate) fn index_growth(options: &Options, inlining: &Inlining, shape: &Shape) -> u32 {
    if options.is_leveled() {
        let extents = extents_of_memtable(options, inlining, shape);
        return extents as u32 * shape.pages_per_extent;
    }
    if let Some(columns) = ColumnForm::new(options, shape) {
        return columns.grown_by(bulk_of_memtable(options));
    }
    let segments = inlining.most_pages_of_memtable(options.memtable_bytes);
    GroupForm::new(options, shape).map_or(segments, |groups| groups.grown_by(segments))
}

/// What the entries of a memtable come to at most: it may hold nothing but keys, and two objects more than fit.
pub(crate) fn bulk_of_memtable(options: &Options) -> Bulk {
    let bytes = options.memtable_bytes as usize;
    let entries = bytes / SHORTEST_OBJECT_BYTES as usize + 2;
    Bulk { entries, key_bytes: bytes + 2 * (MAX_KEY_BYTES + 1) }
}

/// Bytes by which a flush makes a checkpoint grow at most. Its keys may all be first keys of segments,
/// and filters as large as they ever are.
pub(crate) fn checkpoint_growth(options: &Options, inlining: &Inlining, shape: &Shape) -> u64 {
    if options.is_leveled() {
        let extents = extents_of_memtable(options, inlining, shape);
        let as_small_ones = extents as u64 * codec::most_table_bytes(1);
        return (TABLES_PER_FLUSH * codec::most_table_bytes(extents)).max(2 * as_small_ones);
    }
    let memtable_bytes = options.memtable_bytes;
    let segments = u64::from(inlining.most_pages_of_memtable(memtable_bytes));
    let keys = memtable_bytes.min(segments * MAX_KEY_BYTES as u64);
    let objects = memtable_bytes / SHORTEST_OBJECT_BYTES;
    let bits = if options.filters == Filters::None { 0.0 } else { MOST_BITS_PER_KEY };
    keys + segments * SEGMENT_BYTES + (objects as f64 * bits / 8.0) as u64
}

/// The plan that a store had, or the one by the memory that it has now: if the former takes more than `budget`, or the latter keeps more in memory, by a quarter
/// at least. By less plans differ as indexes grow and shrink.
fn replaced_by_memory(had: LevelPlan, by_now: LevelPlan, budget: u64) -> LevelPlan {
    let of_both = (had.memory.total(), by_now.memory.total());
    let is_too_large = of_both.0 > budget && of_both.1 < of_both.0;
    let has_room = by_now.memory.pinned > had.memory.pinned + had.memory.pinned / 4;
    if is_too_large || has_room && of_both.1 <= budget { by_now } else { had }
}

impl<M: Medium> Inner<M> {
    pub(crate) fn memory(&self) -> MemoryUse {
        MemoryUse {
            memtables: self.front.memtables.borrow().bytes(),
            compaction_buffers: self.compaction_buffers.get(),
            caches: self.caches.bytes(),
            ..self.index_memory_of(&self.version.borrow())
        }
    }

    /// Of everything but caches.
    pub(crate) fn index_memory_of(&self, version: &Version) -> MemoryUse {
        let prefix_bytes = self.options.prefix_bytes as u64;
        index_memory(version, prefix_bytes, u64::from(self.store.shape.page_bytes))
    }

    /// Whether the index takes more memory than it has: compaction has to bring it down. Filters are
    /// not part of that, because merges size them by what is free (`filter`); those of tables have the size
    /// that was asked for.
    pub(crate) fn is_over_budget(&self) -> bool {
        let memory = self.index_memory_of(&self.version.borrow());
        let makes_way = if self.options.is_leveled() { 0 } else { memory.filters };
        memory.index_bytes() - makes_way > self.index_budget
    }

    /// Notes the memory of a version that was just published. When level lists have outgrown what
    /// the plan set aside for them (shorter values or longer keys than expected), pinned levels
    /// get a new, smaller plan; compaction then moves what is over.
    pub(crate) fn account(&self, version: &Version) {
        let memory = self.index_memory_of(version);
        let last = version.levels().last().map(|level| level.totals()).unwrap_or_default();
        if last.groups > 0 {
            self.writes_groups.set(self.groups.is_some());
        }
        let mut stats = self.stats.borrow_mut();
        let now = memory.index_bytes() + self.caches.bytes();
        stats.peak_index_bytes = stats.peak_index_bytes.max(now);
        if !self.has_outgrown_its_plan(memory.level_lists, last) {
            drop(stats);
            self.keep_index_aside(version);
            return;
        }
        stats.replans += 1;
        // Lists have outgrown their plan: from now on they grow by groups, where the design has any.
        self.writes_groups.set(self.groups.is_some());
        let plan = self.plan_of_what_is_there(memory.level_lists, version);
        *self.plan.borrow_mut() = plan;
        self.reserve_step();
        self.set_index_aside(version);
    }

    /// The plan of a version whose lists take so many bytes, and an eighth more.
    fn plan_of_what_is_there(&self, level_lists: u64, version: &Version) -> LevelPlan {
        let last = version.levels().last().map(|level| level.totals()).unwrap_or_default();
        let totals = || version.levels().iter().map(|level| level.totals());
        let listed: u64 = totals().map(|of| u64::from(of.segments)).sum();
        let segments: u64 = totals().map(|of| u64::from(of.pages())).sum();
        let entries: u64 = totals().map(|of| of.entries).sum();
        let input = self.sizing_input();
        // With the lengths there are now.
        let input = SizingInput {
            group_segments: u64::from(last.pages() / last.segments.max(1)).max(1),
            stored_segments: Some(segments + segments.div_ceil(8)),
            key_bytes: level_lists.div_ceil(listed.max(1)).saturating_sub(PAGE_ADDRESS_BYTES),
            entries_per_segment: (entries / segments.max(1)).max(1),
            ..input
        };
        sizing::plan(&input, self.options.level_sizing, self.options.pinned_levels)
    }

    /// Whether level lists take more than was planned. Groups keep lists short, whatever is in them: there the last level
    /// counts as well, because a factor that is too large makes each merge into it dear.
    fn has_outgrown_its_plan(&self, level_lists: u64, last: Totals) -> bool {
        let plan = self.plan.borrow();
        let planned = plan.capacities.last().copied().unwrap_or(0);
        let most = planned + planned.div_ceil(8);
        level_lists > plan.memory.level_lists || last.groups > 0 && u64::from(last.pages()) > most
    }

    /// The plan of a store that is opened again. True if it had outgrown the one that a new store begins with: then its lists
    /// grow by groups, where the design has any.
    pub(crate) fn restore_plan(&self, plan: LevelPlan) -> bool {
        let had_outgrown = *self.plan.borrow() != plan;
        if had_outgrown {
            self.writes_groups.set(self.groups.is_some());
        }
        *self.plan.borrow_mut() = plan;
        had_outgrown
    }

    /// The plan of a store that is opened again with a `version`, and had `plan`: with other memory than it had then another one may be in place.
    pub(crate) fn plan_by_memory(&self, plan: LevelPlan, version: &Version) -> LevelPlan {
        if self.options.is_leveled() || self.options.pinned_levels.is_some() {
            return plan;
        }
        let memory = self.index_memory_of(version);
        let last = version.levels().last().map(|level| level.totals()).unwrap_or_default();
        let by_now = if self.has_outgrown_its_plan(memory.level_lists, last) {
            self.plan_of_what_is_there(memory.level_lists, version)
        } else {
            self.plan.borrow().clone()
        };
        replaced_by_memory(plan, by_now, self.index_budget)
    }

    /// What is set aside for an index that has outgrown its plan follows its size, up and down.
    fn keep_index_aside(&self, version: &Version) {
        let is_set_aside = self.store.set_aside[Stream::Index as usize].get() > 0;
        if is_set_aside {
            self.set_index_aside(version);
        }
    }

    /// Where the index has outgrown its plan, levels that were to stay in memory go to the medium:
    /// data must not have taken that space, or a full store could not even take deletes.
    pub(crate) fn set_index_aside(&self, version: &Version) {
        let totals = version.levels().iter().map(|level| level.totals());
        let pages: u32 = totals.map(|of| of.pages() + of.groups).sum();
        let shape = &self.store.shape;
        let groups = self.groups.filter(|_| self.writes_groups.get());
        let in_extents = match (self.columns, groups) {
            (Some(columns), _) => columns.in_extents(pages, shape),
            (None, Some(groups)) => groups.in_extents(pages, shape),
            (None, None) => pages,
        };
        // Steps fill their last append unit up, and an extent more is being filled.
        let wasted = pages / 4 + shape.append_unit;
        let extents = self.store.extents_of(in_extents + wasted) + 1;
        self.store.set_aside[Stream::Index as usize].set(extents);
    }

    /// Pages that are written at most to merge a segment with one group, or a table with another one, the rest of the former
    /// among them.
    fn most_pages_of_least_merge(&self) -> u32 {
        if let Some(columns) = self.columns_of(self.options.levels as usize - 1) {
            return columns.most_pages_of_least_merge();
        }
        let Some(groups) = self.groups else { return 0 };
        let bytes = groups.largest() as usize * self.store.shape.payload_bytes as usize;
        groups.most_pages(self.inlining.most_pages(bytes)) + self.store.in_units(1)
    }

    /// The largest step of a compaction that cannot be made smaller is the merge of a flush into a
    /// first level that is not in memory only: it takes all of that.
    pub(crate) fn reserve_step(&self) {
        if let Some(tables) = &self.tables {
            let step = tables.least_step.max(self.extents_of_least_jobs());
            return self.store.step_extents.set(step);
        }
        let most_of_flush = || {
            let most = self.inlining.most_pages_of_memtable(self.options.memtable_bytes);
            most.max(self.flush_segments() as u32)
        };
        let level = || match self.columns_of(0) {
            None => 2 * self.capacity(0) as u32 + 2 * most_of_flush(),
            Some(columns) => {
                let mut bulk = columns.most_in(self.capacity(0) as u32);
                bulk += bulk_of_memtable(&self.options);
                columns.most_pages(bulk)
            }
        };
        let pages = if self.is_in_memory_only(0) { 0 } else { level() };
        let pages = pages.max(self.most_pages_of_least_merge());
        self.store.step_extents.set(self.store.extents_of(self.store.in_units(pages)).max(1));
    }
}
