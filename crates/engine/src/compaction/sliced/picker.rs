//! Picks the level to compact next: a pure function of level sizes.
//!
//! A level is due if it could not take the next slice from the level above, so that upper levels
//! never wait for long. Of the levels that are due and free, the one that exceeds its size most
//! goes first. Partial compaction then takes a few segments at a cursor that walks the key space;
//! whole-level compaction takes the entire level.

use std::ops::Range;

use crate::version::level::Level;

/// The state of a level for the picker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LevelState {
    pub segments: usize,
    pub capacity: usize,
    /// The number of segments that one compaction takes out of this level.
    pub slice: usize,
    /// The number of segments for which the level should always have room.
    pub headroom: usize,
    /// Whether another compaction works on the level.
    pub is_busy: bool,
    /// Whether the medium has space for the output of a compaction out of this level.
    pub has_space: bool,
}

/// Returns how full a level is, including its headroom: more than 1.0 is due.
///
/// Work above that waits for room waits for exactly this amount (`can_move` below, and the flush
/// into L1): if there is no room, the level is due, so no task waits forever.
pub(crate) fn score(level: &LevelState) -> f64 {
    (level.segments + level.headroom) as f64 / level.capacity.max(1) as f64
}

fn is_due(level: &LevelState) -> bool {
    level.segments > 0 && level.segments + level.headroom > level.capacity
}

/// Whether a slice of level `n` could be compacted into the next level now.
fn can_move(levels: &[LevelState], n: usize) -> bool {
    let (from, into) = (&levels[n], &levels[n + 1]);
    let has_room = n + 2 == levels.len() || into.segments == 0 || {
        into.segments + from.slice.min(from.segments) <= into.capacity
    };
    from.segments > 0 && from.has_space && !from.is_busy && !into.is_busy && has_room
}

/// Returns the level (0 is L1) to compact into the next one, if any is due. The last level never
/// is.
pub(crate) fn pick(levels: &[LevelState]) -> Option<usize> {
    (0..levels.len() - 1)
        .filter(|n| can_move(levels, *n) && is_due(&levels[*n]))
        // The lower level wins a tie: it makes room for the one above it.
        .max_by(|a, b| score(&levels[*a]).total_cmp(&score(&levels[*b])))
}

/// Like [`pick`], but level `asked` may be compacted even if it is not due. If another level is
/// due, the two alternate, so that neither the request nor writers wait forever.
pub(crate) fn pick_asked(levels: &[LevelState], asked: usize, goes_first: bool) -> Option<usize> {
    let asked = Some(asked).filter(|n| can_move(levels, *n));
    if goes_first { asked.or_else(|| pick(levels)) } else { pick(levels).or(asked) }
}

/// Returns the lowest non-empty level above the last one: to move everything down, room is made
/// from below.
pub(crate) fn pick_to_squeeze(levels: &[LevelState]) -> Option<usize> {
    let is_free = |n: usize| levels[n].has_space && !levels[n].is_busy && !levels[n + 1].is_busy;
    (0..levels.len() - 1).rev().find(|n| levels[*n].segments > 0).filter(|n| is_free(*n))
}

/// Returns the number of segments that one partial compaction takes from a level of `segments`, so
/// that about `pages` pages are rewritten below.
pub(crate) fn slice_len(segments: usize, below: usize, pages: usize) -> usize {
    let fan_out = below as f64 / segments.max(1) as f64;
    ((pages as f64 / (1.0 + fan_out)) as usize).clamp(1, segments.max(1))
}

/// Returns the next `slice` of `segments` at `cursor`; past the end it starts over.
pub(crate) fn next_slice(cursor: usize, slice: usize, segments: usize) -> Range<usize> {
    let start = if cursor >= segments { 0 } else { cursor };
    start..(start + slice).min(segments)
}

/// The input of one compaction step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    /// Segments of the upper level.
    pub upper: Range<usize>,
    /// Segments of the lower level whose keys may overlap with them.
    pub below: Range<usize>,
    /// If set, only entries less than this key take part; the rest of the single upper segment
    /// stays.
    pub until: Option<Box<[u8]>>,
    /// The key at which the next slice begins; `None` is the start of the level.
    pub end_key: Option<Box<[u8]>>,
}

/// Returns the slice of `upper` that begins at segment `start` and takes `count` segments, or fewer
/// if they overlap with so much of `lower` that more than `limit` pages would be merged. A single
/// segment that overlaps with too many pages is taken in parts, so that a step is bounded for every
/// shape of the levels.
pub(crate) fn slice_at(
    upper: &Level,
    lower: &Level,
    start: usize,
    count: usize,
    limit: usize,
) -> Slice {
    let mut range = next_slice(start, count, upper.len());
    loop {
        let end_key = (range.end < upper.len()).then(|| upper.first_key(range.end).into());
        let below = lower.overlapping(upper.first_key(range.start), end_key.as_deref());
        let is_least = range.len() == 1 && below.len() <= 1;
        let room = limit.max(2).checked_sub(upper.pages_in(&range));
        let has_room = room.is_some_and(|room| !lower.has_more_pages(&below, room));
        if has_room || is_least {
            return Slice { upper: range, below, until: None, end_key };
        }
        if range.len() == 1 {
            // At least one lower segment stays for the next part. If the upper segment is a table,
            // it may exceed the limit alone.
            let taken = as_many_as_fit(lower, &below, room.unwrap_or(0)).min(below.len() - 1);
            let cut = below.start + taken;
            let until: Box<[u8]> = lower.first_key(cut).into();
            let (until, end_key) = (Some(until.clone()), Some(until));
            return Slice { upper: range, below: below.start..cut, until, end_key };
        }
        range.end = range.start + range.len() / 2;
    }
}

/// Returns how many of the entries `below` have at most `pages` pages in total; at least one.
fn as_many_as_fit(lower: &Level, below: &Range<usize>, pages: usize) -> usize {
    let mut left = pages;
    let fits = |index: &usize| {
        let own = lower.pages_in(&(*index..*index + 1));
        let fits = own <= left;
        left = left.saturating_sub(own);
        fits
    };
    below.clone().take_while(fits).count().max(1)
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::medium::PageNo;
    use crate::version::level::{NamedSegment, Segment};
    use crate::version::location::Location;

    fn level(segments: usize, capacity: usize) -> LevelState {
        LevelState { segments, capacity, slice: 1, headroom: 1, is_busy: false, has_space: true }
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
    fn a_level_that_is_asked_for_takes_turns_with_those_that_are_due() {
        let levels = [level(6, 5), level(3, 25), level(7, 100), level(1, 1000)];
        assert_eq!(pick(&levels), Some(0));
        assert_eq!(pick_asked(&levels, 2, true), Some(2));
        assert_eq!(pick_asked(&levels, 2, false), Some(0));
        let nothing_due = [level(1, 5), level(3, 25), level(7, 100), level(1, 1000)];
        assert_eq!(pick_asked(&nothing_due, 1, false), Some(1));
        let busy = LevelState { is_busy: true, ..level(7, 100) };
        assert_eq!(pick_asked(&[level(1, 5), level(3, 25), busy, level(1, 1000)], 1, true), None);
    }

    #[test]
    fn busy_levels_are_left_alone() {
        let busy = LevelState { is_busy: true, ..level(30, 25) };
        assert_eq!(pick(&[level(6, 5), busy, level(0, 100)]), None);
    }

    #[test]
    fn without_space_below_another_level_goes() {
        let starved = LevelState { has_space: false, ..level(30, 25) };
        assert_eq!(pick(&[level(6, 50), starved, level(0, 100)]), None);
        assert_eq!(
            pick(&[level(6, 5), LevelState { segments: 3, ..starved }, level(0, 1)]),
            Some(0)
        );
    }

    #[test]
    fn the_cursor_walks_the_level_and_starts_over() {
        assert_eq!(next_slice(0, 4, 10), 0..4);
        assert_eq!(next_slice(8, 4, 10), 8..10);
        assert_eq!(next_slice(10, 4, 10), 0..4);
        assert_eq!(slice_len(100, 2000, 128), 6);
        assert_eq!(slice_len(3, 0, 128), 3);
    }

    /// Returns a level whose segments begin with these keys.
    fn keys(keys: impl Iterator<Item = u8>) -> Level {
        let pool = Rc::default();
        let segment = || Segment::new(Location::Stored(PageNo(0)), 1, &pool);
        let named = keys.map(|key| NamedSegment {
            first_key: [key].into(),
            segment: segment(),
            filter: None,
        });
        Level::empty(0).splice(0..0, named.collect())
    }

    #[test]
    fn a_slice_takes_fewer_segments_where_they_meet_many() {
        let upper = keys([10, 20, 30, 40].into_iter());
        let lower = keys(0..50);
        let slice = slice_at(&upper, &lower, 0, 4, 30);
        assert_eq!((slice.upper, slice.below, slice.until), (0..2, 10..30, None));
        assert_eq!(slice.end_key.as_deref(), Some(&[30][..]));
    }

    #[test]
    fn a_segment_that_meets_too_many_is_taken_in_parts() {
        let upper = keys([10, 20].into_iter());
        let lower = keys(0..50);
        let slice = slice_at(&upper, &lower, 1, 1, 8);
        assert_eq!((slice.upper, slice.below), (1..2, 20..27));
        assert_eq!(slice.until.as_deref(), Some(&[27][..]));
        assert_eq!(slice.end_key, slice.until);
    }
}
