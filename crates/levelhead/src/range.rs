//! Ranges: pairs of one instant in key order, from both ends.

use std::collections::VecDeque;
use std::ops::{Bound, RangeBounds};

use crate::error::Error;
use crate::reading::{Beginning, Gives, Instant, Limits, MOST_BYTES, Most, Pair};
use crate::snapshot::Snapshot;
use crate::store::Store;

/// Pairs per fetch: at first, and at most. Each fetch doubles the number.
const FIRST: usize = 4;
const MOST: usize = 256;
/// The length of the longest key, in bytes.
pub(crate) const LONGEST: usize = 255;

/// An iterator over pairs in key order. All pairs are of one instant: that of the first read, or
/// that of the [`Snapshot`] from which the range was created. Later writes are not visible.
///
/// The range can be read from both ends: [`rev`](Iterator::rev) descends, and `next` and
/// `next_back` may be mixed until they meet.
///
/// ```
/// # fn main() -> Result<(), levelhead::Error> {
/// # let directory = std::env::temp_dir().join(format!("levelhead-range-{}", std::process::id()));
/// # let store = levelhead::Store::open(&directory, &levelhead::Options::default())?;
/// for day in 1..=9 {
///     store.put(format!("day {day}").as_bytes(), b"")?;
/// }
/// let latest = store.range(..&b"day 8"[..]).rev().take(2);
/// let keys: Result<Vec<_>, _> = latest.map(|pair| pair.map(|(key, _)| key)).collect();
/// assert_eq!(keys?, [b"day 7"[..].into(), b"day 6"[..].into()]);
/// # store.close()?;
/// # std::fs::remove_dir_all(&directory).expect("it is ours");
/// # Ok(())
/// # }
/// ```
///
/// After an error the iterator ends; note that [`count`](Iterator::count) counts an error as an
/// item. The range keeps its instant alive; a store that needs the space drops the oldest instant
/// ([`Error::TooOld`]). Descending costs as many reads as ascending. Tombstones cost time, too
/// ([`Store::range`]).
///
/// # Memory
/// Each end that is read prefetches values into a buffer of its own. The buffer starts at 16 KiB
/// and doubles each time its size has been read, up to 2 MiB, as long as all buffers and the other
/// memory of snapshots and ranges take at most 48 MiB. Beyond that, buffers no longer grow. New
/// ranges may use up to 64 MiB: enough for some thousand open ranges that were read only a little,
/// or 24 that were read far. Beyond 64 MiB a new range returns [`Error::System`] of kind
/// [`OutOfMemory`](std::io::ErrorKind::OutOfMemory).
///
/// A range keeps its buffers until it ends or is dropped. In addition, each end that is read holds
/// up to 256 pairs that were fetched but not yet returned. If the pairs are long, it holds up to
/// [`Self::MOST_FETCHED_BYTES`] of them, plus one pair.
pub struct Range {
    source: Source,
    /// The lower bound, inclusive. It may be longer than a key. The empty slice is below all keys.
    from: Box<[u8]>,
    /// The upper bound, exclusive.
    to: Option<Box<[u8]>>,
    front: Side,
    back: Side,
    is_over: bool,
    gives: Gives,
    /// Tombstones that were stepped over so far, and the limit.
    stepped_over: u64,
    most_deletions: u64,
}

/// The keys of a [`Range`], from both ends. Does not read values: if the index is in memory,
/// nothing is read from the drive. The buffer of each end stays at one page.
///
/// ```
/// # fn main() -> Result<(), levelhead::Error> {
/// # let directory = std::env::temp_dir().join(format!("levelhead-keys-{}", std::process::id()));
/// # let store = levelhead::Store::open(&directory, &levelhead::Options::default())?;
/// store.put(b"apple", b"red")?;
/// store.put(b"pear", b"green")?;
/// let keys: Result<Vec<_>, _> = store.range(..).keys().collect();
/// assert_eq!(keys?, [b"apple"[..].into(), b"pear"[..].into()]);
/// # store.close()?;
/// # std::fs::remove_dir_all(&directory).expect("it is ours");
/// # Ok(())
/// # }
/// ```
pub struct Keys(Range);

enum Source {
    /// A range of the live store; its instant is that of the first read.
    Store(Store),
    Snapshot(Snapshot),
}

impl Source {
    fn store(&self) -> &Store {
        match self {
            Self::Store(store) => store,
            Self::Snapshot(snapshot) => snapshot.store(),
        }
    }
}

/// The state of one end of a range.
#[derive(Default)]
struct Side {
    /// The number of its iterator, once that exists.
    number: Option<u64>,
    fetched: VecDeque<Pair>,
    /// Pairs in the previous fetch.
    batch: usize,
    has_come_to_its_end: bool,
    /// The last key that this end returned.
    given: Option<Box<[u8]>>,
}

/// Returns the first possible key after `key`. If `key` has the maximum length or more, returns a
/// bound after all keys that start with its first [`LONGEST`] bytes.
pub(crate) fn successor(key: &[u8]) -> Box<[u8]> {
    let begins = &key[..key.len().min(LONGEST)];
    [begins, &[0]].concat().into()
}

/// Converts `bounds` to an inclusive lower and an exclusive upper bound. Bounds may be longer than
/// keys: such a bound sorts after the key that is its prefix of [`LONGEST`] bytes.
pub(crate) fn half_open<'a>(bounds: &impl RangeBounds<&'a [u8]>) -> (Box<[u8]>, Option<Box<[u8]>>) {
    let from = match bounds.start_bound() {
        Bound::Included(key) if key.len() <= LONGEST => (*key).into(),
        Bound::Included(key) | Bound::Excluded(key) => successor(key),
        Bound::Unbounded => Box::default(),
    };
    let to = match bounds.end_bound() {
        Bound::Excluded(key) if key.len() <= LONGEST => Some((*key).into()),
        Bound::Excluded(key) | Bound::Included(key) => Some(successor(key)),
        Bound::Unbounded => None,
    };
    (from, to)
}

/// Returns the first key after all keys that start with `prefix`, or `None` if there is no such
/// key.
fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut after = prefix[..=last].to_owned();
    after[last] += 1;
    Some(after)
}

impl Store {
    /// Returns the pairs whose keys start with `prefix`, in key order, from both ends.
    ///
    /// ```
    /// # fn main() -> Result<(), levelhead::Error> {
    /// # let directory = std::env::temp_dir().join(format!("levelhead-prefix-{}", std::process::id()));
    /// # let store = levelhead::Store::open(&directory, &levelhead::Options::default())?;
    /// store.put(b"day 1", b"rain")?;
    /// store.put(b"day 2", b"sun")?;
    /// store.put(b"night 1", b"stars")?;
    /// let days: Vec<_> = store.prefix(b"day ").collect::<Result<_, _>>()?;
    /// assert_eq!(days.len(), 2);
    /// # store.close()?;
    /// # std::fs::remove_dir_all(&directory).expect("it is ours");
    /// # Ok(())
    /// # }
    /// ```
    pub fn prefix(&self, prefix: &[u8]) -> Range {
        Range::of_prefix(Source::Store(self.clone()), prefix)
    }
}

impl Snapshot {
    /// Returns the pairs whose keys start with `prefix`, in key order, from both ends. The range
    /// keeps the snapshot alive.
    pub fn prefix(&self, prefix: &[u8]) -> Range {
        Range::of_prefix(Source::Snapshot(self.clone()), prefix)
    }
}

impl Range {
    /// The maximum size, in bytes, of the pairs that each end has fetched and not yet returned. One
    /// more pair may be held beyond that.
    pub const MOST_FETCHED_BYTES: usize = MOST_BYTES;

    pub(crate) fn new<'a>(store: &Store, bounds: &impl RangeBounds<&'a [u8]>) -> Self {
        Self::of(Source::Store(store.clone()), bounds)
    }

    pub(crate) fn of_snapshot<'a>(
        snapshot: &Snapshot,
        bounds: &impl RangeBounds<&'a [u8]>,
    ) -> Self {
        Self::of(Source::Snapshot(snapshot.clone()), bounds)
    }

    /// Returns the range of the keys that start with `prefix`.
    fn of_prefix(source: Source, prefix: &[u8]) -> Self {
        let end = after_prefix(prefix);
        let end = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        Self::of(source, &(Bound::Included(prefix), end))
    }

    fn of<'a>(source: Source, bounds: &impl RangeBounds<&'a [u8]>) -> Self {
        let (from, to) = half_open(bounds);
        let is_over = to.as_ref().is_some_and(|to| *to <= from);
        let (front, back) = (Side::default(), Side::default());
        let (gives, stepped_over, most_deletions) = (Gives::Pairs, 0, u64::MAX);
        Self { source, from, to, front, back, is_over, gives, stepped_over, most_deletions }
    }

    /// Limits the number of tombstones that both ends together may step over. Beyond the limit the
    /// range ends with [`Error::Deletions`]. It may exceed the limit by some hundred tombstones.
    #[must_use]
    pub fn over_at_most(mut self, deletions: u64) -> Self {
        self.most_deletions = deletions;
        self
    }

    /// Returns the number of tombstones that the range has stepped over so far, including those
    /// between pairs that were fetched but not yet returned.
    pub fn stepped_over(&self) -> u64 {
        self.stepped_over
    }

    /// Returns an iterator over the keys alone. An end that was already being read continues to
    /// read values, which are discarded.
    pub fn keys(self) -> Keys {
        let mut range = self;
        range.gives = Gives::Keys;
        Keys(range)
    }

    /// Returns the position where the first read of an end starts.
    fn beginning(&self, is_back: bool) -> Beginning {
        if is_back {
            return Beginning::Last;
        }
        // No key is empty or longer than [`LONGEST`]. Keys below the lower bound are skipped.
        let first = if self.from.is_empty() { &[0][..] } else { &self.from };
        Beginning::Key(first[..first.len().min(LONGEST)].into())
    }

    /// Fetches more pairs from one end.
    fn fetch(&mut self, is_back: bool) -> Result<(), Error> {
        let beginning = self.beginning(is_back);
        let limits = Limits { from: self.from.clone(), to: self.to.clone(), gives: self.gives };
        let store = self.source.store().clone();
        let (side, other) =
            if is_back { (&mut self.back, &self.front) } else { (&mut self.front, &self.back) };
        side.batch = (2 * side.batch).clamp(FIRST, MOST);
        let deletions = self.most_deletions.saturating_sub(self.stepped_over);
        let most = Most { pairs: side.batch, deletions };
        let pairs = if let Some(number) = side.number {
            store.next_of_range(number, None, most)?
        } else {
            let instant = match (other.number, &self.source) {
                (Some(number), _) => Instant::OfRange(number),
                (None, Source::Snapshot(snapshot)) => Instant::OfSnapshot(snapshot.number()),
                (None, Source::Store(_)) => Instant::Present,
            };
            let (number, pairs) = store.first_of_range(instant, &limits, beginning, most)?;
            side.number = Some(number);
            pairs
        };
        side.has_come_to_its_end = pairs.is_end;
        self.stepped_over += pairs.stepped_over;
        side.fetched.extend(pairs.pairs.into_iter().filter(|(key, _)| *key >= self.from));
        Ok(())
    }

    /// Returns the next pair from one end, unless the other end has already returned it.
    fn step(&mut self, is_back: bool) -> Option<Result<Pair, Error>> {
        loop {
            if self.is_over {
                return None;
            }
            let (side, other) =
                if is_back { (&mut self.back, &self.front) } else { (&mut self.front, &self.back) };
            if let Some((key, value)) = side.fetched.pop_front() {
                let has_passed =
                    |given: &[u8]| if is_back { *key <= *given } else { *key >= *given };
                let have_met = other.given.as_deref().is_some_and(has_passed);
                if have_met {
                    self.end();
                    return None;
                }
                side.given = Some(key.clone());
                return Some(Ok((key, value)));
            }
            if side.has_come_to_its_end {
                self.end();
            } else if self.stepped_over > self.most_deletions {
                self.end();
                return Some(Err(Error::Deletions(self.stepped_over)));
            } else if let Err(error) = self.fetch(is_back) {
                self.end();
                return Some(Err(error));
            }
        }
    }

    /// Ends the range and releases its iterators.
    fn end(&mut self) {
        self.is_over = true;
        let mut numbers = Vec::new();
        for side in [&mut self.front, &mut self.back] {
            side.fetched.clear();
            numbers.extend(side.number.take());
        }
        if !numbers.is_empty() {
            self.source.store().end_ranges(&numbers);
        }
    }
}

impl Iterator for Range {
    type Item = Result<Pair, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(false)
    }
}

impl DoubleEndedIterator for Range {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(true)
    }
}

impl std::iter::FusedIterator for Range {}

impl Keys {
    /// As [`Range::stepped_over`].
    pub fn stepped_over(&self) -> u64 {
        self.0.stepped_over()
    }
}

impl Iterator for Keys {
    type Item = Result<Box<[u8]>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.step(false)?.map(|(key, _)| key))
    }
}

impl DoubleEndedIterator for Keys {
    fn next_back(&mut self) -> Option<Self::Item> {
        Some(self.0.step(true)?.map(|(key, _)| key))
    }
}

impl std::iter::FusedIterator for Keys {}

impl Drop for Range {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_long_pairs_few_are_fetched_ahead() {
        let directory = std::env::temp_dir().join(format!("levelhead-long-{}", std::process::id()));
        let options = crate::Options { capacity_bytes: 256 << 20, ..crate::Options::default() };
        let store = Store::open(&directory, &options).expect("it is ours");
        let value = vec![7; 100 << 10];
        for n in 0..60_u8 {
            store.put_with(&[n], &value, crate::Durability::None).expect("there is room");
        }
        let mut range = store.range(..);
        let mut most = 0;
        for n in 0..60_u8 {
            let pair = range.next().expect("there are 60").expect("it can be read");
            assert_eq!((&pair.0[..], pair.1.len()), (&[n][..], value.len()));
            most = most.max(range.front.fetched.len());
        }
        assert!(range.next().is_none());
        assert!((1..=3).contains(&most), "{most} were fetched ahead");
        drop((range, store));
        let _ = std::fs::remove_dir_all(&directory);
    }

    /// Checks the claim about queues in the documentation of [`Store::range`].
    #[test]
    fn deletions_before_the_first_pair_cost_until_they_are_compacted() {
        let directory = std::env::temp_dir().join(format!("levelhead-head-{}", std::process::id()));
        let options = crate::Options { capacity_bytes: 256 << 20, ..crate::Options::default() };
        let store = Store::open(&directory, &options).expect("it is ours");
        let key = |n: u32| n.to_be_bytes();
        for n in 0..2_000 {
            store.put_with(&key(n), b"", crate::Durability::None).expect("there is room");
        }
        for n in 0..1_000 {
            store.delete_with(&key(n), crate::Durability::None).expect("there is room");
        }
        let stepped_over = |from: Bound<&[u8]>| {
            let skipped = || store.inside().stats.iterators.skipped;
            let before = skipped();
            let first = store.range((from, Bound::Unbounded)).next().expect("there are 1,000");
            assert_eq!(*first.expect("it is whole").0, key(1_000));
            skipped() - before
        };
        assert_eq!(stepped_over(Bound::Unbounded), 1_000);
        assert_eq!(stepped_over(Bound::Excluded(&key(999))), 0);
        store.compact().expect("there is room");
        assert_eq!(stepped_over(Bound::Unbounded), 0);
        drop(store);
        let _ = std::fs::remove_dir_all(&directory);
    }

    #[test]
    fn a_range_may_end_among_deletions() {
        let directory = std::env::temp_dir().join(format!("levelhead-over-{}", std::process::id()));
        let options = crate::Options { capacity_bytes: 256 << 20, ..crate::Options::default() };
        let store = Store::open(&directory, &options).expect("it is ours");
        let key = |n: u32| n.to_be_bytes();
        for n in 0..3_000 {
            store.put_with(&key(n), b"", crate::Durability::None).expect("there is room");
        }
        for n in 1_000..2_000 {
            store.delete_with(&key(n), crate::Durability::None).expect("there is room");
        }
        let all = store.range(..).over_at_most(1_000);
        let all: Result<Vec<_>, _> = all.collect();
        assert_eq!(all.expect("there are no more").len(), 2_000);
        let mut cut = store.range(..).over_at_most(300).keys();
        let before = cut.by_ref().take_while(Result::is_ok).count();
        assert!(before <= 1_000 && (301..1_000).contains(&cut.stepped_over()), "{before}");
        assert!(cut.next().is_none());
        let mut cut = store.range(..).over_at_most(300).rev();
        let error = cut.find_map(Result::err);
        assert!(matches!(error, Some(Error::Deletions(301..1_000))), "{error:?}");
        drop((cut, store));
        let _ = std::fs::remove_dir_all(&directory);
    }

    #[test]
    fn keys_with_a_prefix_end_in_front_of_the_first_that_has_another() {
        for (prefix, after) in [
            (&b""[..], None),
            (b"day ", Some(&b"day!"[..])),
            (b"a\xff\xff", Some(b"b")),
            (b"\xff\xff", None),
        ] {
            assert_eq!(after_prefix(prefix).as_deref(), after, "{prefix:?}");
        }
    }

    #[test]
    fn bounds_longer_than_keys_lie_behind_the_keys_that_they_begin_with() {
        let (long, longest) = (&[7; 300][..], &[7; LONGEST][..]);
        let behind: Box<[u8]> = [longest, &[0]].concat().into();
        let of = |low: Bound<&[u8]>, high: Bound<&[u8]>| {
            let (from, to) = half_open(&(low, high));
            (from, to.expect("it has an end"))
        };
        assert_eq!(
            of(Bound::Included(long), Bound::Excluded(long)),
            (behind.clone(), behind.clone())
        );
        assert_eq!(
            of(Bound::Included(longest), Bound::Included(longest)),
            (longest.into(), behind)
        );
        let short = (Box::from(&b"a\0"[..]), Box::from(&b"b"[..]));
        assert_eq!(of(Bound::Excluded(b"a"), Bound::Excluded(b"b")), short);
        assert_eq!(half_open(&(..)), (Box::default(), None));
    }
}
