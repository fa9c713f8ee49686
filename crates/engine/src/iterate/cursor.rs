//! Cursors: a position in each memtable and level of a snapshot, and their merge in ascending or
//! descending key order.
//!
//! The module does no I/O: pages are supplied by the iterator, which decides when to read and when
//! to wait. If several sources have a key, the newest one wins. The direction is fixed when cursors
//! are placed; a caller that wants to reverse it places new ones. In both directions each index
//! page is needed once.

pub(crate) mod direction;

use std::ops::Bound;
use std::rc::Rc;

use runtime::PageImage;

use super::snapshot::Snapshot;
use crate::effort::Effort;
use crate::format::entry::{IndexEntry, Mapping};
use crate::format::group_index::GroupIndex;
use crate::format::meta_segment::MetaSegment;
use crate::format::pointer::PointerFormat;
use crate::memtable::{Entry, SharedMemtable};
use crate::version::level::Level;
use crate::version::location::{IndexKind, IndexPage, Location, Piece};

pub(crate) use crate::iterate::cursor::direction::{Direction, Target};

/// A position in one level.
struct LevelCursor {
    /// The current segment, group or table; `None` at the end.
    segment: Option<usize>,
    /// The current segment within a group or a table that was read; `None` if the group's index is
    /// needed to find it.
    place: Option<u16>,
    /// All segments of the current table, if it was read.
    table: Option<Rc<[PageImage]>>,
    /// The index of the current group, if it was read.
    index: Option<PageImage>,
    /// The current segment, once it was read.
    page: Option<PageImage>,
    entry: usize,
    /// The position to seek within the segment once it is available.
    target: Option<Target>,
}

/// A position in every source of a snapshot.
pub(crate) struct Cursors {
    format: PointerFormat,
    direction: Direction,
    /// In descending order, keys below this key are not wanted.
    lower_bound: Option<Box<[u8]>>,
    /// The next entry of each memtable, newest first.
    memtables: Vec<Option<(Box<[u8]>, Entry)>>,
    /// The levels, L1 first.
    levels: Vec<LevelCursor>,
}

/// A page that a cursor needs before the merge can continue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Needed {
    pub level: usize,
    /// The segment's index in the level list.
    pub segment: usize,
    pub at: IndexPage,
    /// The segment within its group, if it is in a group.
    place: Option<u16>,
}

impl Cursors {
    /// Places a cursor in every source at the first entry that `target` selects. Segments in memory
    /// are available at once. `lower_bound` is the smallest key wanted by descending cursors.
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

    /// Returns the pages that must be supplied before [`Self::pop`] can return an entry.
    pub(crate) fn needed(&self, snapshot: &Snapshot) -> Vec<Needed> {
        let missing = |(level, cursor): (usize, &LevelCursor)| {
            if cursor.page.is_some() {
                return None;
            }
            stored_at(snapshot, level, cursor.segment?, cursor.place)
        };
        self.levels.iter().enumerate().filter_map(missing).collect()
    }

    /// Returns the segment that `level` will need after the current one, if it must be read.
    /// Returns `None` while the current segment itself has not arrived.
    pub(crate) fn following(&self, snapshot: &Snapshot, level: usize) -> Option<Needed> {
        let (cursor, list) = (&self.levels[level], snapshot.version.level(level));
        let page = cursor.page.as_ref()?;
        // The element after a table follows all of the table's segments.
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

    /// Whether all segments after the one in `page` are outside of the wanted range.
    fn is_last_wanted(&self, page: &PageImage) -> bool {
        self.direction == Direction::Down
            && self.lower_bound.as_ref().is_some_and(|lower| {
                let segment = MetaSegment::new(page.bytes(), self.format);
                let segment = segment.expect("checked when it was read");
                segment.len() > 0 && segment.key(0) <= &lower[..]
            })
    }

    /// Returns the first key of a page, if it is known without reading the page.
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

    /// Ends a level's cursor: no more entries of the level are wanted.
    pub(crate) fn finish(&mut self, level: usize) {
        let cursor = &mut self.levels[level];
        cursor.segment = None;
        cursor.page = None;
        cursor.table = None;
    }

    /// Supplies a cursor with the segment or table that it needs.
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

    /// Returns the next key of all sources and its newest entry, and moves every source past the
    /// key. Returns `None` at the end. Requires: [`Self::needed`] is empty.
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

    /// Returns the key that comes first among the current entries of all sources.
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

    /// Returns the current entry of a level.
    fn current(&self, level: usize) -> Option<IndexEntry<'_>> {
        let cursor = &self.levels[level];
        let segment = MetaSegment::new(cursor.page.as_ref()?.bytes(), self.format);
        Some(segment.expect("checked when it was read").entry(cursor.entry))
    }

    /// Takes the current segment if it is in memory.
    fn arrive(&mut self, snapshot: &Snapshot, level: usize) {
        let cursor = &mut self.levels[level];
        let Some(segment) = cursor.segment else { return };
        if let Some(image) = snapshot.version.level(level).segment(segment).location.image() {
            cursor.page = Some(image.clone());
            self.enter(snapshot, level);
        }
    }

    /// Moves to the target within a segment that arrived, or to its first entry if there is no
    /// target.
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

    /// Moves past the current entry.
    fn advance(&mut self, snapshot: &Snapshot, level: usize) {
        let cursor = &self.levels[level];
        let page = cursor.page.as_ref().expect("it stands at an entry");
        let segment = MetaSegment::new(page.bytes(), self.format).expect("checked when read");
        let next = self.direction.behind(cursor.entry, segment.len());
        self.stand_at(snapshot, level, next);
    }

    /// Moves to an entry of the current segment, or to the next segment if `entry` is `None`.
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

/// Places cursors of levels that ascend from `key`.
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
        // If all keys follow `key`, the cursor starts at the first segment.
        let place = if at.is_none() { Some(0) } else { None };
        let segment = at.or(Direction::Up.first(level.len()));
        levels.push(LevelCursor::new(segment, place, target));
    }
    levels
}

/// Places cursors of levels that descend from `target`.
fn down_from(snapshot: &Snapshot, target: &Target, effort: &mut Effort) -> Vec<LevelCursor> {
    let placed = |level: &Rc<Level>| {
        let segment = target.last_segment(level, effort);
        // If the target is the end, a group's last segment is the first to visit; its index is not
        // needed.
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

    /// Moves to the next segment of the current table. Returns false after the last one, or if the
    /// cursor is not in a table.
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

    /// Returns the segment after the current one if both are in the same group.
    fn next_in_group(&self, level: &Level, direction: Direction) -> Option<u16> {
        let Location::Group(group) = level.segment(self.segment?).location else { return None };
        let place = usize::from(self.place.expect("it stands in a segment"));
        direction.behind(place, usize::from(group.segments)).map(|place| place as u16)
    }
}

/// Returns the segment of the group at `index` of `level` that is visited first: the group's first
/// or last one.
fn first_place(level: &Level, index: usize, direction: Direction) -> u16 {
    let segments = level.segment(index).location.segments();
    direction.first(segments as usize).unwrap_or(0) as u16
}

/// Returns the page of the segment at `index` of `level`, if it is not in memory. For a group it is
/// the page of the segment at `place`, or the group's index if `place` is `None`.
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
