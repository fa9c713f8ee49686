//! The state of one extent, and how much of it is in use.

use crate::manifest::changes::Counts;
use crate::medium::{PageNo, Stream};

/// The lifecycle state of an extent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum State {
    /// Empty.
    Free = 0,
    /// Being filled.
    Open = 1,
    /// Full, or no longer filled.
    Closed = 2,
    /// Garbage collection is moving its live items.
    Collecting = 3,
    /// Nothing refers to it. It is being released and becomes free.
    Releasing = 4,
    /// A page that may be in use is damaged, or cannot be read for now. The extent is kept
    /// unchanged. It is closed again when the store is opened.
    Quarantined = 5,
}

impl State {
    /// Whether an extent may change from this state to `next` while the store runs. Opening and
    /// closing are not counted.
    pub(super) fn leads_to(self, next: Self) -> bool {
        match next {
            Self::Free => self == Self::Releasing,
            Self::Open => false,
            Self::Quarantined => self == Self::Collecting,
            Self::Closed => matches!(self, Self::Collecting | Self::Quarantined),
            Self::Collecting => self == Self::Closed,
            // Also an extent whose release was interrupted by a power cut.
            Self::Releasing => matches!(self, Self::Closed | Self::Collecting | Self::Releasing),
        }
    }

    pub(crate) const ALL: [Self; 6] = [
        Self::Free,
        Self::Open,
        Self::Closed,
        Self::Collecting,
        Self::Releasing,
        Self::Quarantined,
    ];
}

/// The part of an extent that one run of the store filled: the run opened the extent, or a recovery
/// resumed it. Pages that an earlier run left after `from` can have the same extent and generation
/// as the new pages there. Only the run number distinguishes them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FilledBy {
    /// The first position that the run wrote.
    pub from: u32,
    /// The number of the run: see [`super::PageStore::begin_run`].
    pub run: u32,
}

/// One extent. "Items" are objects in a data extent and pages in an index extent.
#[derive(Clone, Debug, PartialEq)]
pub struct Extent {
    /// The lifecycle state.
    pub state: State,
    /// The stream that it holds, or held last.
    pub stream: Stream,
    /// The number of pages handed out.
    pub(crate) cursor: u32,
    /// Items that an index refers to or has referred to.
    pub(crate) published: u32,
    /// Items not known to be obsolete.
    pub live: u32,
    /// Pages that were handed out before a power cut and that nothing will ever refer to.
    pub(crate) holes: Vec<PageNo>,
    /// The runs that filled it, in order. Only on a medium that is written anywhere.
    pub(crate) runs: Vec<FilledBy>,
    /// Its age: the number of extents that had been opened, including this one.
    pub age: u64,
    /// The number of times that it was opened.
    pub generation: u64,
}

impl Extent {
    /// Returns an empty open extent of run `run`; 0 means that runs are not noted.
    pub(crate) fn opened_in(run: u32, stream: Stream, age: u64, generation: u64) -> Self {
        let runs = if run == 0 { Vec::new() } else { vec![FilledBy { from: 0, run }] };
        Self { runs, ..Self::opened(stream, age, generation) }
    }

    /// Returns an empty open extent, where runs are not noted.
    pub(crate) fn opened(stream: Stream, age: u64, generation: u64) -> Self {
        Self {
            state: State::Open,
            stream,
            cursor: 0,
            published: 0,
            live: 0,
            holes: Vec::new(),
            runs: Vec::new(),
            age,
            generation,
        }
    }

    /// Returns an extent that was never opened.
    pub(crate) fn blank() -> Self {
        Self { state: State::Free, ..Self::opened(Stream::Objects, 0, 0) }
    }

    /// Whether it is closed and has no live item.
    pub(super) fn is_empty(&self) -> bool {
        self.state == State::Closed && self.live == 0
    }

    /// Notes that run `run` continues to fill the extent at its cursor.
    pub(super) fn resume(&mut self, run: u32) {
        let from = self.cursor;
        // Pages that an earlier run wrote from here on are not in use.
        self.runs.retain(|filled| filled.from < from);
        self.runs.push(FilledBy { from, run });
    }

    /// Returns the run that handed out position `place`; 0 where runs are not noted.
    pub(super) fn run_at(&self, place: u32) -> u32 {
        let before = self.runs.iter().rev().find(|filled| filled.from <= place);
        before.map_or(0, |filled| filled.run)
    }

    /// Adds `counts` to the extent's counts. `is_certain`: whether every dead item belongs to the
    /// present generation. Returns an error message if the counts contradict each other.
    pub(super) fn count(&mut self, counts: Counts, is_certain: bool) -> Result<(), &'static str> {
        let Counts { published, entered, dead } = counts;
        self.published = self.published.saturating_add(published);
        let live = self.live.saturating_add(entered);
        self.live = live.saturating_sub(dead).min(self.published);
        if is_certain && live < dead {
            return Err("more items of an extent died than lived");
        }
        if live.saturating_sub(dead) > self.published {
            return Err("more items of an extent live than were written");
        }
        Ok(())
    }
}
