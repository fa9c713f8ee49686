//! Selections of members of a sorted set.

use std::ops::Bound;

use super::access::Access;
use super::keys::{self, Space};
use super::overlay::Direction;
use super::records::Head;
use crate::fault::Fault;

/// Number of items to skip, and maximum number to return.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limit {
    pub offset: usize,
    pub count: usize,
}

impl Limit {
    pub(crate) const NONE: Self = Self { offset: 0, count: usize::MAX };

    /// Whether the next item is to be returned; counts the item.
    pub(crate) fn takes(&mut self) -> bool {
        if self.offset > 0 {
            self.offset -= 1;
            return false;
        }
        self.count = self.count.saturating_sub(1);
        true
    }

    pub(crate) fn is_used_up(self) -> bool {
        self.count == 0
    }

    /// Returns the limit for the ranks `start` to `stop`, inclusive, of `length` members. Negative
    /// ranks count from the end.
    fn of_ranks(start: i64, stop: i64, length: i64) -> Self {
        let from_front = |rank: i64| if rank < 0 { rank.saturating_add(length) } else { rank };
        let (start, stop) = (from_front(start).max(0), from_front(stop).min(length - 1));
        let count = if start > stop { 0 } else { stop - start + 1 };
        Self { offset: start as usize, count: count as usize }
    }
}

/// A part of a sorted set.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Span<'a> {
    /// An inclusive range of ranks, counted from the start of the walk.
    Ranks(i64, i64),
    Scores(Bound<f64>, Bound<f64>),
    /// A range of names. Meant for members with equal scores; otherwise selects by name from all
    /// members.
    Names(Bound<&'a [u8]>, Bound<&'a [u8]>),
    Nothing,
}

/// A part of a sorted set with the direction in which it is walked.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Selection<'a> {
    pub span: Span<'a>,
    pub direction: Direction,
    pub limit: Limit,
}

/// A range of store keys, and a filter for its members.
struct Stretch<'a> {
    from: Vec<u8>,
    to: Vec<u8>,
    limit: Limit,
    names: (Bound<&'a [u8]>, Bound<&'a [u8]>),
}

const ALL_NAMES: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Unbounded, Bound::Unbounded);

impl Selection<'_> {
    pub(crate) fn of(span: Span<'_>) -> Selection<'_> {
        Selection { span, direction: Direction::Up, limit: Limit::NONE }
    }
}

impl Access<'_> {
    /// Calls `show` with the members of a selection and their scores, in order. Also walks over the
    /// skipped members.
    pub(super) fn walk_selection(
        &self,
        head: &Head,
        selection: &Selection<'_>,
        mut show: impl FnMut(&[u8], f64) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let Some(stretch) = self.stretch(head, selection)? else { return Ok(()) };
        let (Stretch { from, to, names, .. }, mut limit) = (&stretch, stretch.limit);
        if from >= to || limit.is_used_up() {
            return Ok(());
        }
        for pair in self.walk_names_between(from, to, selection.direction) {
            self.steps.take(1)?;
            let (at, _) = pair?;
            let (score, member) = split(&at)?;
            if is_within(member, *names) && limit.takes() {
                show(member, score)?;
            }
            if limit.is_used_up() {
                break;
            }
        }
        Ok(())
    }

    /// Returns the range of a selection, or `None` if it is empty.
    fn stretch<'s>(
        &self,
        head: &Head,
        selection: &Selection<'s>,
    ) -> Result<Option<Stretch<'s>>, Fault> {
        let (from, to) = keys::parts(Space::Score, head.id);
        let (limit, names) = (selection.limit, ALL_NAMES);
        let all = Stretch { from, to, limit, names };
        Ok(Some(match selection.span {
            Span::Nothing => return Ok(None),
            Span::Ranks(start, stop) => {
                Stretch { limit: Limit::of_ranks(start, stop, head.count as i64), ..all }
            }
            Span::Scores(min, max) => {
                let from = match min {
                    Bound::Included(score) => keys::scores_from(head.id, keys::ordered(score)),
                    Bound::Excluded(score) => behind(head, score, all.to.clone()),
                    Bound::Unbounded => all.from,
                };
                let to = match max {
                    Bound::Included(score) => behind(head, score, all.to),
                    Bound::Excluded(score) => keys::scores_from(head.id, keys::ordered(score)),
                    Bound::Unbounded => all.to,
                };
                Stretch { from, to, limit, names }
            }
            Span::Names(min, max) => match self.only_score(&all)? {
                Some(score) => between_names(head, score, min, max, all),
                None => Stretch { names: (min, max), ..all },
            },
        }))
    }

    /// Returns the score of all members, if they have the same one.
    fn only_score(&self, all: &Stretch<'_>) -> Result<Option<f64>, Fault> {
        let end = |direction| -> Result<Option<f64>, Fault> {
            let end = self.walk_names_between(&all.from, &all.to, direction).next();
            end.map(|pair| Ok(split(&pair?.0)?.0)).transpose()
        };
        let (first, last) = (end(Direction::Up)?, end(Direction::Down)?);
        Ok(first.filter(|_| first.map(keys::ordered) == last.map(keys::ordered)))
    }
}

/// Returns the store key after all members with this score.
fn behind(head: &Head, score: f64, end: Vec<u8>) -> Vec<u8> {
    keys::ordered(score).checked_add(1).map_or(end, |next| keys::scores_from(head.id, next))
}

/// Narrows the range for names: members with equal scores are in the order of their names.
fn between_names<'a>(
    head: &Head,
    score: f64,
    min: Bound<&[u8]>,
    max: Bound<&[u8]>,
    all: Stretch<'a>,
) -> Stretch<'a> {
    let at = |name: &[u8]| keys::score(head.id, score, name);
    // The smallest name after `name`.
    let after = |name: &[u8]| at(&[name, b"\0"].concat());
    let from = match min {
        Bound::Included(name) => at(name),
        Bound::Excluded(name) => after(name),
        Bound::Unbounded => all.from,
    };
    let to = match max {
        Bound::Included(name) => after(name),
        Bound::Excluded(name) => at(name),
        Bound::Unbounded => all.to,
    };
    Stretch { from, to, ..all }
}

fn split(at: &[u8]) -> Result<(f64, &[u8]), Fault> {
    keys::split_score(at).ok_or_else(|| Fault::error("damaged: a member"))
}

fn is_within(name: &[u8], (min, max): (Bound<&[u8]>, Bound<&[u8]>)) -> bool {
    let is_above = match min {
        Bound::Included(min) => name >= min,
        Bound::Excluded(min) => name > min,
        Bound::Unbounded => true,
    };
    let is_below = match max {
        Bound::Included(max) => name <= max,
        Bound::Excluded(max) => name < max,
        Bound::Unbounded => true,
    };
    is_above && is_below
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks() {
        let of = |start, stop| {
            let Limit { offset, count } = Limit::of_ranks(start, stop, 5);
            (offset, count)
        };
        assert_eq!((of(0, -1), of(-2, -1), of(1, 2)), ((0, 5), (3, 2), (1, 2)));
        assert_eq!((of(0, 99), of(-99, 0)), ((0, 5), (0, 1)));
        assert_eq!((of(3, 2).1, of(9, 10).1, of(0, -99).1), (0, 0, 0));
        assert_eq!((of(i64::MIN, i64::MAX), of(i64::MAX, i64::MIN).1), ((0, 5), 0));
    }
}
