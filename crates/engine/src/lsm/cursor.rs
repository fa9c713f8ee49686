//! Cursors: one place in each memtable and level of a snapshot, and the merge of them, up the keys or down.
//!
//! Pure apart from what it is given: pages come from outside, so that the iterator decides when to
//! read and when to wait. The newest source wins where several have a key. Which way cursors go is settled when they are
//! placed; whoever wants to turn round places new ones. Either way each page of the index is needed once.

mod direction;

use std::ops::Bound;
use std::rc::Rc;

use pages::effort::Effort;
use pages::format::pointer::PointerFormat;
use pages::memtable::{Entry, SharedMemtable};
use runtime::PageImage;

use crate::format::entry::{IndexEntry, Mapping};
use crate::format::group_index::GroupIndex;
use crate::format::meta_segment::MetaSegment;
use crate::lsm::level::Level;
use crate::lsm::location::{IndexKind, IndexPage, Location, Piece};
use crate::lsm::snapshot::Snapshot;
pub(crate) use direction::{Direction, Target};

/// A place in one level.
struct LevelCursor {
    /// The segment, group or table it stands in; none at the end.
    segment: Option<usize>,
    /// In a group or a table that was read the segment of it; `None` if the index has to tell.
    place: Option<u16>,
    /// All segments of the table, if that was read.
    table: Option<Rc<[PageImage]>>,
    /// The index of the group, if that was read.
    index: Option<PageImage>,
    /// That segment, once it is there.
    page: Option<PageImage>,
    entry: usize,
    /// Where to go in the segment as soon as it is there.
    target: Option<Target>,
}

/// A place in every source of a snapshot.
pub(crate) struct Cursors {
    format: PointerFormat,
    direction: Direction,
    /// Going down, nothing is wanted below this key.
    lower_bound: Option<Box<[u8]>>,
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
    /// Every source at its first entry as `target` says. Segments in memory are there at once. `lower_bound` is the least key that is
    /// wanted by cursors that go down.
    pub(crate) fn seek(
        snapshot: &Snapshot,
        target: &Target,
        lower_bound: Option<&[u8]>,
        format: PointerFormat,
        effort: &mut Effort,
    ) -> Self {
        let direction = target.direction();
        let first = |memtable: &SharedMemtable| match target {
            Target::AtOrAfter(key) => {
                memtable.borrow().next(Bound::Included(key), snapshot.sequence)
            }
            Target::Before(key) => memtable.borrow().previous(key.as_deref(), snapshot.sequence),
        };
        let memtables = snapshot.memtables.iter().map(first).collect();
        effort.memtables += snapshot.memtables.len() as u32;
        let levels = match target {
            Target::AtOrAfter(key) => up_from(snapshot, key, target, effort),
            Target::Before(_) => down_from(snapshot, target, effort),
        };
        let lower_bound = lower_bound.map(Into::into);
        let mut cursors = Self { format, direction, lower_bound, memtables, levels };
        for level in 0..cursors.levels.len() {
            cursors.arrive(snapshot, level);
        }
        cursors
    }

    pub(crate) fn direction(&self) -> Direction {
        self.direction
    }

    /// Segments to be read before [`Self::pop`] can answer.
    pub(crate) fn needed(&self, snapshot: &Snapshot) -> Vec<Needed> {
        let missing = |(level, cursor): (usize, &LevelCursor)| {
            if cursor.page.is_some() {
                return None;
            }
            stored_at(snapshot, level, cursor.segment?, cursor.place)
        };
        self.levels.iter().enumerate().filter_map(missing).collect()
    }

    /// The segment that `level` will need after the one it stands in, if it has to be read. None
    /// as long as the level waits for the one it stands in.
    pub(crate) fn following(&self, snapshot: &Snapshot, level: usize) -> Option<Needed> {
        let (cursor, list) = (&self.levels[level], snapshot.version.level(level));
        let page = cursor.page.as_ref()?;
        // What follows a table is behind all of its segments.
        let last = cursor.table.as_ref().and_then(|table| self.direction.last(table));
        if self.is_last_wanted(last.unwrap_or(page)) {
            return None;
        }
        if let Some(place) = cursor.next_in_group(list, self.direction) {
            return stored_at(snapshot, level, cursor.segment?, Some(place));
        }
        let next = self.direction.behind(cursor.segment?, list.len())?;
        stored_at(snapshot, level, next, Some(first_place(list, next, self.direction)))
    }

    /// Whether all behind the segment in `page` are below what is wanted.
    fn is_last_wanted(&self, page: &PageImage) -> bool {
        self.direction == Direction::Down
            && self.lower_bound.as_ref().is_some_and(|lower| {
                let segment = MetaSegment::new(page.bytes(), self.format);
                let segment = segment.expect("checked when it was read");
                segment.len() > 0 && segment.key(0) <= &lower[..]
            })
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
                let is_at_hand = cursor.segment == Some(needed.segment);
                let index = cursor.index.as_ref().filter(|_| is_at_hand)?;
                let index = GroupIndex::new(index.bytes()).expect("checked when it was read");
                Some(index.first_key(usize::from(place)))
            }
        }
    }

    /// Nothing more is wanted of a level.
    pub(crate) fn finish(&mut self, level: usize) {
        let cursor = &mut self.levels[level];
        cursor.segment = None;
        cursor.page = None;
        cursor.table = None;
    }

    /// Gives a cursor the segment it needs, or the table.
    pub(crate) fn supply(&mut self, snapshot: &Snapshot, needed: Needed, piece: Piece) {
        let (format, direction) = (self.format, self.direction);
        let cursor = &mut self.levels[needed.level];
        let is_its_own = cursor.segment == Some(needed.segment);
        assert!(is_its_own, "a cursor got a segment it does not stand in");
        let page = match piece {
            Piece::Page(page) => page,
            Piece::Table(segments) => {
                let place = match &cursor.target {
                    Some(target) => target.segment_of(&segments, format),
                    None => direction.first(segments.len()).expect("a table has entries"),
                };
                cursor.place = Some(place as u16);
                cursor.page = Some(segments[place].clone());
                cursor.table = Some(segments);
                return self.enter(snapshot, needed.level);
            }
        };
        match needed.at.kind {
            IndexKind::Columns(_) => unreachable!("a table comes as a whole"),
            IndexKind::Segment => {
                cursor.page = Some(page);
                self.enter(snapshot, needed.level);
            }
            IndexKind::Group(_) => {
                let index = GroupIndex::new(page.bytes()).expect("checked when it was read");
                cursor.place =
                    Some(cursor.target.as_ref().map_or(0, |target| target.place_in(&index)));
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
        let key: Box<[u8]> = self.nearest(effort)?.into();
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
                self.advance(snapshot, level);
            }
        }
        newest.map(|newest| (key, newest))
    }

    /// The key that comes first of those that sources stand at.
    fn nearest(&self, effort: &mut Effort) -> Option<&[u8]> {
        let in_memtables = self.memtables.iter().flatten().map(|(key, _)| &key[..]);
        let in_levels = (0..self.levels.len()).filter_map(|level| Some(self.current(level)?.key));
        in_memtables.chain(in_levels).reduce(|nearest, key| {
            effort.key_compares += 1;
            if self.direction.comes_first(key, nearest) { key } else { nearest }
        })
    }

    fn advance_memtable(&mut self, snapshot: &Snapshot, index: usize, past: &[u8]) -> Entry {
        let memtable = snapshot.memtables[index].borrow();
        let next = match self.direction {
            Direction::Up => memtable.next(Bound::Excluded(past), snapshot.sequence),
            Direction::Down => memtable.previous(Some(past), snapshot.sequence),
        };
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
        let cursor = &mut self.levels[level];
        let Some(segment) = cursor.segment else { return };
        if let Some(image) = snapshot.version.level(level).segment(segment).location.image() {
            cursor.page = Some(image.clone());
            self.enter(snapshot, level);
        }
    }

    /// Goes to the target in a segment that has come, or else to its first entry.
    fn enter(&mut self, snapshot: &Snapshot, level: usize) {
        let cursor = &mut self.levels[level];
        let Some(page) = &cursor.page else { return };
        let segment = MetaSegment::new(page.bytes(), self.format).expect("checked when read");
        let entry = match cursor.target.take() {
            Some(target) => target.entry_in(&segment),
            None => self.direction.first(segment.len()),
        };
        self.stand_at(snapshot, level, entry);
    }

    /// Goes past the entry it stands at.
    fn advance(&mut self, snapshot: &Snapshot, level: usize) {
        let cursor = &self.levels[level];
        let page = cursor.page.as_ref().expect("it stands at an entry");
        let segment = MetaSegment::new(page.bytes(), self.format).expect("checked when read");
        let next = self.direction.behind(cursor.entry, segment.len());
        self.stand_at(snapshot, level, next);
    }

    /// Goes to an entry of the segment it stands in; past its end, on to the next one.
    fn stand_at(&mut self, snapshot: &Snapshot, level: usize, entry: Option<usize>) {
        if let Some(entry) = entry {
            self.levels[level].entry = entry;
            return;
        }
        let left = self.levels[level].page.take();
        if left.is_some_and(|page| self.is_last_wanted(&page)) {
            return self.finish(level);
        }
        let (list, direction) = (snapshot.version.level(level), self.direction);
        let cursor = &mut self.levels[level];
        if cursor.go_on_in_table(direction) {
            return self.enter(snapshot, level);
        }
        cursor.place = cursor.next_in_group(list, direction);
        if cursor.place.is_none() {
            cursor.segment = cursor.segment.and_then(|at| direction.behind(at, list.len()));
            cursor.place = cursor.segment.map(|at| first_place(list, at, direction));
            cursor.index = None;
        }
        self.arrive(snapshot, level);
    }
}

/// Cursors of levels that go up from `key`.
fn up_from(
    snapshot: &Snapshot,
    key: &[u8],
    target: &Target,
    effort: &mut Effort,
) -> Vec<LevelCursor> {
    let mut among = None;
    let mut levels = Vec::with_capacity(snapshot.version.levels().len());
    for (index, level) in snapshot.version.levels().iter().enumerate() {
        let at = level.covering(key, among.take(), effort);
        among = at.and_then(|at| snapshot.version.below(index, at));
        // Where all keys come behind `key`, the first segment is the one.
        let place = if at.is_none() { Some(0) } else { None };
        let segment = at.or(Direction::Up.first(level.len()));
        levels.push(LevelCursor::new(segment, place, target));
    }
    levels
}

/// Cursors of levels that go down from `target`.
fn down_from(snapshot: &Snapshot, target: &Target, effort: &mut Effort) -> Vec<LevelCursor> {
    let placed = |level: &Rc<Level>| {
        let segment = target.last_segment(level, effort);
        // Where the end is the target, a group's last segment is the one, whatever its index says.
        let is_at_end = matches!(target, Target::Before(None));
        let last = segment.filter(|_| is_at_end);
        let place = last.map(|at| first_place(level, at, Direction::Down));
        LevelCursor::new(segment, place, target)
    };
    snapshot.version.levels().iter().map(placed).collect()
}

impl LevelCursor {
    fn new(segment: Option<usize>, place: Option<u16>, target: &Target) -> Self {
        let target = Some(target.clone());
        Self { segment, place, table: None, index: None, page: None, entry: 0, target }
    }

    /// Goes to the segment of the table behind the one it stood in; false if that was the last, or in no table.
    fn go_on_in_table(&mut self, direction: Direction) -> bool {
        let Some(table) = &self.table else { return false };
        let place = usize::from(self.place.expect("it stands in a segment"));
        let Some(next) = direction.behind(place, table.len()) else {
            self.table = None;
            return false;
        };
        self.page = Some(table[next].clone());
        self.place = Some(next as u16);
        true
    }

    /// The segment behind the one it stands in, if that is in a group and not the last of it.
    fn next_in_group(&self, level: &Level, direction: Direction) -> Option<u16> {
        let Location::Group(group) = level.segment(self.segment?).location else { return None };
        let place = usize::from(self.place.expect("it stands in a segment"));
        direction.behind(place, usize::from(group.segments)).map(|place| place as u16)
    }
}

/// Which segment of what `level` lists at `index` is come to first: of a group its first one or its last.
fn first_place(level: &Level, index: usize, direction: Direction) -> u16 {
    let segments = level.segment(index).location.segments();
    direction.first(segments as usize).unwrap_or(0) as u16
}

/// The page of the segment at `index` of `level`, if it is not in memory; of a group that of
/// the segment at `place`, or the index.
fn stored_at(
    snapshot: &Snapshot,
    level: usize,
    index: usize,
    place: Option<u16>,
) -> Option<Needed> {
    let location = &snapshot.version.level(level).segment(index).location;
    let first = location.to_read()?;
    let needed = |at, place| Some(Needed { level, segment: index, at, place });
    match (location, place) {
        (Location::Group(group), Some(place)) => {
            needed(IndexPage::segment(group.page(place)), Some(place))
        }
        _ => needed(first, None),
    }
}
