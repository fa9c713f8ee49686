//! Many runs into one, step by step: the newest entry of a key wins. Pure: whoever runs it reads pages when
//! an input has none left, writes those that come out, and may stop after any step.

use pages::format::pointer::{Pointer, PointerFormat};
use runtime::PageImage;

use crate::format::entry::IndexEntry;
use crate::format::meta_segment::MetaSegment;
use crate::tables::builder::TableBuilder;
use crate::tables::cut::Cutter;
use crate::tables::table::{Described, KeyRange};

/// What of a run is in memory.
#[derive(Default)]
pub(crate) struct Input {
    /// From the page it stands in on.
    pages: Vec<PageImage>,
    entry: usize,
    /// No pages follow these.
    is_last: bool,
}

impl Input {
    /// Whether it cannot go on without more pages.
    pub(crate) fn needs_pages(&self) -> bool {
        self.pages.is_empty() && !self.is_last
    }

    /// Gives it the pages that follow, none of which is empty; `is_last` says that these are all.
    pub(crate) fn supply(&mut self, pages: Vec<PageImage>, is_last: bool) {
        assert!(self.needs_pages(), "an input gets pages before it needs them");
        (self.pages, self.entry, self.is_last) = (pages, 0, is_last);
    }
}

/// The place of an input.
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

    /// Whether what it stands at is not there yet.
    fn needs_pages(&self) -> bool {
        self.segment.is_none() && !self.input.is_last
    }
}

/// Which keys lie below the level that a merge writes to.
pub(crate) enum Below {
    /// Perhaps any.
    Any,
    /// Those of these levels.
    Levels(Vec<Passing>),
}

impl Below {
    /// Those of the tables in `levels`.
    pub(crate) fn of<'t, T: Described + 't>(levels: impl IntoIterator<Item = &'t [T]>) -> Self {
        let keys = |level: &[T]| level.iter().map(|table| table.meta().keys()).collect();
        let levels = levels.into_iter().filter(|level| !level.is_empty());
        Self::Levels(levels.map(|level| Passing { tables: keys(level), passed: 0 }).collect())
    }

    /// Whether `key`, which is not before those that were asked for, may have an entry there.
    fn may_have(&mut self, key: &[u8]) -> bool {
        let Self::Levels(levels) = self else { return true };
        levels.iter_mut().any(|level| level.may_have(key))
    }
}

/// The tables of a level, in key order, on the way through it.
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

/// Where a merge goes, and what it leaves behind.
pub(crate) struct Output {
    pub builder: TableBuilder,
    pub cutter: Cutter,
    /// A tombstone is dropped where nothing lies below it.
    pub below: Below,
    /// Objects whose entries newer ones have replaced.
    pub dead: Vec<Pointer>,
    /// Entries, deletes aside, that newer ones have replaced.
    pub duplicates: usize,
    /// If set, what follows from this key on stays in the upper level.
    pub until: Option<Box<[u8]>>,
    /// Whether that may be several tables.
    pub cuts_rest: bool,
    /// That is what comes now.
    pub is_rest: bool,
}

/// Why a merge stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    /// Inputs need pages.
    Pages,
    /// So many entries were taken.
    Budget,
    /// The table that is being built ends here.
    Cut,
    /// What follows stays in the upper level, which the caller notes in the output.
    Rest,
    /// Nothing is left.
    End,
}

/// Takes up to `budget` entries of `inputs`, the newest input first, to `out`. Returns how many, and why it
/// stopped. Cost: a comparison with each input for each entry.
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

/// The newest of the inputs that stand at the least key.
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

    /// An entry is replaced by a newer one. Its object is dead; a value beside its key is gone with it.
    fn drop_replaced(&mut self, entry: &IndexEntry<'_>) {
        self.duplicates += usize::from(!entry.is_tombstone());
        if entry.pointer.is_place() {
            self.dead.push(entry.pointer);
        }
    }
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
