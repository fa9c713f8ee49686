//! Accounting of a store's memory, and keeping it within the budget.
//!
//! Level lists are charged by the memory that firmware would use (key and page address of each
//! segment), not by the memory that this program's structures use.

use crate::compaction::columns::{Bulk, ColumnForm};
use crate::compaction::groups::GroupForm;
use crate::compaction::leveled::extents_of_memtable;
use crate::engine::Inner;
use crate::format::inlining::Inlining;
use crate::format::object::{MAX_KEY_BYTES, SHORTEST_OBJECT_BYTES};
use crate::manifest::level_codec::SEGMENT_BYTES;
use crate::manifest::table_codec;
use crate::medium::{Medium, Shape, Stream};
use crate::options::{Filters, Options};
use crate::sizing;
use crate::sizing::monkey::MOST_BITS_PER_KEY;
use crate::sizing::{LevelPlan, PAGE_ADDRESS_BYTES, RANGE_POINTER_BYTES, SizingInput};
use crate::stats::MemoryUse;
use crate::version::Version;
use crate::version::level::Totals;

/// Bytes of a pooled segment descriptor besides its key: page address, references, generation.
pub(crate) const DESCRIPTOR_OVERHEAD_BYTES: u64 = PAGE_ADDRESS_BYTES + 8;

/// Returns the index memory of a version; the other fields are zero.
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

/// Returns the maximum number of bytes that level lists of `memory_bytes` bytes of memory add to a
/// dump: the worst case is that all keys have one byte.
pub fn dumped_bytes_of_lists(memory_bytes: u64, prefix_bytes: usize) -> u64 {
    // At most 4 bytes of the prefix are counted on.
    let in_memory = 1 + PAGE_ADDRESS_BYTES + prefix_bytes.min(4) as u64;
    memory_bytes * (1 + SEGMENT_BYTES) / in_memory
}

/// Returns the maximum number of bytes that a flush adds to a dump if its segments stay in memory.
pub fn dumped_bytes_of_flush(options: &Options, payload_bytes: u32) -> u64 {
    let inlining = Inlining::new(options.inline_up_to, payload_bytes);
    let segments = u64::from(inlining.most_pages_of_memtable(options.memtable_bytes));
    segments * (u64::from(payload_bytes) + MAX_KEY_BYTES as u64 + SEGMENT_BYTES)
}

/// Returns the number of bytes of the levels in a checkpoint.
pub(crate) fn checkpoint_bytes(version: &Version) -> u64 {
    let totals = version.levels().iter().map(|level| level.totals());
    totals.map(|of| of.key_bytes + of.filter_bytes + u64::from(of.segments) * SEGMENT_BYTES).sum()
}

/// Maximum number of tables by which a flush, with the compactions that follow from it, makes the
/// tree grow.
const TABLES_PER_FLUSH: u64 = 4;

/// Returns the maximum number of pages by which a flush makes the index grow. Tables have separate
/// extents.
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

/// Returns an upper bound of the entries of a memtable: it may contain only keys, and two objects
/// beyond its limit.
pub(crate) fn bulk_of_memtable(options: &Options) -> Bulk {
    let bytes = options.memtable_bytes as usize;
    let entries = bytes / SHORTEST_OBJECT_BYTES as usize + 2;
    Bulk { entries, key_bytes: bytes + 2 * (MAX_KEY_BYTES + 1) }
}

/// Returns the maximum number of bytes by which a flush makes a checkpoint grow. All of its keys
/// may become first keys of segments, and filters may have their largest size.
pub(crate) fn checkpoint_growth(options: &Options, inlining: &Inlining, shape: &Shape) -> u64 {
    if options.is_leveled() {
        let extents = extents_of_memtable(options, inlining, shape);
        let as_small_ones = extents as u64 * table_codec::most_table_bytes(1);
        return (TABLES_PER_FLUSH * table_codec::most_table_bytes(extents)).max(2 * as_small_ones);
    }
    let memtable_bytes = options.memtable_bytes;
    let segments = u64::from(inlining.most_pages_of_memtable(memtable_bytes));
    let keys = memtable_bytes.min(segments * MAX_KEY_BYTES as u64);
    let objects = memtable_bytes / SHORTEST_OBJECT_BYTES;
    let bits = if options.filters == Filters::None { 0.0 } else { MOST_BITS_PER_KEY };
    keys + segments * SEGMENT_BYTES + (objects as f64 * bits / 8.0) as u64
}

/// Returns the previous plan, or the plan by current memory. The latter is chosen if the previous
/// plan takes more than `budget`, or if the new plan pins at least a quarter more. Smaller
/// differences are ignored because they come from normal growing and shrinking of indexes.
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

    /// Returns the memory use, except that of caches.
    pub(crate) fn index_memory_of(&self, version: &Version) -> MemoryUse {
        let prefix_bytes = self.options.prefix_bytes as u64;
        index_memory(version, prefix_bytes, u64::from(self.store.shape.page_bytes))
    }

    /// Whether the index exceeds its memory budget, so that compaction must shrink it. Filters do
    /// not count because merges size them by the free memory (`filter`); filters of tables do
    /// count, because they have the configured size.
    pub(crate) fn is_over_budget(&self) -> bool {
        let memory = self.index_memory_of(&self.version.borrow());
        let makes_way = if self.options.is_leveled() { 0 } else { memory.filters };
        memory.index_bytes() - makes_way > self.index_budget
    }

    /// Records the memory of a version that was just published. If level lists have outgrown the
    /// memory planned for them (values are shorter or keys longer than expected), pinned levels get
    /// a new, smaller plan; compaction then moves the excess.
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
        // The lists have outgrown their plan: from now on they grow by groups, if the design has
        // any.
        self.writes_groups.set(self.groups.is_some());
        let plan = self.plan_of_what_is_there(memory.level_lists, version);
        *self.plan.borrow_mut() = plan;
        self.reserve_step();
        self.set_index_aside(version);
    }

    /// Returns the plan for a version whose lists take `level_lists` bytes, with an eighth added.
    fn plan_of_what_is_there(&self, level_lists: u64, version: &Version) -> LevelPlan {
        let last = version.levels().last().map(|level| level.totals()).unwrap_or_default();
        let totals = || version.levels().iter().map(|level| level.totals());
        let listed: u64 = totals().map(|of| u64::from(of.segments)).sum();
        let segments: u64 = totals().map(|of| u64::from(of.pages())).sum();
        let entries: u64 = totals().map(|of| of.entries).sum();
        let input = self.sizing_input();
        // Uses the current lengths.
        let input = SizingInput {
            group_segments: u64::from(last.pages() / last.segments.max(1)).max(1),
            stored_segments: Some(segments + segments.div_ceil(8)),
            key_bytes: level_lists.div_ceil(listed.max(1)).saturating_sub(PAGE_ADDRESS_BYTES),
            entries_per_segment: (entries / segments.max(1)).max(1),
            ..input
        };
        sizing::plan(&input, self.options.level_sizing, self.options.pinned_levels)
    }

    /// Whether level lists take more memory than planned. With groups, lists stay short regardless
    /// of their contents; then the size of the last level counts too, because too large a factor
    /// makes each merge into it expensive.
    fn has_outgrown_its_plan(&self, level_lists: u64, last: Totals) -> bool {
        let plan = self.plan.borrow();
        let planned = plan.capacities.last().copied().unwrap_or(0);
        let most = planned + planned.div_ceil(8);
        level_lists > plan.memory.level_lists || last.groups > 0 && u64::from(last.pages()) > most
    }

    /// Restores the plan of a store that is reopened. Returns true if the store had outgrown the
    /// plan of a new store: then its lists grow by groups, if the design has any.
    pub(crate) fn restore_plan(&self, plan: LevelPlan) -> bool {
        let had_outgrown = *self.plan.borrow() != plan;
        if had_outgrown {
            self.writes_groups.set(self.groups.is_some());
        }
        *self.plan.borrow_mut() = plan;
        had_outgrown
    }

    /// Returns the plan for a store that is reopened with `version` and had `plan`: the memory
    /// budget may have changed, so that another plan fits.
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

    /// Adjusts the space that is set aside for an index that has outgrown its plan to the index's
    /// size, up or down.
    fn keep_index_aside(&self, version: &Version) {
        let is_set_aside = self.store.set_aside[Stream::Index as usize].get() > 0;
        if is_set_aside {
            self.set_index_aside(version);
        }
    }

    /// Sets space aside for an index that has outgrown its plan: levels that were planned to stay
    /// in memory move to the medium. Without the reserve, data could take this space, and a full
    /// store could not even accept deletes.
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
        // Steps pad their last append unit, and one more extent is being filled.
        let wasted = pages / 4 + shape.append_unit;
        let extents = self.store.extents_of(in_extents + wasted) + 1;
        self.store.set_aside[Stream::Index as usize].set(extents);
    }

    /// Returns the maximum number of pages written to merge a segment with one group, or a table
    /// with another one, including the rest of the segment or table.
    fn most_pages_of_least_merge(&self) -> u32 {
        if let Some(columns) = self.columns_of(self.options.levels as usize - 1) {
            return columns.most_pages_of_least_merge();
        }
        let Some(groups) = self.groups else { return 0 };
        let bytes = groups.largest() as usize * self.store.shape.payload_bytes as usize;
        groups.most_pages(self.inlining.most_pages(bytes)) + self.store.in_units(1)
    }

    /// Sets the space of the largest compaction step that cannot be split: the merge of a flush
    /// into a first level that is not in memory only, which rewrites the whole level.
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
