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
    /// A page that may hold something in use cannot be read; kept as it is.
    Quarantined = 5,
}

impl State {
    /// Whether an extent may go from this state to `next` while the store runs, apart from being
    /// opened and closed.
    pub(super) fn leads_to(self, next: Self) -> bool {
        match next {
            Self::Free => self == Self::Releasing,
            Self::Open => false,
            Self::Closed | Self::Quarantined => self == Self::Collecting,
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

/// A recovery resumed an extent, which was being filled when power failed. What the cut may have left behind
/// that place is of the same extent and generation as what is written there next: only the epoch tells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Resumed {
    /// The first place that was written afterwards.
    pub at: u32,
    /// The epoch that the recovery began: no two begin the same.
    pub epoch: u32,
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
    /// Where recoveries resumed it, in order, on a medium that is written anywhere.
    pub(crate) resumed: Vec<Resumed>,
    /// When it was opened, counted in extents opened.
    pub age: u64,
    /// How often it was opened.
    pub generation: u64,
}

impl Extent {
    /// An extent that nothing has been written to yet.
    pub(crate) fn opened(stream: Stream, age: u64, generation: u64) -> Self {
        Self {
            state: State::Open,
            stream,
            cursor: 0,
            published: 0,
            live: 0,
            holes: Vec::new(),
            resumed: Vec::new(),
            age,
            generation,
        }
    }

    /// Whether it is closed, and nothing in it is in use.
    pub(super) fn is_empty(&self) -> bool {
        self.state == State::Closed && self.live == 0
    }

    /// A recovery, which begins `epoch`, resumes it where it was filled up to.
    pub(super) fn resume(&mut self, epoch: u32) {
        let at = self.cursor;
        assert!(at > 0, "the first page of an extent is the same in all epochs");
        // What an earlier recovery had it filled with from here on is not in use.
        self.resumed.retain(|resumed| resumed.at < at);
        self.resumed.push(Resumed { at, epoch });
    }

    /// The epoch in which a recovery resumed it in front of `place`; 0 if none did.
    pub(super) fn epoch_at(&self, place: u32) -> u32 {
        let before = self.resumed.iter().rev().find(|resumed| resumed.at <= place);
        before.map_or(0, |resumed| resumed.epoch)
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
