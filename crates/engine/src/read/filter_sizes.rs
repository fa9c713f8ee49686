//! Sizes of filters, and the building of filters for segments that merges write.

use super::filter::{Filter, key_hash};
use crate::compaction::sliced::merge::BuiltSegment;
use crate::engine::Inner;
use crate::format::meta_segment::MetaSegment;
use crate::format::pointer::PointerFormat;
use crate::medium::Medium;
use crate::options::Filters;
use crate::planted::Fault;
use crate::sizing::monkey;
use crate::version::Version;

/// The share of index memory (1/64) that filters leave free, so that parallel merges stay within
/// the budget.
const SPARE: u64 = 64;

/// Returns the hashes of a segment's keys.
fn hashes_of(built: &BuiltSegment, format: PointerFormat) -> Vec<u64> {
    let segment = MetaSegment::new(&built.bytes, format).expect("a merge made it");
    (0..segment.len()).map(|index| key_hash(segment.key(index))).collect()
}

impl<M: Medium> Inner<M> {
    /// Builds filters for segments that are about to be written to `level`, and charges the
    /// processor time. Returns no filters if the design has none.
    pub(crate) async fn filters_for(
        &self,
        level: usize,
        segments: &[BuiltSegment],
    ) -> Vec<Option<Filter>> {
        if self.options.filters == Filters::None {
            return vec![None; segments.len()];
        }
        let entries: u64 = segments.iter().map(|built| u64::from(built.entries)).sum();
        let cost = self.store.cpu.costs.of_filters(entries);
        self.store.cpu.cores.spend_in_background(cost).await;
        let bits = self.filter_bits_per_key(level, entries);
        let forgets = self.planted.has(Fault::FilterForgetsKeys);
        segments
            .iter()
            .map(|built| {
                let mut hashes = hashes_of(built, self.store.format);
                let bytes = (bits * hashes.len() as f64 / 8.0) as usize;
                if forgets {
                    hashes.pop();
                }
                Filter::of_bytes(&hashes, bytes)
            })
            .collect()
    }

    /// Returns the bits per key for `entries` new entries of `level`: the configured number, or
    /// Monkey's share of the memory that level lists and pinned segments leave, but no more than is
    /// free now. If lists or keys outgrow the plan, new filters are smaller; no task waits for
    /// filter memory.
    fn filter_bits_per_key(&self, level: usize, entries: u64) -> f64 {
        let version = self.version.borrow();
        let memory = self.index_memory_of(&version);
        let planned = self.plan.borrow().memory;
        let others = memory.level_lists.max(planned.level_lists)
            + memory.prefixes.max(planned.prefixes)
            + memory.range_pointers.max(planned.range_pointers)
            + memory.pinned_segments.max(planned.pinned);
        let budget = self.index_budget;
        let room = budget.saturating_sub(others + budget / SPARE);
        let wanted = match self.options.filters {
            Filters::Bits(bits) => f64::from(bits),
            _ => monkey::bits_per_key(&self.keys_to_filter(&version), room)[level],
        };
        let free = budget.saturating_sub(memory.index_bytes());
        wanted.min(free as f64 * 8.0 / entries.max(1) as f64)
    }

    /// Returns the number of keys of each level for which filters are sized: the planned or the
    /// actual number, whichever is larger. Pinned levels need no filters.
    fn keys_to_filter(&self, version: &Version) -> Vec<u64> {
        let plan = self.plan.borrow();
        let per_segment = self.entries_per_segment();
        let keys = version.levels().iter().zip(&plan.capacities).zip(0..);
        keys.map(|((level, capacity), n)| {
            let totals = level.totals();
            // Allows for some growth, because filters keep their size once built.
            let now = totals.entries + totals.entries / 16;
            if n < plan.pinned { 0 } else { now.max(capacity * per_segment) }
        })
        .collect()
    }
}
