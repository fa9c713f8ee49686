//! The pending writes of a transaction, which only its own commands see.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::iter::Peekable;
use std::ops::Bound;
use std::vec;

use levelhead::{Error, Keys, Range, Snapshot, Store};

use super::batch::{Batch, Change};
use super::steps::Steps;

/// Limit on the instants in a row that the store may drop before a walk returns a pair. Beyond it,
/// the walk returns the error.
const TRIES: u32 = 100;

/// A pair of a range, or the error of the read.
pub(crate) type Pair = Result<(Box<[u8]>, Vec<u8>), Error>;

/// Bounds of a range of keys.
pub(crate) type Bounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// New values of store keys; `None` for deleted keys.
type Changes = BTreeMap<Box<[u8]>, Option<Vec<u8>>>;

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    changes: RefCell<Changes>,
    keys: Cell<i64>,
    bytes: Cell<usize>,
    /// Whether it contains a batch that does not free space.
    takes_room: Cell<bool>,
}

impl Overlay {
    /// Returns the pending value of a key, or the value `beneath` if the key is unchanged.
    pub(crate) fn get_or<E>(
        &self,
        at: &[u8],
        beneath: impl FnOnce() -> Result<Option<Vec<u8>>, E>,
    ) -> Result<Option<Vec<u8>>, E> {
        match self.changes.borrow().get(at) {
            Some(changed) => Ok(changed.clone()),
            None => beneath(),
        }
    }

    /// Whether a changed key exists afterwards; `None` if it is unchanged.
    pub(crate) fn is_put(&self, at: &[u8]) -> Option<bool> {
        self.changes.borrow().get(at).map(Option::is_some)
    }

    pub(crate) fn add(&self, batch: Batch) {
        self.keys.set(self.keys.get() + batch.keys);
        self.takes_room.set(self.takes_room.get() || !batch.makes_room && !batch.is_empty());
        let (mut changes, mut bytes) = (self.changes.borrow_mut(), self.bytes.get());
        for (key, value) in batch.into_changes() {
            let length = key.len();
            bytes += held_bytes(length, value.as_deref());
            if let Some(before) = changes.insert(key, value) {
                bytes -= held_bytes(length, before.as_deref());
            }
        }
        self.bytes.set(bytes);
    }

    /// Returns the approximate memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.get()
    }

    /// Returns the change of the number of user keys.
    pub(crate) fn keys(&self) -> i64 {
        self.keys.get()
    }

    /// Removes all changes and returns them as one batch.
    pub(crate) fn take(&self) -> Batch {
        self.bytes.set(0);
        Batch::of(self.changes.take(), self.keys.take(), !self.takes_room.take())
    }

    fn within(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Vec<Change> {
        let changes = self.changes.borrow();
        let from_lower = changes.range::<[u8], _>((lower, Bound::Unbounded));
        let is_within = |key: &[u8]| match upper {
            Bound::Included(upper) => key <= upper,
            Bound::Excluded(upper) => key < upper,
            Bound::Unbounded => true,
        };
        let within = from_lower.take_while(|(key, _)| is_within(key));
        within.map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

/// Returns the memory of a change in bytes, with the overhead of the map.
fn held_bytes(key_length: usize, value: Option<&[u8]>) -> usize {
    key_length + value.map_or(0, <[u8]>::len) + 64
}

/// The direction of a walk over a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    Up,
    Down,
}

impl Direction {
    /// Compares two keys in the direction of the walk.
    fn order(self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Self::Up => a.cmp(b),
            Self::Down => b.cmp(a),
        }
    }
}

/// The kind of items that a range returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Gives {
    Pairs,
    /// Keys only; values are not read and are empty.
    Keys,
}

/// A range of the store.
enum Stored {
    Pairs(Range),
    Keys(Keys),
}

impl Stored {
    fn new(range: Range, gives: Gives) -> Self {
        match gives {
            Gives::Pairs => Self::Pairs(range),
            Gives::Keys => Self::Keys(range.keys()),
        }
    }

    fn next(&mut self, direction: Direction) -> Option<Pair> {
        let alone = |key: Result<Box<[u8]>, _>| key.map(|key| (key, Vec::new()));
        match (self, direction) {
            (Self::Pairs(range), Direction::Up) => range.next(),
            (Self::Pairs(range), Direction::Down) => range.next_back(),
            (Self::Keys(keys), Direction::Up) => keys.next().map(alone),
            (Self::Keys(keys), Direction::Down) => keys.next_back().map(alone),
        }
    }

    fn stepped_over(&self) -> u64 {
        match self {
            Self::Pairs(range) => range.stepped_over(),
            Self::Keys(keys) => keys.stepped_over(),
        }
    }
}

/// The part of a range of the live store that a walk has not returned yet.
struct Rest<'a> {
    store: &'a Store,
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
}

impl Rest<'_> {
    /// Removes a key that was returned, and all keys before it in the direction of the walk.
    fn pass(&mut self, key: &[u8], direction: Direction) {
        let bound = match direction {
            Direction::Up => &mut self.lower,
            Direction::Down => &mut self.upper,
        };
        // Keys are of similar lengths: the buffer is used again.
        if let Bound::Excluded(last) = bound {
            last.clear();
            last.extend_from_slice(key);
        } else {
            *bound = Bound::Excluded(key.to_vec());
        }
    }

    fn range(&self) -> Range {
        self.store.range((
            self.lower.as_ref().map(|key| &key[..]),
            self.upper.as_ref().map(|key| &key[..]),
        ))
    }
}

/// A walk over a range of the store. Each tombstone counts as a step of the command.
struct Walk<'a> {
    stored: Stored,
    /// `None` for a range of a snapshot.
    rest: Option<Rest<'a>>,
    direction: Direction,
    gives: Gives,
    steps: &'a Steps<'a>,
    /// Tombstones of `stored` that are counted already.
    deletions: u64,
}

impl Walk<'_> {
    /// Returns the next pair. A full store drops the instants of ranges early; the range of the
    /// live store then continues at a newer instant after the last pair.
    fn next_stored(&mut self) -> Option<Pair> {
        let mut in_vain = 0;
        loop {
            let next = self.stored.next(self.direction);
            let Some(rest) = &mut self.rest else { return next };
            match next {
                Some(Err(Error::TooOld { .. })) if in_vain < TRIES => {
                    let range = rest.range().over_at_most(self.steps.left());
                    (self.stored, self.deletions) = (Stored::new(range, self.gives), 0);
                    in_vain += 1;
                }
                Some(Ok((key, value))) => {
                    rest.pass(&key, self.direction);
                    return Some(Ok((key, value)));
                }
                next => return next,
            }
        }
    }
}

impl Iterator for Walk<'_> {
    type Item = Pair;

    fn next(&mut self) -> Option<Pair> {
        let next = self.next_stored();
        let deletions = self.stored.stepped_over();
        let new = deletions - std::mem::replace(&mut self.deletions, deletions);
        match self.steps.pass(new as usize) {
            Ok(()) => next,
            Err(_) => Some(Err(Error::Deletions(deletions))),
        }
    }
}

/// Pairs of a range in key order, ascending or descending: those of the store, merged with the
/// changes of the transaction.
pub(crate) struct Pairs<'a> {
    store: Peekable<Walk<'a>>,
    changes: Peekable<vec::IntoIter<Change>>,
    direction: Direction,
}

impl<'a> Pairs<'a> {
    /// Merges a range of the live store with an overlay. If the store drops the instant of the
    /// range, the rest is read at a newer one. Requires: the key of all pairs is locked, or their
    /// number may vary.
    ///
    /// If the walk meets more tombstones than steps are left, it ends with an error and the steps
    /// are cut short.
    pub(crate) fn of_store(
        store: &'a Store,
        overlay: Option<&Overlay>,
        steps: &'a Steps<'a>,
        bounds: Bounds<'_>,
        direction: Direction,
        gives: Gives,
    ) -> Self {
        let (lower, upper) = (bounds.0.map(<[u8]>::to_vec), bounds.1.map(<[u8]>::to_vec));
        let rest = Rest { store, lower, upper };
        let stored = Stored::new(rest.range().over_at_most(steps.left()), gives);
        let walk = Walk { stored, rest: Some(rest), direction, gives, steps, deletions: 0 };
        Self::new(walk, overlay, bounds)
    }

    /// As [`of_store`](Self::of_store), ascending at a snapshot. Returns [`Error::TooOld`] if the
    /// store drops it.
    pub(crate) fn of_snapshot(
        instant: &Snapshot,
        overlay: Option<&Overlay>,
        steps: &'a Steps<'a>,
        bounds: Bounds<'_>,
        gives: Gives,
    ) -> Self {
        let stored = Stored::new(instant.range(bounds).over_at_most(steps.left()), gives);
        let direction = Direction::Up;
        let walk = Walk { stored, rest: None, direction, gives, steps, deletions: 0 };
        Self::new(walk, overlay, bounds)
    }

    fn new(walk: Walk<'a>, overlay: Option<&Overlay>, (lower, upper): Bounds<'_>) -> Self {
        let mut changes = overlay.map(|overlay| overlay.within(lower, upper)).unwrap_or_default();
        if walk.direction == Direction::Down {
            changes.reverse();
        }
        let direction = walk.direction;
        Self { store: walk.peekable(), changes: changes.into_iter().peekable(), direction }
    }
}

impl Iterator for Pairs<'_> {
    type Item = Pair;

    fn next(&mut self) -> Option<Pair> {
        loop {
            let Some((changed, _)) = self.changes.peek() else { return self.store.next() };
            match self.store.peek() {
                Some(Err(_)) => return self.store.next(),
                Some(Ok((key, _))) => match self.direction.order(key, changed) {
                    Ordering::Less => return self.store.next(),
                    Ordering::Equal => drop(self.store.next()),
                    Ordering::Greater => {}
                },
                None => {}
            }
            if let Some((key, Some(value))) = self.changes.next() {
                return Some(Ok((key, value)));
            }
        }
    }
}
