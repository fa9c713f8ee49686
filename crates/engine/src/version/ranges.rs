//! Range pointers: fractional cascading between neighbouring levels (research: `PinK` 1.9).
//!
//! For each segment of level n: the segment of level n+1 that covers its first key. A search that
//! ended at segment i of level n continues in level n+1 between the pointers of i and i+1. Partial
//! merges shift and replace segments in a level in use, so pointers past a change are shifted and
//! pointers into it are looked up again; a complete rebuild is not needed (docs/decisions/0005).

use std::ops::Range;

use super::level::Level;
use crate::effort::Effort;

/// The pointers of one level into the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges {
    /// For each segment of the upper level: the covering segment below, or 0 if no segment begins
    /// at or before its first key.
    covering: Vec<u32>,
}

impl Ranges {
    /// Builds the pointers from `upper` into `lower`.
    pub(crate) fn build(upper: &Level, lower: &Level) -> Self {
        Self { covering: look_up(upper, lower, 0..upper.len()) }
    }

    /// Returns the range of the lower level in which a search continues that ended at `segment` of
    /// the upper level.
    pub(crate) fn below(&self, segment: usize, lower_len: usize) -> Range<usize> {
        let start = self.covering[segment] as usize;
        let end = self.covering.get(segment + 1).map_or(lower_len, |next| *next as usize + 1);
        start..end.min(lower_len)
    }

    /// Returns the number of pointers.
    pub(crate) fn len(&self) -> usize {
        self.covering.len()
    }

    /// Updates the pointers after a change of the upper level: `replaced` became `inserted`
    /// segments.
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

    /// Updates the pointers after a change of the lower level: `replaced` became `inserted`
    /// segments.
    pub(crate) fn lower_changed(
        &mut self,
        upper: &Level,
        lower: &Level,
        replaced: Range<usize>,
        inserted: usize,
    ) {
        // A new first segment may begin before the old one did, so pointers to the segment before
        // the change are looked up again too; so are zeros, which may mean "none".
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
