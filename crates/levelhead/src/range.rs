//! Ranges: pairs of one instant in key order, from both ends.

use std::collections::VecDeque;
use std::ops::{Bound, RangeBounds};

use crate::error::Error;
use crate::key_bounds::{LONGEST, after_prefix, half_open};
use crate::reading::{Beginning, Gives, Instant, Limits, MOST_BYTES, Most, Pair};
use crate::snapshot::Snapshot;
use crate::store::Store;

/// Pairs per fetch: at first, and at most. Each fetch doubles the number.
const FIRST: usize = 4;
const MOST: usize = 256;

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

impl Store {
    /// Returns the pairs whose keys are within `bounds`, in key order. The range can be read from
    /// both ends. It shows the store as it is when the first pair is read. Each item is a
    /// `Result<(Box<[u8]>, Vec<u8>), Error>`: a key and its value.
    ///
    /// Bounds are slices, such as `..` or `&b"a"[..]..&b"b"[..]`. To exclude the lower bound, use a
    /// pair of [`Bound`](std::ops::Bound)s. For the keys with a common prefix use [`Self::prefix`].
    ///
    /// # Cost of deletions
    /// A deleted key leaves a tombstone in the index until compactions have moved it to the last
    /// level. A range must step over these tombstones. In a queue whose head is removed repeatedly,
    /// reading the first pair therefore costs as much as all earlier removals: with 2 million
    /// tombstones it took half a second. To avoid this cost, start the range after the key that was
    /// removed last, as tombstones outside the bounds cost nothing:
    ///
    /// ```
    /// # fn main() -> Result<(), levelhead::Error> {
    /// # use std::ops::Bound;
    /// # let directory = std::env::temp_dir().join(format!("levelhead-queue-{}", std::process::id()));
    /// # let store = levelhead::Store::open(&directory, &levelhead::Options::default())?;
    /// # for job in 0..9 {
    /// #     store.put(format!("job {job}").as_bytes(), b"")?;
    /// # }
    /// let mut taken: Box<[u8]> = Box::from(&b"job "[..]);
    /// for _ in 0..5 {
    ///     let queue = (Bound::Excluded(&taken[..]), Bound::Excluded(&b"job!"[..]));
    ///     let Some((job, _)) = store.range(queue).next().transpose()? else { break };
    ///     store.delete(&job)?;
    ///     taken = job;
    /// }
    /// assert_eq!(*taken, *b"job 4");
    /// # store.close()?;
    /// # std::fs::remove_dir_all(&directory).expect("it is ours");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// If that key is not known, [`Self::compact`] removes the tombstones; [`Self::settle`] does
    /// not. While a range steps over tombstones, other threads can still use the store.
    /// [`Range::over_at_most`] limits the number of tombstones.
    pub fn range<'a>(&self, bounds: impl RangeBounds<&'a [u8]>) -> Range {
        Range::of(Source::Store(self.clone()), &bounds)
    }

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
    /// Returns the pairs whose keys are within `bounds`, in key order, from both ends. The range
    /// keeps the snapshot alive.
    pub fn range<'a>(&self, bounds: impl RangeBounds<&'a [u8]>) -> Range {
        Range::of(Source::Snapshot(self.clone()), &bounds)
    }

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
}
