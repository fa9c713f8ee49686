//! The memtable: the newest writes, in memory, in key order.
//!
//! A key may have several versions, newest first; older versions are kept only while a snapshot can
//! see them. Snapshots share a memtable with the writers and read it as of their sequence number;
//! flushes write the newest versions only. Cost of a lookup or an insert: `O(log n)` comparisons.
//!
//! Keys and values are stored in chunks (`chunks.rs`), which do not free the space of an
//! overwritten value. A memtable is therefore also full when its overwritten bytes reach its size
//! limit: its chunks use at most twice that limit.

pub(crate) mod chunks;
pub(crate) mod marks;

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::rc::Rc;

use bytes::Bytes;
use runtime::{Carrier, Rng};

use crate::format::data_page::Outgoing;
use crate::format::object::{Sequence, full_len};
use crate::format::value::Value;
use crate::memtable::chunks::Chunks;
use crate::memtable::marks::Marks;

/// The limits of the memtables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemtableLimits {
    /// Writes in a memtable before it is flushed.
    pub entries: usize,
    /// Bytes of objects in a memtable before it is flushed.
    pub bytes: u64,
    /// The most pages by which one memtable can grow the index.
    pub index_pages: u32,
    /// The most bytes by which one memtable can grow the manifest's checkpoints; 0 without a
    /// manifest.
    pub checkpoint_bytes: u64,
    /// The number of frozen memtables that may wait for their flush.
    pub frozen: usize,
    /// Whether puts leave room for batches that free space: some extents, for a sixteenth of a
    /// memtable.
    pub leaves_room: bool,
}

/// One key in this many is a sample.
const SAMPLED: usize = 64;
/// Maximum number of keys between a sample and the drawn key. Larger than the distance of samples,
/// so that the positions of the samples have little influence.
const GOES_ON: usize = 1_024;

/// A key that shares the memory of its memtable.
pub(crate) type SharedKey = Bytes;

/// The result of a write for its key. `None` is a tombstone.
pub(crate) type Entry = Option<Value>;

/// Writes that are not in any level yet.
#[derive(Default)]
pub(crate) struct Memtable {
    keys: BTreeMap<SharedKey, Versions>,
    /// Samples of the keys, in order of insertion.
    samples: Vec<SharedKey>,
    chunks: Chunks,
    marks: Marks,
    bytes: u64,
    /// Bytes of overwritten values in chunks.
    overwritten: u64,
    /// The first group of the WAL with a write of this memtable, if a WAL exists.
    first_group: Option<u64>,
    /// The last such group.
    last_group: Option<u64>,
    /// Sequence number of the newest write.
    last_sequence: Sequence,
}

struct Versions {
    newest: Version,
    /// Nearly always absent; boxed to keep `Versions` small.
    older: Option<Box<Older>>,
}

/// Versions that snapshots can see, newest first.
#[derive(Default)]
struct Older(Vec<Version>);

#[derive(Clone)]
struct Version {
    sequence: Sequence,
    entry: Entry,
}

impl Versions {
    /// Returns the newest version at or before `at`.
    fn at(&self, at: Sequence) -> Option<&Version> {
        let older = self.older.iter().flat_map(|older| &older.0);
        std::iter::once(&self.newest).chain(older).find(|version| version.sequence <= at)
    }
}

impl Memtable {
    /// Returns the newest write of `key`.
    fn get(&self, key: &[u8]) -> Option<(Sequence, Entry)> {
        let newest = &self.keys.get(key)?.newest;
        Some((newest.sequence, newest.entry.clone()))
    }

    /// Returns the first key in `from` that has a version at or before `at`, and that version.
    pub(crate) fn next(&self, from: Bound<&[u8]>, at: Sequence) -> Option<(Box<[u8]>, Entry)> {
        self.keys.range::<[u8], _>((from, Bound::Unbounded)).find_map(|(key, versions)| {
            versions.at(at).map(|version| (key[..].into(), version.entry.clone()))
        })
    }

    /// Returns the last key before `before`, or of all keys, that has a version at or before `at`,
    /// and that version.
    pub(crate) fn previous(
        &self,
        before: Option<&[u8]>,
        at: Sequence,
    ) -> Option<(Box<[u8]>, Entry)> {
        let end = before.map_or(Bound::Unbounded, Bound::Excluded);
        self.keys.range::<[u8], _>((Bound::Unbounded, end)).rev().find_map(|(key, versions)| {
            versions.at(at).map(|version| (key[..].into(), version.entry.clone()))
        })
    }

    /// Returns the entry of `key` that a reader at `at` sees; `None` if the key had no write by
    /// then.
    pub(crate) fn at(&self, key: &[u8], at: Sequence) -> Option<Entry> {
        self.keys.get(key)?.at(at).map(|version| version.entry.clone())
    }

    /// Returns the entry with its value copied into this memtable's chunks. Sharing that copy pins
    /// no additional memory.
    pub(crate) fn place(&mut self, entry: Entry) -> Entry {
        match entry {
            Some(Value::Bytes(bytes)) if Chunks::takes(bytes.len()) => {
                Some(Value::Bytes(self.chunks.keep(&bytes)))
            }
            entry => entry,
        }
    }

    /// Calls [`Self::place`] and [`Self::insert_placed`].
    pub(crate) fn insert(
        &mut self,
        key: &[u8],
        sequence: Sequence,
        entry: Entry,
        newest_snapshot: Option<Sequence>,
    ) {
        let entry = self.place(entry);
        self.insert_placed(key, sequence, entry, newest_snapshot);
    }

    /// Saves or restores the fill state that dumps omit: the bytes of live and overwritten values.
    pub(crate) fn carry_fill(&mut self, by: &mut Carrier<'_>) -> Option<()> {
        by.u64(&mut self.bytes)?;
        by.u64(&mut self.overwritten)
    }

    /// Inserts a write. Requires: it is newer than every other write of its key. The replaced
    /// version is kept if a snapshot at or after it can still see it; `newest_snapshot` is the
    /// newest snapshot.
    pub(crate) fn insert_placed(
        &mut self,
        key: &[u8],
        sequence: Sequence,
        entry: Entry,
        newest_snapshot: Option<Sequence>,
    ) {
        let len = |entry: &Entry| full_len(key.len(), entry.as_ref().map_or(0, Value::len)) as u64;
        self.bytes += len(&entry);
        self.last_sequence = self.last_sequence.max(sequence);
        let version = Version { sequence, entry };
        let known = if self.marks.may_have(key) { self.keys.get_mut(key) } else { None };
        let Some(versions) = known else {
            let keys = &self.keys;
            self.marks.mark(key, |from| {
                keys.range::<[u8], _>((from, Bound::Unbounded)).map(|(key, _)| &key[..])
            });
            let key = self.chunks.keep(key);
            if self.keys.len().is_multiple_of(SAMPLED) {
                self.samples.push(key.clone());
            }
            self.keys.insert(key, Versions { newest: version, older: None });
            return;
        };
        assert!(versions.newest.sequence < sequence, "writes of a key come in order");
        let replaced = std::mem::replace(&mut versions.newest, version);
        if newest_snapshot.is_some_and(|snapshot| replaced.sequence <= snapshot) {
            versions.older.get_or_insert_default().0.insert(0, replaced);
        } else {
            let gone = len(&replaced.entry);
            self.overwritten += in_chunks(&replaced.entry);
            assert!(self.bytes >= gone, "a memtable counts {} bytes, {gone} go", self.bytes);
            self.bytes -= gone;
        }
    }

    /// Iterates over the keys and their newest versions, in key order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], Sequence, &Entry)> {
        self.keys
            .iter()
            .map(|(key, versions)| (&key[..], versions.newest.sequence, &versions.newest.entry))
    }

    /// Returns the newest write of each key, in key order, for at most `most` keys in `from`. Used
    /// by flushes.
    pub(crate) fn writes(&self, from: Bound<&[u8]>, most: usize) -> Vec<Write> {
        let owned = |key: &SharedKey, versions: &Versions| Write {
            key: key.clone(),
            sequence: versions.newest.sequence,
            entry: versions.newest.entry.clone(),
        };
        let range = self.keys.range::<[u8], _>((from, Bound::Unbounded)).take(most);
        range.map(|(key, versions)| owned(key, versions)).collect()
    }

    /// Records that WAL group `group` contains a write of this memtable.
    pub(crate) fn note_group(&mut self, group: u64) {
        let last = self.last_group.replace(group);
        assert!(last <= Some(group), "group {group} of the log comes after group {last:?}");
        self.first_group.get_or_insert(group);
    }

    /// Returns the first WAL group that this memtable needs.
    pub(crate) fn first_group(&self) -> Option<u64> {
        self.first_group
    }

    /// Returns the sequence number of the newest write.
    pub(crate) fn last_sequence(&self) -> Sequence {
        self.last_sequence
    }

    /// Returns the full length of all objects, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the memtable has reached a limit.
    pub(crate) fn is_full(&self, limits: &MemtableLimits) -> bool {
        let most = self.bytes.max(self.overwritten);
        self.len() >= limits.entries || most >= limits.bytes
    }

    /// Returns a random key, nearly uniformly drawn, and its newest version. Cost: some hundred
    /// steps.
    pub(crate) fn drawn(&self, rng: &mut Rng) -> Option<(&SharedKey, &Entry)> {
        let samples = self.samples.len().max(1) as u64;
        let from = self.samples.get(rng.below(samples) as usize)?;
        let on = rng.below(self.keys.len().min(GOES_ON) as u64) as usize;
        // The range wraps around from the last key to the first.
        let behind = self.keys.range::<[u8], _>((Bound::Included(&from[..]), Bound::Unbounded));
        let (key, versions) = behind.chain(&self.keys).nth(on)?;
        Some((key, &versions.newest.entry))
    }

    /// Returns the number of keys.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }
}

/// Returns the bytes that a value uses in a chunk.
fn in_chunks(entry: &Entry) -> u64 {
    match entry {
        Some(Value::Bytes(bytes)) if Chunks::takes(bytes.len()) => bytes.len() as u64,
        _ => 0,
    }
}

/// The newest write of a key. It shares key and value with its memtable.
pub(crate) struct Write {
    /// The key.
    pub key: SharedKey,
    pub(crate) sequence: Sequence,
    /// The written value, or `None` for a tombstone.
    pub entry: Entry,
}

impl Write {
    /// Returns the object to store; `None` for a delete.
    pub(crate) fn object(&self) -> Option<Outgoing<'_>> {
        let (key, sequence) = (&self.key[..], self.sequence);
        self.entry.as_ref().map(|value| Outgoing { key, sequence, value })
    }
}

/// A memtable that writers and snapshots share.
pub(crate) type SharedMemtable = Rc<RefCell<Memtable>>;

/// All memtables of a store.
#[derive(Default)]
pub(crate) struct Memtables {
    pub(crate) active: SharedMemtable,
    /// Frozen memtables, oldest first; they accept no more writes.
    pub frozen: VecDeque<SharedMemtable>,
}

impl Memtables {
    /// Returns all memtables, newest first.
    pub(crate) fn newest_first(&self) -> impl Iterator<Item = &SharedMemtable> {
        std::iter::once(&self.active).chain(self.frozen.iter().rev())
    }

    /// Returns the newest write of `key`.
    pub(crate) fn get(&self, key: &[u8]) -> Option<(Sequence, Entry)> {
        let hash = marks::hash(key);
        let newest_in = |memtable: &SharedMemtable| {
            let memtable = memtable.borrow();
            if memtable.marks.may_have_hashed(hash) { memtable.get(key) } else { None }
        };
        // In the order of `newest_first`; nearly always only the active memtable exists.
        newest_in(&self.active).or_else(|| self.frozen.iter().rev().find_map(newest_in))
    }

    /// Returns the first WAL group that the other memtables need, once the oldest frozen one is
    /// flushed.
    pub(crate) fn first_group_without_oldest(&self) -> Option<u64> {
        let rest = self.frozen.iter().skip(1).chain([&self.active]);
        rest.filter_map(|memtable| memtable.borrow().first_group()).min()
    }

    /// Returns the bytes in the active memtable.
    pub(crate) fn active_bytes(&self) -> u64 {
        self.active.borrow().bytes()
    }

    /// Returns the bytes in all memtables.
    pub(crate) fn bytes(&self) -> u64 {
        self.newest_first().map(|memtable| memtable.borrow().bytes()).sum()
    }

    /// Freezes the active memtable unless it is empty. Returns whether it did.
    pub(crate) fn freeze(&mut self) -> bool {
        let holds_something = self.active.borrow().len() > 0;
        if holds_something {
            // Otherwise the WAL could be trimmed of groups that an older memtable needs.
            let group = |memtable: &SharedMemtable| memtable.borrow().first_group();
            let before = self.frozen.back().and_then(group);
            let now = group(&self.active);
            assert!(
                before.is_none() || now.is_none() || before <= now,
                "a memtable with group {now:?} of the log is frozen behind one with {before:?}"
            );
            self.frozen.push_back(std::mem::take(&mut self.active));
        }
        holds_something
    }

    /// Whether all memtables are empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.frozen.is_empty() && self.active.borrow().len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        Value::from_bytes(text.as_bytes())
    }

    #[test]
    fn versions_are_kept_only_for_snapshots() {
        let mut memtable = Memtable::default();
        memtable.insert(b"a", 1, Some(value("one")), None);
        memtable.insert(b"a", 2, Some(value("two")), None);
        memtable.insert(b"a", 3, None, Some(2));
        memtable.insert(b"a", 4, Some(value("four")), Some(2));
        assert_eq!(memtable.get(b"a"), Some((4, Some(value("four")))));
        let at = |sequence| memtable.next(Bound::Unbounded, sequence).map(|(_, entry)| entry);
        assert_eq!(at(1), None, "nobody could see the first version");
        assert_eq!(at(2), Some(Some(value("two"))));
        assert_eq!(
            at(3),
            Some(Some(value("two"))),
            "the third was gone before anybody could see it"
        );
        assert_eq!(at(4), Some(Some(value("four"))));
        let two = full_len(1, 3) + full_len(1, 4);
        assert_eq!((memtable.bytes(), memtable.len()), (two as u64, 1));
    }

    #[test]
    fn what_is_overwritten_makes_a_memtable_full_as_well() {
        let limits = MemtableLimits {
            entries: 1000,
            bytes: 10_000,
            index_pages: 1,
            checkpoint_bytes: 0,
            frozen: 1,
            leaves_room: false,
        };
        let bytes = Some(Value::from_bytes(&[7; 1000]));
        let synthetic = Some(Value::Synthetic { seed: 1, len: 1000 });
        let own = Some(Value::from_bytes(&vec![7; 100_000]));
        let full_after = |entry: &Entry, limits: &MemtableLimits| {
            let mut memtable = Memtable::default();
            (1..100).find(|sequence| {
                memtable.insert(b"key", *sequence, entry.clone(), None);
                memtable.is_full(limits)
            })
        };
        assert_eq!(full_after(&bytes, &limits), Some(11), "10,000 bytes lie in chunks for nobody");
        assert_eq!(full_after(&synthetic, &limits), None);
        let large = MemtableLimits { bytes: 200_000, ..limits };
        assert_eq!(full_after(&own, &large), None, "each is given back at once");
        let mut memtable = Memtable::default();
        for sequence in 1..100 {
            memtable.insert(b"key", sequence, bytes.clone(), Some(sequence));
        }
        assert_eq!(memtable.bytes(), 99 * full_len(3, 1000) as u64, "snapshots see all of them");
        assert_eq!(memtable.overwritten, 0);
    }

    #[test]
    fn what_is_placed_is_shared_with_flushes_and_readers() {
        let mut memtable = Memtable::default();
        let Some(Value::Bytes(placed)) = memtable.place(Some(value("some value"))) else {
            panic!("a value stays one")
        };
        memtable.insert_placed(b"a", 1, Some(Value::Bytes(placed.clone())), None);
        let Some((1, Some(Value::Bytes(read)))) = memtable.get(b"a") else { panic!("not found") };
        let writes = memtable.writes(Bound::Unbounded, 9);
        let Some(Value::Bytes(flushed)) = &writes[0].entry else { panic!("no value") };
        let places = [read.as_ptr(), flushed.as_ptr()];
        assert_eq!(places, [placed.as_ptr(); 2]);
        assert_eq!(writes[0].key.as_ptr(), placed.as_ptr().wrapping_add(placed.len()));
    }

    /// Tests keys inserted in order and out of order, up to the last key.
    #[test]
    fn keys_are_drawn_evenly() {
        assert!(Memtable::default().drawn(&mut Rng::new(1)).is_none());
        for (keys, factor) in [(5_u32, 1), (900, 7), (20_000, 1), (20_000, 7_919)] {
            let mut memtable = Memtable::default();
            for n in 0..keys {
                let key = (n * factor % keys).to_be_bytes();
                memtable.insert(&key, u64::from(n) + 1, None, None);
            }
            let (mut rng, mut drawn) = (Rng::new(17), [0; 5]);
            for _ in 0..10_000 {
                let (key, _) = memtable.drawn(&mut rng).expect("there are some");
                let number = u32::from_be_bytes(key[..].try_into().expect("four bytes"));
                drawn[(number * 5 / keys) as usize] += 1;
            }
            assert!(drawn.iter().all(|drawn| (1_800..2_200).contains(drawn)), "{drawn:?}");
        }
    }

    #[test]
    fn the_next_key_skips_what_a_snapshot_cannot_see() {
        let mut memtable = Memtable::default();
        memtable.insert(b"a", 1, Some(value("x")), None);
        memtable.insert(b"b", 9, Some(value("x")), None);
        memtable.insert(b"c", 2, None, None);
        let next = memtable.next(Bound::Excluded(b"a"), 5).expect("there is one");
        assert_eq!(next, (b"c"[..].into(), None));
        assert_eq!(memtable.next(Bound::Excluded(b"c"), 5), None);
        let previous = memtable.previous(Some(b"c"), 5).expect("there is one");
        assert_eq!((&*previous.0, memtable.previous(Some(b"a"), 5)), (&b"a"[..], None));
        assert_eq!(memtable.previous(None, 9).map(|(key, _)| key), Some(b"c"[..].into()));
        assert_eq!((memtable.at(b"b", 5), memtable.at(b"c", 5)), (None, Some(None)));
    }
}
