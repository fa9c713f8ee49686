//! Range pointers: fractional cascading between neighbouring levels (research: `PinK` 1.9).
//!
//! For each segment of level n, the segment of level n+1 that covers its first key. A search that
//! ended at segment i of level n goes on in level n+1 between the pointers of i and i+1. Partial
//! merges shift and replace segments under a live level, so pointers behind a change are moved and
//! those into it are looked up again; whole levels need no rebuild (docs/decisions/0005).

use std::ops::Range;

use pages::effort::Effort;

use crate::lsm::level::Level;

/// The pointers of one level into the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges {
    /// By segment of the upper level: the covering segment below, or 0 if none begins early enough.
    covering: Vec<u32>,
}

impl Ranges {
    /// Pointers from `upper` into `lower`, made from nothing.
    pub(crate) fn build(upper: &Level, lower: &Level) -> Self {
        Self { covering: look_up(upper, lower, 0..upper.len()) }
    }

    /// Where in the lower level a search goes on that ended at `segment` of the upper one.
    pub(crate) fn below(&self, segment: usize, lower_len: usize) -> Range<usize> {
        let start = self.covering[segment] as usize;
        let end = self.covering.get(segment + 1).map_or(lower_len, |next| *next as usize + 1);
        start..end.min(lower_len)
    }

    /// Number of pointers.
    pub(crate) fn len(&self) -> usize {
        self.covering.len()
    }

    /// Follows a change of the upper level: `replaced` became `inserted` segments.
    pub(crate) fn upper_changed(
        &mut self,
        upper: &Level,
        lower: &Level,
        replaced: Range<usize>,
        inserted: usize,
    ) {
        let fresh = look_up(upper, lower, replaced.start..replaced.start + inserted);
        self.covering.splice(replaced, fresh);
    }

    /// Follows a change of the lower level: `replaced` became `inserted` segments.
    pub(crate) fn lower_changed(
        &mut self,
        upper: &Level,
        lower: &Level,
        replaced: Range<usize>,
        inserted: usize,
    ) {
        // A new first segment may begin before the old one did, so pointers to the segment in
        // front of the change are in question too; so are zeros, which may mean "none".
        let doubtful = replaced.start.saturating_sub(1);
        let from = self.covering.partition_point(|below| (*below as usize) < doubtful);
        let to = self
            .covering
            .partition_point(|below| (*below as usize) < replaced.end.max(doubtful + 1));
        let moved = inserted as i64 - replaced.len() as i64;
        for below in &mut self.covering[to..] {
            *below = (i64::from(*below) + moved) as u32;
        }
        self.covering.splice(from..to, look_up(upper, lower, from..to));
    }
}

fn look_up(upper: &Level, lower: &Level, segments: Range<usize>) -> Vec<u32> {
    let effort = &mut Effort::default();
    segments.map(|i| lower.covering(upper.first_key(i), None, effort).unwrap_or(0) as u32).collect()
}
