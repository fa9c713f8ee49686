//! One extent: its life, and how much of it is in use.

use crate::medium::{PageNo, Stream};
use crate::store::changes::Counts;

/// The life of an extent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum State {
    /// Empty.
    Free = 0,
    /// Being filled.
    Open = 1,
    /// Full, or given up.
    Closed = 2,
    /// Garbage collection moves what is in use out of it.
    Collecting = 3,
    /// Nothing refers to it; it becomes empty.
    Releasing = 4,
    /// A page that may hold something in use is damaged, or cannot be read for now; kept as it is. Closed again when the store is
    /// opened.
    Quarantined = 5,
}

impl State {
    /// Whether an extent may go from this state to `next` while the store runs, apart from being
    /// opened and closed.
    pub(super) fn leads_to(self, next: Self) -> bool {
        match next {
            Self::Free => self == Self::Releasing,
            Self::Open => false,
            Self::Quarantined => self == Self::Collecting,
            Self::Closed => matches!(self, Self::Collecting | Self::Quarantined),
            Self::Collecting => self == Self::Closed,
            // Also one whose release a power cut has cut short.
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

/// A run of the store opened an extent, or a recovery had it filled further. What runs before may have left behind
/// that place can be of the same extent and generation as what is written there next: only the run tells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FilledBy {
    /// The first place that it wrote.
    pub from: u32,
    /// Its number: see [`crate::store::PageStore::begin_run`].
    pub run: u32,
}

/// One extent. "Items" are objects in a data extent and pages in a meta extent.
#[derive(Clone, Debug, PartialEq)]
pub struct Extent {
    /// What is being done with it.
    pub state: State,
    /// What it holds, or held last.
    pub stream: Stream,
    /// Pages handed out.
    pub(crate) cursor: u32,
    /// Items that an index refers or referred to.
    pub(crate) published: u32,
    /// Items not known to be obsolete.
    pub live: u32,
    /// Pages handed out that nothing will ever refer to, after a power cut.
    pub(crate) holes: Vec<PageNo>,
    /// The runs that have filled it, in order, on a medium that is written anywhere.
    pub(crate) runs: Vec<FilledBy>,
    /// When it was opened, counted in extents opened.
    pub age: u64,
    /// How often it was opened.
    pub generation: u64,
}

impl Extent {
    /// An extent that nothing has been written to yet, in a run with this number; 0 if none is noted.
    pub(crate) fn opened_in(run: u32, stream: Stream, age: u64, generation: u64) -> Self {
        let runs = if run == 0 { Vec::new() } else { vec![FilledBy { from: 0, run }] };
        Self { runs, ..Self::opened(stream, age, generation) }
    }

    /// An extent that nothing has been written to yet, where runs are not noted.
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

    /// An extent that was never opened.
    pub(crate) fn blank() -> Self {
        Self { state: State::Free, ..Self::opened(Stream::Objects, 0, 0) }
    }

    /// Whether it is closed, and nothing in it is in use.
    pub(super) fn is_empty(&self) -> bool {
        self.state == State::Closed && self.live == 0
    }

    /// From where it is filled up to, it is filled further in `run`.
    pub(super) fn resume(&mut self, run: u32) {
        let from = self.cursor;
        // What an earlier run filled it with from here on is not in use.
        self.runs.retain(|filled| filled.from < from);
        self.runs.push(FilledBy { from, run });
    }

    /// The run that handed out `place`; 0 where runs are not noted.
    pub(super) fn run_at(&self, place: u32) -> u32 {
        let before = self.runs.iter().rev().find(|filled| filled.from <= place);
        before.map_or(0, |filled| filled.run)
    }

    /// An index refers to more of its items, and to some of them no more. Whether each of the dead was
    /// of its present generation is either certain or not. `Err`, with what is wrong, if there cannot
    /// be so many.
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
