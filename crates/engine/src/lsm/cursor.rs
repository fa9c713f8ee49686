//! Cursors: one place in each memtable and level of a snapshot, and the merge of them.
//!
//! Pure apart from what it is given: pages come from outside, so that the iterator decides when to
//! read and when to wait. The newest source wins where several have a key.

use std::cmp::Ordering;
use std::ops::Bound;

use pages::effort::Effort;
use pages::format::pointer::PointerFormat;
use pages::memtable::Entry;
use runtime::PageImage;

use crate::format::entry::{IndexEntry, Mapping};
use crate::format::group_index::GroupIndex;
use crate::format::meta_segment::MetaSegment;
use crate::lsm::level::Level;
use crate::lsm::location::{IndexKind, IndexPage, Location};
use crate::lsm::snapshot::Snapshot;

/// A place in one level.
struct LevelCursor {
    /// The segment or group it stands in; past the last one at the end.
    segment: usize,
    /// In a group the segment of it; `None` if the index has to tell.
    place: Option<u16>,
    /// The index of the group, if that was read.
    index: Option<PageImage>,
    /// That segment, once it is there.
    page: Option<PageImage>,
    entry: usize,
    /// Where to go in the segment as soon as it is there.
    target: Option<Box<[u8]>>,
}

/// A place in every source of a snapshot.
pub(crate) struct Cursors {
    format: PointerFormat,
    /// The next entry of each memtable, newest first.
    memtables: Vec<Option<(Box<[u8]>, Entry)>>,
    /// L1 first.
    levels: Vec<LevelCursor>,
}

/// A page that a cursor needs before the merge can go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Needed {
    pub level: usize,
    /// Its place in the level list.
    pub segment: usize,
    pub at: IndexPage,
    /// Of a group, which segment of it.
    place: Option<u16>,
}

impl Cursors {
    /// Every source at its first entry at or after `key`. Segments in memory are there at once.
    pub(crate) fn seek(
        snapshot: &Snapshot,
        key: &[u8],
        format: PointerFormat,
        effort: &mut Effort,
    ) -> Self {
        let next = |memtable: &pages::memtable::SharedMemtable| {
            memtable.borrow().next(Bound::Included(key), snapshot.sequence)
        };
        let memtables = snapshot.memtables.iter().map(next).collect();
        effort.memtables += snapshot.memtables.len() as u32;
        let mut among = None;
        let mut levels = Vec::with_capacity(snapshot.version.levels().len());
        for (index, level) in snapshot.version.levels().iter().enumerate() {
            let at = level.covering(key, among.take(), effort);
            among = at.and_then(|at| snapshot.version.below(index, at));
            let (segment, target) = (at.unwrap_or(0), Some(key.into()));
            // Where all keys come behind `key`, the first segment is the one.
            let place = if at.is_none() { Some(0) } else { None };
            levels.push(LevelCursor { segment, place, index: None, page: None, entry: 0, target });
        }
        let mut cursors = Self { format, memtables, levels };
        for level in 0..cursors.levels.len() {
            cursors.arrive(snapshot, level);
        }
        cursors
    }

    /// Segments to be read before [`Self::pop`] can answer.
    pub(crate) fn needed(&self, snapshot: &Snapshot) -> Vec<Needed> {
        let missing = |(level, cursor): (usize, &LevelCursor)| {
            let segments = snapshot.version.level(level);
            if cursor.page.is_some() || cursor.segment >= segments.len() {
                return None;
            }
            stored_at(snapshot, level, cursor.segment, cursor.place)
        };
        self.levels.iter().enumerate().filter_map(missing).collect()
    }

    /// The segment that `level` will need after the one it stands in, if it has to be read. None
    /// as long as the level waits for the one it stands in.
    pub(crate) fn following(&self, snapshot: &Snapshot, level: usize) -> Option<Needed> {
        let cursor = &self.levels[level];
        cursor.page.as_ref()?;
        match cursor.next_in_group(snapshot.version.level(level)) {
            Some(place) => stored_at(snapshot, level, cursor.segment, Some(place)),
            None => stored_at(snapshot, level, cursor.segment + 1, Some(0)),
        }
    }

    /// The key that a page begins with, as far as it is known without reading it.
    pub(crate) fn first_key<'a>(
        &'a self,
        snapshot: &'a Snapshot,
        needed: Needed,
    ) -> Option<&'a [u8]> {
        match needed.place {
            None | Some(0) => Some(snapshot.version.level(needed.level).first_key(needed.segment)),
            Some(place) => {
                let cursor = &self.levels[needed.level];
                let index = cursor.index.as_ref().filter(|_| cursor.segment == needed.segment)?;
                let index = GroupIndex::new(index.bytes()).expect("checked when it was read");
                Some(index.first_key(usize::from(place)))
            }
        }
    }

    /// Nothing more is wanted of a level.
    pub(crate) fn finish(&mut self, snapshot: &Snapshot, level: usize) {
        let cursor = &mut self.levels[level];
        cursor.segment = snapshot.version.level(level).len();
        cursor.page = None;
    }

    /// Gives a cursor the segment it needs.
    pub(crate) fn supply(&mut self, snapshot: &Snapshot, needed: Needed, page: PageImage) {
        let cursor = &mut self.levels[needed.level];
        assert_eq!(cursor.segment, needed.segment, "a cursor got a segment it does not stand in");
        match needed.at.kind {
            IndexKind::Segment => {
                cursor.page = Some(page);
                self.enter(snapshot, needed.level);
            }
            IndexKind::Group(_) => {
                let index = GroupIndex::new(page.bytes()).expect("checked when it was read");
                let target = cursor.target.as_deref();
                cursor.place = Some(target.and_then(|key| index.covering(key)).unwrap_or(0));
                cursor.index = Some(page);
            }
        }
    }

    /// The next key of all sources and what the newest of them says of it; every source goes past
    /// it. `None` at the end. Nothing may be [`Self::needed`].
    pub(crate) fn pop(
        &mut self,
        snapshot: &Snapshot,
        effort: &mut Effort,
    ) -> Option<(Box<[u8]>, Mapping)> {
        let key: Box<[u8]> = self.smallest(effort)?.into();
        let mut newest = None;
        for index in 0..self.memtables.len() {
            if self.memtables[index].as_ref().is_some_and(|(at, _)| *at == key) {
                let entry = self.advance_memtable(snapshot, index, &key);
                newest.get_or_insert(entry.map_or(Mapping::Deleted, Mapping::Value));
            }
        }
        for level in 0..self.levels.len() {
            let found = self.current(level).filter(|entry| *entry.key == *key);
            if let Some(entry) = found {
                newest = newest.or_else(|| Some(entry.mapping()));
                self.levels[level].entry += 1;
                self.enter(snapshot, level);
            }
        }
        newest.map(|newest| (key, newest))
    }

    fn smallest(&self, effort: &mut Effort) -> Option<&[u8]> {
        let in_memtables = self.memtables.iter().flatten().map(|(key, _)| &key[..]);
        let in_levels = (0..self.levels.len()).filter_map(|level| Some(self.current(level)?.key));
        in_memtables.chain(in_levels).reduce(|least, key| {
            effort.key_compares += 1;
            if key.cmp(least) == Ordering::Less { key } else { least }
        })
    }

    fn advance_memtable(&mut self, snapshot: &Snapshot, index: usize, past: &[u8]) -> Entry {
        let memtable = snapshot.memtables[index].borrow();
        let next = memtable.next(Bound::Excluded(past), snapshot.sequence);
        std::mem::replace(&mut self.memtables[index], next).and_then(|(_, entry)| entry)
    }

    /// The entry that a level's cursor stands at.
    fn current(&self, level: usize) -> Option<IndexEntry<'_>> {
        let cursor = &self.levels[level];
        let segment = MetaSegment::new(cursor.page.as_ref()?.bytes(), self.format);
        Some(segment.expect("checked when it was read").entry(cursor.entry))
    }

    /// Takes the segment a cursor came to, if it is in memory.
    fn arrive(&mut self, snapshot: &Snapshot, level: usize) {
        let segments = snapshot.version.level(level);
        let cursor = &mut self.levels[level];
        if cursor.segment >= segments.len() {
            return;
        }
        if let Some(image) = segments.segment(cursor.segment).location.image() {
            cursor.page = Some(image.clone());
            self.enter(snapshot, level);
        }
    }

    /// Goes to the target in a segment that has come; past its end, on to the next one.
    fn enter(&mut self, snapshot: &Snapshot, level: usize) {
        let cursor = &mut self.levels[level];
        let Some(page) = &cursor.page else { return };
        let segment = MetaSegment::new(page.bytes(), self.format).expect("checked when read");
        if let Some(target) = cursor.target.take() {
            cursor.entry = segment.lower_bound(&target);
        }
        if cursor.entry >= segment.len() {
            cursor.place = cursor.next_in_group(snapshot.version.level(level));
            if cursor.place.is_none() {
                cursor.segment += 1;
                (cursor.place, cursor.index) = (Some(0), None);
            }
            cursor.entry = 0;
            cursor.page = None;
            self.arrive(snapshot, level);
        }
    }
}

impl LevelCursor {
    /// The segment behind the one it stands in, if that is in a group and not the last of it.
    fn next_in_group(&self, level: &Level) -> Option<u16> {
        let Location::Group(group) = level.segment(self.segment).location else { return None };
        let next = self.place.expect("it stands in a segment") + 1;
        (next < group.segments).then_some(next)
    }
}

/// The page of the segment at `index` of `level`, if there is one and it is not in memory; of a group that of
/// the segment at `place`, or the index.
fn stored_at(
    snapshot: &Snapshot,
    level: usize,
    index: usize,
    place: Option<u16>,
) -> Option<Needed> {
    let segments = snapshot.version.level(level);
    if index >= segments.len() {
        return None;
    }
    let location = &segments.segment(index).location;
    let first = location.to_read()?;
    let needed = |at, place| Some(Needed { level, segment: index, at, place });
    match (location, place) {
        (Location::Group(group), Some(place)) => {
            needed(IndexPage::segment(group.page(place)), Some(place))
        }
        _ => needed(first, None),
    }
}
