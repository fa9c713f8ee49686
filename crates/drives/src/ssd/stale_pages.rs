//! Stale pages: pages whose blocks are all out of date, whose contents the simulation can free.
//!
//! A drive with enough space keeps dead data for a long time. That costs the drive nothing, but
//! costs its simulation much memory, so dead contents are freed. Reads in flight may still reach
//! such a page: its contents are freed after a grace period, when all reads that began before the
//! page died have ended. Decisions only.

use crate::nand::PageAddress;

/// A page without valid slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StalePage {
    pub page: PageAddress,
    pub superblock: u32,
    /// Erases of the superblock when the page died: the superblock may be rewritten before the page
    /// is freed.
    pub erases: u32,
}

/// The period in which a read began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Period(bool);

/// Stale pages, and the number of reads that may reach them.
#[derive(Debug, Default)]
pub(crate) struct StalePages {
    /// Which of the two periods is current.
    period: bool,
    /// Reads in flight, by the period in which they began.
    readers: [u32; 2],
    /// Pages that died in the current period.
    fresh: Vec<StalePage>,
    /// Pages that died in the previous period: reads that began in it may still reach them.
    aged: Vec<StalePage>,
}

impl StalePages {
    /// Notes that a read begins.
    pub(crate) fn begin_read(&mut self) -> Period {
        self.readers[usize::from(self.period)] += 1;
        Period(self.period)
    }

    /// Notes that a read that began in `period` has ended.
    pub(crate) fn end_read(&mut self, period: Period) {
        self.readers[usize::from(period.0)] -= 1;
    }

    pub(crate) fn add(&mut self, page: StalePage) {
        self.fresh.push(page);
    }

    /// Returns the pages that no read can reach any more. Must be called repeatedly: each call
    /// begins a new period, unless reads of the previous period are still in flight.
    pub(crate) fn take_ripe(&mut self) -> Vec<StalePage> {
        if self.readers[usize::from(!self.period)] > 0 {
            return Vec::new();
        }
        self.period = !self.period;
        std::mem::replace(&mut self.aged, std::mem::take(&mut self.fresh))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stale(page: u32) -> StalePage {
        StalePage { page: PageAddress(page), superblock: 0, erases: 0 }
    }

    #[test]
    fn a_page_is_kept_until_reads_have_ended_that_began_before_it_died() {
        let mut pages = StalePages::default();
        let before = pages.begin_read();
        pages.add(stale(1));
        assert_eq!(pages.take_ripe(), []);
        let after = pages.begin_read();
        for _ in 0..3 {
            assert_eq!(pages.take_ripe(), [], "the first read may come to it");
        }
        pages.end_read(before);
        assert_eq!(pages.take_ripe(), [stale(1)], "the second began when it was dead");
        pages.end_read(after);
        assert_eq!(pages.take_ripe(), []);
    }

    #[test]
    fn without_reads_it_goes_with_the_second_question() {
        let mut pages = StalePages::default();
        pages.add(stale(1));
        assert_eq!((pages.take_ripe(), pages.take_ripe()), (vec![], vec![stale(1)]));
    }
}
