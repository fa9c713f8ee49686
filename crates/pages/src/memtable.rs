//! L0: the newest writes, in memory, in key order.
//!
//! A key may have several versions, newest first; older ones are kept only while a snapshot can
//! see them. Snapshots share a memtable with the writers and read it as of their sequence number;
//! flushes write the newest versions only. Cost of a lookup or an insert: `O(log n)` comparisons.
//!
//! Keys and values lie in chunks (`chunks.rs`), which keep the room of a value that is overwritten. So a memtable is full
//! as well when as many bytes were overwritten in it as it may hold: its chunks take twice that at most.

mod chunks;
mod marks;

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::rc::Rc;

use bytes::Bytes;
use runtime::{Carrier, Rng};

use crate::format::data_page::Outgoing;
use crate::format::object::{Sequence, full_len};
use crate::format::value::Value;
use crate::front::MemtableLimits;
use chunks::Chunks;
use marks::Marks;

/// One of so many keys is a sample.
const SAMPLED: usize = 64;
/// Keys that a draw goes on from a sample at most: those of many samples, so that it matters little where they lie.
const GOES_ON: usize = 1_024;

/// A key that shares the memory of its memtable.
pub type SharedKey = Bytes;

/// What one write left behind. `None` is a tombstone.
pub type Entry = Option<Value>;

/// Writes that are not in any level yet.
#[derive(Default)]
pub struct Memtable {
    keys: BTreeMap<SharedKey, Versions>,
    /// Samples of the keys, in the order in which they came.
    samples: Vec<SharedKey>,
    chunks: Chunks,
    marks: Marks,
    bytes: u64,
    /// Bytes of chunks that held values which were overwritten.
    overwritten: u64,
    /// The first group of the log with a write of this memtable, if there is a log.
    first_group: Option<u64>,
    /// The last one.
    last_group: Option<u64>,
    /// The newest write.
    last_sequence: Sequence,
}

struct Versions {
    newest: Version,
    /// Nearly always none, and small then.
    older: Option<Box<Older>>,
}

/// Versions that snapshots see, newest first.
#[derive(Default)]
struct Older(Vec<Version>);

#[derive(Clone)]
struct Version {
    sequence: Sequence,
    entry: Entry,
}

impl Versions {
    /// The newest version at or before `at`.
    fn at(&self, at: Sequence) -> Option<&Version> {
        let older = self.older.iter().flat_map(|older| &older.0);
        std::iter::once(&self.newest).chain(older).find(|version| version.sequence <= at)
    }
}

impl Memtable {
    /// The newest write of `key`.
    fn get(&self, key: &[u8]) -> Option<(Sequence, Entry)> {
        let newest = &self.keys.get(key)?.newest;
        Some((newest.sequence, newest.entry.clone()))
    }

    /// The first key in `from` that has a version at or before `at`, and that version.
    pub fn next(&self, from: Bound<&[u8]>, at: Sequence) -> Option<(Box<[u8]>, Entry)> {
        self.keys.range::<[u8], _>((from, Bound::Unbounded)).find_map(|(key, versions)| {
            versions.at(at).map(|version| (key[..].into(), version.entry.clone()))
        })
    }

    /// The last key before `before`, or of all, that has a version at or before `at`, and that version.
    pub fn previous(&self, before: Option<&[u8]>, at: Sequence) -> Option<(Box<[u8]>, Entry)> {
        let end = before.map_or(Bound::Unbounded, Bound::Excluded);
        self.keys.range::<[u8], _>((Bound::Unbounded, end)).rev().find_map(|(key, versions)| {
            versions.at(at).map(|version| (key[..].into(), version.entry.clone()))
        })
    }

    /// What a reader of the instant `at` finds of `key`; `None` if it was not written by then.
    pub fn at(&self, key: &[u8], at: Sequence) -> Option<Entry> {
        self.keys.get(key)?.at(at).map(|version| version.entry.clone())
    }

    /// The same entry, with its value where this memtable keeps it: whoever shares that pins no memory besides.
    pub(crate) fn place(&mut self, entry: Entry) -> Entry {
        match entry {
            Some(Value::Bytes(bytes)) if Chunks::takes(bytes.len()) => {
                Some(Value::Bytes(self.chunks.keep(&bytes)))
            }
            entry => entry,
        }
    }

    /// [`Self::place`] and [`Self::insert_placed`].
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

    /// Carries what those who write it to a dump leave out: how full it is, with what was overwritten in it.
    pub(crate) fn carry_fill(&mut self, by: &mut Carrier<'_>) -> Option<()> {
        by.u64(&mut self.bytes)?;
        by.u64(&mut self.overwritten)
    }

    /// Adds a write that is newer than every other of its key. The version it replaces is kept if
    /// a snapshot at or after it, given by `newest_snapshot`, can still see it.
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

    /// Keys and their newest version, in key order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], Sequence, &Entry)> {
        self.keys
            .iter()
            .map(|(key, versions)| (&key[..], versions.newest.sequence, &versions.newest.entry))
    }

    /// The newest write of each key, in key order, from a key on and no more than so many: what a flush writes.
    pub(crate) fn writes(&self, from: Bound<&[u8]>, most: usize) -> Vec<Write> {
        let owned = |key: &SharedKey, versions: &Versions| Write {
            key: key.clone(),
            sequence: versions.newest.sequence,
            entry: versions.newest.entry.clone(),
        };
        let range = self.keys.range::<[u8], _>((from, Bound::Unbounded)).take(most);
        range.map(|(key, versions)| owned(key, versions)).collect()
    }

    /// A write of this memtable is in that group of the log.
    pub(crate) fn note_group(&mut self, group: u64) {
        let last = self.last_group.replace(group);
        assert!(last <= Some(group), "group {group} of the log comes after group {last:?}");
        self.first_group.get_or_insert(group);
    }

    /// The last group of the log with a write of this memtable.
    pub(crate) fn last_group(&self) -> Option<u64> {
        self.last_group
    }

    /// The first group of the log that this memtable needs.
    pub(crate) fn first_group(&self) -> Option<u64> {
        self.first_group
    }

    /// The newest write.
    pub(crate) fn last_sequence(&self) -> Sequence {
        self.last_sequence
    }

    /// Full length of all objects, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether it holds as much as it may.
    pub(crate) fn is_full(&self, limits: &MemtableLimits) -> bool {
        let most = self.bytes.max(self.overwritten);
        self.len() >= limits.entries || most >= limits.bytes
    }

    /// A key drawn from all, about equally likely, and its newest version. Cost: some hundred steps.
    pub fn drawn(&self, rng: &mut Rng) -> Option<(&SharedKey, &Entry)> {
        let samples = self.samples.len().max(1) as u64;
        let from = self.samples.get(rng.below(samples) as usize)?;
        let on = rng.below(self.keys.len().min(GOES_ON) as u64) as usize;
        // Behind the last key comes the first.
        let behind = self.keys.range::<[u8], _>((Bound::Included(&from[..]), Bound::Unbounded));
        let (key, versions) = behind.chain(&self.keys).nth(on)?;
        Some((key, &versions.newest.entry))
    }

    /// Number of keys.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> usize {
        self.keys.len()
    }
}

/// Bytes that a value takes in a chunk.
fn in_chunks(entry: &Entry) -> u64 {
    match entry {
        Some(Value::Bytes(bytes)) if Chunks::takes(bytes.len()) => bytes.len() as u64,
        _ => 0,
    }
}

/// The newest write of a key. It shares key and value with its memtable.
pub struct Write {
    /// Its key.
    pub key: SharedKey,
    pub(crate) sequence: Sequence,
    /// What was written.
    pub entry: Entry,
}

impl Write {
    /// The object it puts on the medium; none if it is a delete.
    pub fn object(&self) -> Option<Outgoing<'_>> {
        let (key, sequence) = (&self.key[..], self.sequence);
        self.entry.as_ref().map(|value| Outgoing { key, sequence, value })
    }
}

/// A memtable that writers and snapshots share.
pub type SharedMemtable = Rc<RefCell<Memtable>>;

/// The memtables of a store.
#[derive(Default)]
pub struct Memtables {
    pub(crate) active: SharedMemtable,
    /// Oldest first; nobody writes to them any more.
    pub frozen: VecDeque<SharedMemtable>,
}

impl Memtables {
    /// All of them, newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = &SharedMemtable> {
        std::iter::once(&self.active).chain(self.frozen.iter().rev())
    }

    /// The newest write of `key`.
    pub fn get(&self, key: &[u8]) -> Option<(Sequence, Entry)> {
        let hash = marks::hash(key);
        let newest_in = |memtable: &SharedMemtable| {
            let memtable = memtable.borrow();
            if memtable.marks.may_have_hashed(hash) { memtable.get(key) } else { None }
        };
        // As `newest_first` has them; nearly always there is but the active one.
        newest_in(&self.active).or_else(|| self.frozen.iter().rev().find_map(newest_in))
    }

    /// The first group of the log that those which stay need when the oldest frozen one goes.
    pub(crate) fn first_group_without_oldest(&self) -> Option<u64> {
        let rest = self.frozen.iter().skip(1).chain([&self.active]);
        rest.filter_map(|memtable| memtable.borrow().first_group()).min()
    }

    /// Bytes in the active memtable.
    pub fn active_bytes(&self) -> u64 {
        self.active.borrow().bytes()
    }

    /// Bytes in all of them.
    pub fn bytes(&self) -> u64 {
        self.newest_first().map(|memtable| memtable.borrow().bytes()).sum()
    }

    /// Freezes the active memtable, if it holds anything.
    pub(crate) fn freeze(&mut self) -> bool {
        let holds_something = self.active.borrow().len() > 0;
        if holds_something {
            // Else the log would be trimmed of what an older one needs.
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

    /// Whether none holds anything.
    pub fn is_empty(&self) -> bool {
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

    /// Whether they came in order or not, and the last of them too.
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
