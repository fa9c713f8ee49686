//! Merges many runs into one, step by step; the newest entry of a key wins. Pure: the caller reads
//! pages when an input has none left and writes the output, and it may stop after any step.

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;

use runtime::PageImage;

use super::cut::Cutter;
use crate::format::entry::IndexEntry;
use crate::format::meta_segment::MetaSegment;
use crate::format::pointer::{Pointer, PointerFormat};
use crate::format::table_builder::TableBuilder;
use crate::version::table::{Described, KeyRange};

/// The part of a run that is in memory.
#[derive(Default)]
pub(crate) struct Input {
    /// The pages from the current one on.
    pages: Vec<PageImage>,
    entry: usize,
    /// Whether no pages follow.
    is_last: bool,
}

impl Input {
    /// Whether the input needs more pages to continue.
    pub(crate) fn needs_pages(&self) -> bool {
        self.pages.is_empty() && !self.is_last
    }

    /// Supplies the next pages, none of which is empty. `is_last` is whether they are the last
    /// ones.
    pub(crate) fn supply(&mut self, pages: Vec<PageImage>, is_last: bool) {
        assert!(self.needs_pages(), "an input gets pages before it needs them");
        (self.pages, self.entry, self.is_last) = (pages, 0, is_last);
    }
}

/// The position of an input.
struct Head<'a> {
    input: &'a Input,
    format: PointerFormat,
    page: usize,
    segment: Option<MetaSegment<'a>>,
    entry: usize,
}

impl<'a> Head<'a> {
    fn new(input: &'a Input, format: PointerFormat) -> Self {
        let mut head = Self { input, format, page: 0, segment: None, entry: input.entry };
        head.enter();
        head
    }

    fn enter(&mut self) {
        let page = self.input.pages.get(self.page);
        let segment = |page: &'a PageImage| MetaSegment::new(page.bytes(), self.format);
        self.segment = page.map(|page| segment(page).expect("checked when it was read"));
    }

    fn key(&self) -> Option<&'a [u8]> {
        self.segment.map(|segment| segment.key(self.entry))
    }

    fn advance(&mut self) {
        self.entry += 1;
        if self.segment.is_some_and(|segment| self.entry == segment.len()) {
            (self.page, self.entry) = (self.page + 1, 0);
            self.enter();
        }
    }

    /// Whether the current page has not been supplied yet.
    fn needs_pages(&self) -> bool {
        self.segment.is_none() && !self.input.is_last
    }
}

/// The keys below the level that a merge writes to.
pub(crate) enum Below {
    /// Any key may exist there.
    Any,
    /// The keys of these levels.
    Levels(Vec<Passing>),
}

impl Below {
    /// Returns the keys of the tables in `levels`.
    pub(crate) fn of<'t, T: Described + 't>(levels: impl IntoIterator<Item = &'t [T]>) -> Self {
        let keys = |level: &[T]| level.iter().map(|table| table.meta().keys()).collect();
        let levels = levels.into_iter().filter(|level| !level.is_empty());
        Self::Levels(levels.map(|level| Passing { tables: keys(level), passed: 0 }).collect())
    }

    /// Whether `key` may have an entry below. Requires: keys are passed in ascending order.
    fn may_have(&mut self, key: &[u8]) -> bool {
        let Self::Levels(levels) = self else { return true };
        levels.iter_mut().any(|level| level.may_have(key))
    }
}

/// The tables of a level, in key order, during a pass through it.
pub(crate) struct Passing {
    tables: Vec<KeyRange>,
    passed: usize,
}

impl Passing {
    fn may_have(&mut self, key: &[u8]) -> bool {
        let left = &self.tables[self.passed..];
        self.passed += left.iter().take_while(|table| *table.last < *key).count();
        self.tables.get(self.passed).is_some_and(|table| *table.first <= *key)
    }
}

/// The destination and the side results of a merge.
pub(crate) struct Output {
    pub builder: TableBuilder,
    pub cutter: Cutter,
    /// The keys below: a tombstone is dropped if no lower level may have its key.
    pub below: Below,
    /// Objects whose entries were replaced by newer ones.
    pub dead: Vec<Pointer>,
    /// The number of entries, except tombstones, that were replaced by newer ones.
    pub duplicates: usize,
    /// If set, entries from this key on stay in the upper level.
    pub until: Option<Box<[u8]>>,
    /// Whether the rest may be cut into several tables.
    pub cuts_rest: bool,
    /// Whether the merge has reached the rest.
    pub is_rest: bool,
}

/// The reason why a merge stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    /// Inputs need pages.
    Pages,
    /// The budget of entries is used up.
    Budget,
    /// The current output table ends here.
    Cut,
    /// The rest, which stays in the upper level, begins here; the caller sets `is_rest` in the
    /// output.
    Rest,
    /// No entries are left.
    End,
}

/// Merges up to `budget` entries of `inputs`, the newest input first, into `out`. Returns the
/// number of entries and the reason for stopping. Cost: one comparison with each input per entry.
pub(crate) fn step(
    inputs: &mut [Input],
    out: &mut Output,
    format: PointerFormat,
    budget: usize,
) -> (usize, Stop) {
    let mut heads: Vec<Head<'_>> = inputs.iter().map(|input| Head::new(input, format)).collect();
    let outcome = advance(&mut heads, out, budget);
    let places: Vec<(usize, usize)> = heads.iter().map(|head| (head.page, head.entry)).collect();
    for (input, (page, entry)) in inputs.iter_mut().zip(places) {
        input.pages.drain(..page);
        input.entry = entry;
    }
    outcome
}

fn advance(heads: &mut [Head<'_>], out: &mut Output, budget: usize) -> (usize, Stop) {
    let mut taken = 0;
    loop {
        if heads.iter().any(Head::needs_pages) {
            return (taken, Stop::Pages);
        }
        if taken >= budget {
            return (taken, Stop::Budget);
        }
        let Some(newest) = newest_of_least(heads) else { return (taken, Stop::End) };
        let segment = heads[newest].segment.expect("it has a key");
        let entry = segment.entry(heads[newest].entry);
        if !out.is_rest && out.until.as_ref().is_some_and(|until| **until <= *entry.key) {
            return (taken, Stop::Rest);
        }
        if !out.builder.is_empty() && out.ends_before(entry.key) {
            return (taken, Stop::Cut);
        }
        taken += 1;
        for head in &mut heads[newest + 1..] {
            if head.key() == Some(entry.key) {
                let older = head.segment.expect("it has a key").entry(head.entry);
                out.drop_replaced(&older);
                head.advance();
                taken += 1;
            }
        }
        if !entry.is_tombstone() || out.is_rest || out.below.may_have(entry.key) {
            out.builder.push(&entry);
        }
        heads[newest].advance();
    }
}

/// Returns the newest of the inputs whose current key is the smallest.
fn newest_of_least(heads: &[Head<'_>]) -> Option<usize> {
    let mut least: Option<(usize, &[u8])> = None;
    for (index, head) in heads.iter().enumerate() {
        let Some(key) = head.key() else { continue };
        if least.is_none_or(|(_, before)| key < before) {
            least = Some((index, key));
        }
    }
    least.map(|(index, _)| index)
}

impl Output {
    fn ends_before(&mut self, key: &[u8]) -> bool {
        if self.is_rest && !self.cuts_rest {
            return false;
        }
        let builder = &self.builder;
        self.cutter.ends_before(key, builder.pages(), builder.most_pages_with(key))
    }

    /// Drops an entry that was replaced by a newer one. Its object is dead; an inline value is
    /// dropped with its entry.
    fn drop_replaced(&mut self, entry: &IndexEntry<'_>) {
        self.duplicates += usize::from(!entry.is_tombstone());
        if entry.pointer.is_place() {
            self.dead.push(entry.pointer);
        }
    }
}
