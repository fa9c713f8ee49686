//! What the flash did, by class, and what demand reads waited for.

use runtime::{IoClass, Nanos};

/// Operations of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperationCounts {
    /// Pages read.
    pub pages_read: u64,
    /// Pages programmed.
    pub pages_programmed: u64,
    /// Blocks erased.
    pub blocks_erased: u64,
}

/// What occupied a die when a read arrived at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocker {
    /// Nothing: the read started at once.
    None,
    /// Another read.
    Read,
    /// A program.
    Program,
    /// An erase.
    Erase,
}

/// Demand reads that found their die in one state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitStats {
    /// How many.
    pub reads: u64,
    /// How long they waited until their own operation began, in total.
    pub waited: Nanos,
}

/// Counters since the drive was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlashStats {
    by_class: [OperationCounts; IoClass::ALL.len()],
    waits: [WaitStats; 4],
    /// Programs suspended for a demand read.
    pub program_suspends: u64,
    /// Erases suspended for a demand read.
    pub erase_suspends: u64,
    /// Extra senses because of bit errors.
    pub read_retries: u64,
    /// Time dies were occupied, all dies together.
    pub die_busy: Nanos,
    /// Time channels were occupied, all channels together.
    pub channel_busy: Nanos,
}

impl FlashStats {
    /// The counters of one class.
    pub fn of(&self, class: IoClass) -> OperationCounts {
        self.by_class[class.index()]
    }

    pub(crate) fn of_mut(&mut self, class: IoClass) -> &mut OperationCounts {
        &mut self.by_class[class.index()]
    }

    /// Demand reads that found their die occupied by `blocker`.
    pub fn waits(&self, blocker: Blocker) -> WaitStats {
        self.waits[blocker as usize]
    }

    pub(crate) fn count_wait(&mut self, blocker: Blocker, waited: Nanos) {
        let wait = &mut self.waits[blocker as usize];
        wait.reads += 1;
        wait.waited += waited;
    }

    /// All classes together.
    pub fn total(&self) -> OperationCounts {
        self.by_class.iter().fold(OperationCounts::default(), |sum, one| OperationCounts {
            pages_read: sum.pages_read + one.pages_read,
            pages_programmed: sum.pages_programmed + one.pages_programmed,
            blocks_erased: sum.blocks_erased + one.blocks_erased,
        })
    }
}
