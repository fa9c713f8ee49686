//! Counters of the flash by class, and waits of demand reads.

use std::ops::AddAssign;

use runtime::{Carrier, IoClass, Nanos};

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

/// The operation that occupied a die when a read arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocker {
    /// None: the read started at once.
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
    /// Number of reads.
    pub reads: u64,
    /// Total time until their own operation began.
    pub waited: Nanos,
}

/// Counters since the drive was created.
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
    /// Busy time of the dies, summed over all dies.
    pub die_busy: Nanos,
    /// Busy time of the channels, summed over all channels.
    pub channel_busy: Nanos,
}

impl AddAssign for OperationCounts {
    fn add_assign(&mut self, more: Self) {
        self.pages_read += more.pages_read;
        self.pages_programmed += more.pages_programmed;
        self.blocks_erased += more.blocks_erased;
    }
}

impl AddAssign<&Self> for FlashStats {
    fn add_assign(&mut self, more: &Self) {
        for (class, more) in self.by_class.iter_mut().zip(more.by_class) {
            *class += more;
        }
        for (wait, more) in self.waits.iter_mut().zip(more.waits) {
            wait.reads += more.reads;
            wait.waited += more.waited;
        }
        self.program_suspends += more.program_suspends;
        self.erase_suspends += more.erase_suspends;
        self.read_retries += more.read_retries;
        self.die_busy += more.die_busy;
        self.channel_busy += more.channel_busy;
    }
}

impl FlashStats {
    /// Saves or restores all counters.
    pub(crate) fn carry(&mut self, by: &mut Carrier<'_>) -> Option<()> {
        let Self {
            by_class,
            waits,
            program_suspends,
            erase_suspends,
            read_retries,
            die_busy,
            channel_busy,
        } = self;
        for OperationCounts { pages_read, pages_programmed, blocks_erased } in by_class {
            for count in [pages_read, pages_programmed, blocks_erased] {
                by.u64(count)?;
            }
        }
        for WaitStats { reads, waited } in waits {
            by.u64(reads)?;
            by.nanos(waited)?;
        }
        for count in [program_suspends, erase_suspends, read_retries] {
            by.u64(count)?;
        }
        by.nanos(die_busy)?;
        by.nanos(channel_busy)
    }

    /// Returns the counters of one class.
    pub fn of(&self, class: IoClass) -> OperationCounts {
        self.by_class[class.index()]
    }

    pub(crate) fn of_mut(&mut self, class: IoClass) -> &mut OperationCounts {
        &mut self.by_class[class.index()]
    }

    /// Returns the demand reads that found their die occupied by `blocker`.
    pub fn waits(&self, blocker: Blocker) -> WaitStats {
        self.waits[blocker as usize]
    }

    pub(crate) fn count_wait(&mut self, blocker: Blocker, waited: Nanos) {
        let wait = &mut self.waits[blocker as usize];
        wait.reads += 1;
        wait.waited += waited;
    }

    /// Returns the sum over all classes.
    pub fn total(&self) -> OperationCounts {
        self.by_class.iter().fold(OperationCounts::default(), |mut sum, one| {
            sum += *one;
            sum
        })
    }
}
