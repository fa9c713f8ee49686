//! Pages whose blocks are all out of date, on their way to be forgotten.
//!
//! A drive that has room keeps dead data for long, which costs it nothing, and a simulation of it much
//! memory. What nobody can ask for any more need not be kept. Reads that are under way may still come to
//! such a page: it is forgotten after a grace period, when every read has ended that had begun before the
//! page died. Decisions only.

use flash::PageAddress;

/// A page of which no slot is valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StalePage {
    pub page: PageAddress,
    pub superblock: u32,
    /// How often the superblock had been erased: it may be written again meanwhile.
    pub erases: u32,
}

/// The period in which a read began.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Period(bool);

/// Stale pages, and how many reads there are that may come to them.
#[derive(Debug, Default)]
pub(crate) struct StalePages {
    /// Which of two periods it is.
    period: bool,
    /// Reads under way that began in either.
    readers: [u32; 2],
    /// Died in this period.
    fresh: Vec<StalePage>,
    /// Died in the one before: reads of that may still come to them.
    aged: Vec<StalePage>,
}

impl StalePages {
    /// A read begins.
    pub(crate) fn begin_read(&mut self) -> Period {
        self.readers[usize::from(self.period)] += 1;
        Period(self.period)
    }

    /// A read has ended that began in `period`.
    pub(crate) fn end_read(&mut self, period: Period) {
        self.readers[usize::from(period.0)] -= 1;
    }

    pub(crate) fn add(&mut self, page: StalePage) {
        self.fresh.push(page);
    }

    /// The pages that no read can come to any more. Ask again and again: each answer that is not for want of
    /// time begins a new period.
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
