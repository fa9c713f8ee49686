//! What to compact next: a pure function of level sizes.
//!
//! A level is due when it could not take what may come from above next, so that nothing above ever
//! waits for long. Of the levels that are due and free, the one that is most over its size goes
//! first. Partial compaction then takes a few segments from a cursor that walks the key space;
//! whole-level compaction takes the level.

use std::ops::Range;

/// How much of a level one compaction takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Granularity {
    /// A few segments at a time, round robin over the key space.
    Partial,
    /// The whole level, as the published code does.
    Whole,
}

/// One level as the picker sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LevelState {
    pub segments: usize,
    pub capacity: usize,
    /// Segments that one compaction takes out of this level.
    pub slice: usize,
    /// Segments the level should always have room for.
    pub headroom: usize,
    /// Another compaction works on it.
    pub is_busy: bool,
}

/// How full a level is, counting what it must have room for: more than 1.0 is due.
///
/// What waits above for room waits for exactly this (`can_move` below, and the flush into L1):
/// where there is no room, the level is due, and nobody waits for ever.
pub(crate) fn score(level: &LevelState) -> f64 {
    (level.segments + level.headroom) as f64 / level.capacity.max(1) as f64
}

fn is_due(level: &LevelState) -> bool {
    level.segments > 0 && level.segments + level.headroom > level.capacity
}

/// The level (0 is L1) to compact into the next one, if any is due. The last level never is.
pub(crate) fn pick(levels: &[LevelState]) -> Option<usize> {
    let last = levels.len() - 1;
    let can_move = |n: usize| {
        let (from, into) = (&levels[n], &levels[n + 1]);
        let has_room = n + 1 == last || into.segments == 0 || {
            into.segments + from.slice.min(from.segments) <= into.capacity
        };
        from.segments > 0 && !from.is_busy && !into.is_busy && has_room
    };
    (0..last)
        .filter(|n| can_move(*n) && is_due(&levels[*n]))
        // The lower level wins a tie: it makes room for the one above it.
        .max_by(|a, b| score(&levels[*a]).total_cmp(&score(&levels[*b])))
}

/// The lowest level above the last that has anything: to get everything down, room is made from
/// below.
pub(crate) fn pick_to_squeeze(levels: &[LevelState]) -> Option<usize> {
    let is_free = |n: usize| !levels[n].is_busy && !levels[n + 1].is_busy;
    (0..levels.len() - 1).rev().find(|n| levels[*n].segments > 0).filter(|n| is_free(*n))
}

/// Segments that one partial compaction takes from a level of `segments`, so that about `pages`
/// pages are rewritten below.
pub(crate) fn slice_len(segments: usize, below: usize, pages: usize) -> usize {
    let fan_out = below as f64 / segments.max(1) as f64;
    ((pages as f64 / (1.0 + fan_out)) as usize).clamp(1, segments.max(1))
}

/// The next `slice` of `segments` at `cursor`; past the end it starts over.
pub(crate) fn next_slice(cursor: usize, slice: usize, segments: usize) -> Range<usize> {
    let start = if cursor >= segments { 0 } else { cursor };
    start..(start + slice).min(segments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(segments: usize, capacity: usize) -> LevelState {
        LevelState { segments, capacity, slice: 1, headroom: 1, is_busy: false }
    }

    #[test]
    fn nothing_is_due_while_every_level_has_headroom() {
        assert_eq!(pick(&[level(3, 5), level(20, 25), level(1000, 100)]), None);
    }

    #[test]
    fn the_fullest_level_goes_first_and_the_last_never() {
        assert_eq!(pick(&[level(4, 5), level(26, 25), level(1000, 100)]), Some(1));
        assert_eq!(pick(&[level(6, 5), level(20, 25), level(1000, 100)]), Some(0));
    }

    #[test]
    fn a_level_without_room_below_waits_for_that_one() {
        assert_eq!(pick(&[level(9, 5), level(25, 25), level(0, 100)]), Some(1));
    }

    #[test]
    fn where_there_is_no_room_somebody_is_due() {
        for capacity in 1..12 {
            for need in 1..24 {
                for segments in 1..30 {
                    let first = LevelState { headroom: need, ..level(segments, capacity) };
                    let has_room = segments + need <= capacity;
                    let picked = pick(&[first, level(0, 100), level(0, 1000)]);
                    assert!(has_room || picked == Some(0), "{segments} + {need} of {capacity}");
                }
            }
        }
    }

    #[test]
    fn busy_levels_are_left_alone() {
        let busy = LevelState { is_busy: true, ..level(30, 25) };
        assert_eq!(pick(&[level(6, 5), busy, level(0, 100)]), None);
    }

    #[test]
    fn the_cursor_walks_the_level_and_starts_over() {
        assert_eq!(next_slice(0, 4, 10), 0..4);
        assert_eq!(next_slice(8, 4, 10), 8..10);
        assert_eq!(next_slice(10, 4, 10), 0..4);
        assert_eq!(slice_len(100, 2000, 128), 6);
        assert_eq!(slice_len(3, 0, 128), 3);
    }
}
