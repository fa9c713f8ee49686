//! A version: all levels at one moment. Immutable; a change publishes a new one.

pub(crate) mod key_index;
pub(crate) mod level;
pub(crate) mod load;
pub(crate) mod location;
pub(crate) mod open_table;
pub(crate) mod pool;
pub(crate) mod ranges;
pub(crate) mod table;
#[cfg(test)]
#[path = "version_tests.rs"]
mod tests;
pub(crate) mod tree;

use std::ops::Range;
use std::rc::Rc;

use crate::medium::PageNo;
use crate::version::level::{Level, NamedSegment};
use crate::version::location::Location;
use crate::version::open_table::Table;
use crate::version::ranges::Ranges;
use crate::version::tree::Tree;

/// The levels L1, L2, ... (L0 is the memtables), and the range pointers between them.
#[derive(Clone)]
pub(crate) struct Version {
    levels: Vec<Rc<Level>>,
    /// `ranges[n]` points from `levels[n]` into `levels[n + 1]`; empty if disabled.
    ranges: Vec<Rc<Ranges>>,
    /// The maximum number of reads of a Get in these levels.
    most_reads: u32,
}

/// Replaces the segments `range` of one level.
pub(crate) struct LevelEdit {
    pub level: usize,
    pub range: Range<usize>,
    pub new: Vec<NamedSegment>,
}

impl Version {
    /// Returns a version with empty levels.
    pub(crate) fn new(levels: usize, prefix_bytes: usize, has_ranges: bool) -> Self {
        let level = || Rc::new(Level::empty(prefix_bytes));
        let ranges = if has_ranges { levels.saturating_sub(1) } else { 0 };
        Self {
            levels: (0..levels).map(|_| level()).collect(),
            ranges: (0..ranges).map(|_| Rc::default()).collect(),
            most_reads: 0,
        }
    }

    /// Returns the version for searches of `tree`: each table of L0, newest first, then the levels
    /// that are not empty.
    pub(crate) fn of_tree(tree: &Tree<Rc<Table>>, prefix_bytes: usize) -> Self {
        let level = |tables: &[Rc<Table>]| {
            let chunks = tables.iter().map(|table| Rc::clone(&table.chunk)).collect();
            Rc::new(Level::from_chunks(chunks, prefix_bytes))
        };
        let (l0, below) = tree.levels().split_first().expect("there is L0");
        let newest = l0.iter().map(|table| level(std::slice::from_ref(table)));
        let below = below.iter().filter(|tables| !tables.is_empty()).map(|tables| level(tables));
        let levels: Vec<Rc<Level>> = newest.chain(below).collect();
        Self { most_reads: levels.len() as u32, levels, ranges: Vec::new() }
    }

    /// Returns the maximum number of reads of a Get before it knows the location of the value: one
    /// in each level that is not completely in memory, two in a level with groups, and all pages of
    /// a table in a level of columnar tables.
    pub(crate) fn most_reads(&self) -> u32 {
        self.most_reads
    }

    /// Returns the number of pages of the largest group or columnar table; 0 if there is none.
    pub(crate) fn largest_group(&self) -> u32 {
        self.levels.iter().map(|level| level.totals().largest_group).max().unwrap_or(0)
    }

    pub(crate) fn levels(&self) -> &[Rc<Level>] {
        &self.levels
    }

    pub(crate) fn level(&self, index: usize) -> &Level {
        &self.levels[index]
    }

    /// Returns the range of the next level in which a search continues that ended at `segment` of
    /// level `index`.
    pub(crate) fn below(&self, index: usize, segment: usize) -> Option<Range<usize>> {
        let ranges = self.ranges.get(index)?;
        Some(ranges.below(segment, self.levels[index + 1].len()))
    }

    /// Returns the number of range pointers.
    pub(crate) fn range_pointers(&self) -> u64 {
        self.ranges.iter().map(|ranges| ranges.len() as u64).sum()
    }

    /// Returns the version that `edits` make of this one.
    pub(crate) fn edited(&self, edits: Vec<LevelEdit>) -> Self {
        let mut next = self.clone();
        for edit in edits {
            assert!(
                next.admits(&edit),
                "level {} would be out of order where {} segments take the place of {:?}",
                edit.level,
                edit.new.len(),
                edit.range
            );
            next.apply(edit);
        }
        next
    }

    /// Returns the version that edits read from a medium make of this one; `None` if they do not
    /// fit this version.
    pub(crate) fn replay(&self, edits: Vec<LevelEdit>) -> Option<Self> {
        let mut next = self.clone();
        for edit in edits {
            next.admits(&edit).then_some(())?;
            next.apply(edit);
        }
        Some(next)
    }

    /// Returns the same version with each level's list cut into chunks of these lengths; `None` if
    /// they do not fit.
    pub(crate) fn cut_into(&self, chunks: &[Vec<u32>]) -> Option<Self> {
        (chunks.len() == self.levels.len()).then_some(())?;
        let levels = self.levels.iter().zip(chunks);
        let levels = levels.map(|(level, lens)| level.cut_into(lens).map(Rc::new));
        Some(Self { levels: levels.collect::<Option<_>>()?, ..self.clone() })
    }

    /// Whether the level is still in order after the edit.
    fn admits(&self, edit: &LevelEdit) -> bool {
        let LevelEdit { level, range, new } = edit;
        let Some(level) = self.levels.get(*level) else { return false };
        if range.start > range.end || range.end > level.len() {
            return false;
        }
        let before = (range.start > 0).then(|| level.first_key(range.start - 1));
        let behind = (range.end < level.len()).then(|| level.first_key(range.end));
        let new = new.iter().map(|named| &named.first_key[..]);
        before.into_iter().chain(new).chain(behind).is_sorted_by(|a, b| a < b)
    }

    fn apply(&mut self, edit: LevelEdit) {
        let LevelEdit { level, range, new } = edit;
        let inserted = new.len();
        self.most_reads -= most_reads(&self.levels[level]);
        self.levels[level] = Rc::new(self.levels[level].splice(range.clone(), new));
        self.most_reads += most_reads(&self.levels[level]);
        if level < self.ranges.len() {
            let (upper, lower) = (&self.levels[level], &self.levels[level + 1]);
            let ranges = Rc::make_mut(&mut self.ranges[level]);
            ranges.upper_changed(upper, lower, range.clone(), inserted);
        }
        if level > 0 && level - 1 < self.ranges.len() {
            let (upper, lower) = (&self.levels[level - 1], &self.levels[level]);
            let ranges = Rc::make_mut(&mut self.ranges[level - 1]);
            ranges.lower_changed(upper, lower, range, inserted);
        }
    }

    /// Returns the locations of all segments, groups and tables.
    pub(crate) fn locations(&self) -> impl Iterator<Item = &Location> {
        self.levels.iter().flat_map(|level| level.iter()).map(|(_, segment)| &segment.location)
    }

    /// Returns all their pages on the medium, including the indexes of groups.
    pub(crate) fn pages(&self) -> impl Iterator<Item = PageNo> {
        self.locations().flat_map(Location::pages)
    }

    /// Asserts that range pointers match a search without them; for tests and recovery.
    pub(crate) fn assert_consistent(&self) {
        for (n, ranges) in self.ranges.iter().enumerate() {
            let fresh = Ranges::build(&self.levels[n], &self.levels[n + 1]);
            assert_eq!(**ranges, fresh, "range pointers of level {}", n + 1);
        }
    }
}

/// Returns the maximum number of reads of a Get in a level.
fn most_reads(level: &Level) -> u32 {
    let totals = level.totals();
    if totals.tables > 0 {
        return totals.largest_group;
    }
    u32::from(totals.pinned < totals.segments) + u32::from(totals.groups > 0)
}
