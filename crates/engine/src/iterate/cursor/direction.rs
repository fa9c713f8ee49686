//! The direction of cursors and their start. Pure arithmetic on positions in lists.

use runtime::PageImage;

use crate::compaction::columns::first_key_in;
use crate::effort::Effort;
use crate::format::group_index::GroupIndex;
use crate::format::meta_segment::MetaSegment;
use crate::format::pointer::PointerFormat;
use crate::version::level::Level;

/// The direction in which cursors visit keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    /// Ascending, as for Next.
    Up,
    /// Descending, as for Prev.
    Down,
}

impl Direction {
    /// Returns the first index visited in a list of length `len`.
    pub(crate) fn first(self, len: usize) -> Option<usize> {
        match self {
            Self::Up => (len > 0).then_some(0),
            Self::Down => len.checked_sub(1),
        }
    }

    /// Returns the index visited after `at` in a list of length `len`.
    pub(crate) fn behind(self, at: usize, len: usize) -> Option<usize> {
        match self {
            Self::Up => (at + 1 < len).then_some(at + 1),
            Self::Down => at.checked_sub(1),
        }
    }

    /// Returns the element of a list that is visited last.
    pub(crate) fn last<T>(self, list: &[T]) -> Option<&T> {
        match self {
            Self::Up => list.last(),
            Self::Down => list.first(),
        }
    }

    /// Whether `key` is visited before `other`.
    pub(crate) fn comes_first(self, key: &[u8], other: &[u8]) -> bool {
        match self {
            Self::Up => key < other,
            Self::Down => key > other,
        }
    }
}

/// The position at which cursors start.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// At the first key that is equal to or greater than this key, ascending.
    AtOrAfter(Box<[u8]>),
    /// At the last key less than this key, or at the last key of all, descending.
    Before(Option<Box<[u8]>>),
}

impl Target {
    pub(crate) fn direction(&self) -> Direction {
        match self {
            Self::AtOrAfter(_) => Direction::Up,
            Self::Before(_) => Direction::Down,
        }
    }

    /// Returns the index of the first entry of a segment to visit, if there is one.
    pub(crate) fn entry_in(&self, segment: &MetaSegment<'_>) -> Option<usize> {
        match self {
            Self::AtOrAfter(key) => Some(segment.lower_bound(key)).filter(|at| *at < segment.len()),
            Self::Before(Some(key)) => segment.lower_bound(key).checked_sub(1),
            Self::Before(None) => segment.len().checked_sub(1),
        }
    }

    /// Returns the first segment of a group to visit, by the group's index.
    pub(crate) fn place_in(&self, index: &GroupIndex<'_>) -> u16 {
        let place = match self {
            Self::AtOrAfter(key) => index.covering(key),
            Self::Before(Some(key)) => index.before(key),
            Self::Before(None) => index.last(),
        };
        place.unwrap_or(0)
    }

    /// Returns the index of the first segment of a table to visit.
    pub(crate) fn segment_of(&self, segments: &[PageImage], format: PointerFormat) -> usize {
        let behind = match self {
            Self::AtOrAfter(key) => {
                segments.partition_point(|image| first_key_in(image, format) <= &key[..])
            }
            Self::Before(Some(key)) => {
                segments.partition_point(|image| first_key_in(image, format) < &key[..])
            }
            Self::Before(None) => segments.len(),
        };
        behind.saturating_sub(1)
    }

    /// Returns the last segment of `level` whose first key is less than the target of a descending
    /// cursor. The cursor starts in this segment and in no other, so that no page is read that has
    /// no wanted key.
    pub(crate) fn last_segment(&self, level: &Level, effort: &mut Effort) -> Option<usize> {
        match self {
            Self::Before(Some(key)) => match level.covering(key, None, effort) {
                Some(at) if level.first_key(at) == &key[..] => at.checked_sub(1),
                at => at,
            },
            _ => level.len().checked_sub(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_come_to_every_place_once() {
        for len in 0..5 {
            let walk = |way: Direction| {
                std::iter::successors(way.first(len), |at| way.behind(*at, len)).collect::<Vec<_>>()
            };
            assert_eq!(walk(Direction::Up), (0..len).collect::<Vec<_>>());
            assert_eq!(walk(Direction::Down), (0..len).rev().collect::<Vec<_>>());
        }
        assert!(Direction::Up.comes_first(b"a", b"b") && Direction::Down.comes_first(b"b", b"a"));
        assert!([Direction::Up, Direction::Down].iter().all(|way| !way.comes_first(b"a", b"a")));
    }
}
