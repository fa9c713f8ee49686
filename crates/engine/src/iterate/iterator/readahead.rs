//! Automatic readahead of index pages for iterators, modeled on `RocksDB` (`BlockPrefetcher`,
//! 6.23): it starts with the third sequential page, with 8 KiB at first, and doubles each time.
//! Decisions only, no I/O.

use std::collections::VecDeque;

use runtime::PageImage;

use crate::medium::PageNo;

/// The number of sequential pages that are read alone before readahead starts.
const READS_BEFORE: u32 = 2;
/// The initial readahead size in bytes.
const FIRST_BYTES: u64 = 8 << 10;

/// The readahead state of one level.
#[derive(Default)]
pub(super) struct Readahead {
    /// The page after the last one that was used.
    next: Option<PageNo>,
    /// The number of sequential reads so far.
    reads: u32,
    /// The number of pages of the last readahead.
    pages: u32,
    kept: VecDeque<(PageNo, PageImage)>,
}

impl Readahead {
    /// Returns the number of pages that were read ahead and not used yet.
    pub(super) fn kept(&self) -> usize {
        self.kept.len()
    }

    /// Returns a page that was read ahead. Drops the pages before it, which are no longer wanted.
    pub(super) fn take(&mut self, page: PageNo) -> Option<PageImage> {
        while let Some((number, image)) = self.kept.pop_front() {
            if number == page {
                self.next = Some(PageNo(page.0 + 1));
                return Some(image);
            }
        }
        None
    }

    /// Returns the number of pages to read along with `page`, which is about to be read. A page has
    /// `page_bytes` bytes; the readahead is limited to `most_bytes` bytes.
    pub(super) fn along(&mut self, page: PageNo, page_bytes: u64, most_bytes: u64) -> u32 {
        if self.next != Some(page) {
            (self.reads, self.pages) = (0, 0);
        }
        self.next = Some(PageNo(page.0 + 1));
        self.reads += 1;
        if self.reads <= READS_BEFORE {
            return 0;
        }
        let first = (FIRST_BYTES / page_bytes).max(1) as u32;
        let most = (most_bytes / page_bytes).min(u64::from(u32::MAX)) as u32;
        self.pages = self.pages.saturating_mul(2).max(first).min(most);
        self.pages
    }

    /// Stores a page that was read ahead.
    pub(super) fn keep(&mut self, page: PageNo, image: PageImage) {
        self.kept.push_back((page, image));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_page_in_order_brings_others_along_and_each_read_twice_as_many() {
        let mut readahead = Readahead::default();
        let mut read = Vec::new();
        let mut page = PageNo(10);
        while page < PageNo(80) {
            if readahead.take(page).is_none() {
                let along = readahead.along(page, 8 << 10, 256 << 10);
                read.push((page.0, along));
                for other in page.0 + 1..=page.0 + along {
                    readahead.keep(PageNo(other), PageImage::new(&[]));
                }
            }
            page = PageNo(page.0 + 1);
        }
        assert_eq!(
            read,
            [(10, 0), (11, 0), (12, 1), (14, 2), (17, 4), (22, 8), (31, 16), (48, 32)]
        );
        // A jump to another position resets the readahead and drops the kept pages.
        assert_eq!(readahead.along(PageNo(500), 8 << 10, 256 << 10), 0);
        readahead.keep(PageNo(501), PageImage::new(&[]));
        assert!(readahead.take(PageNo(700)).is_none() && readahead.kept() == 0);
    }

    #[test]
    fn no_more_comes_along_than_there_may_be() {
        let mut readahead = Readahead::default();
        let along = |page| readahead.along(PageNo(page), 4 << 10, 20 << 10);
        assert_eq!((0..6).map(along).collect::<Vec<_>>(), [0, 0, 2, 4, 5, 5]);
        let mut none = Readahead::default();
        assert!((0..6).all(|page| none.along(PageNo(page), 4 << 10, 0) == 0));
    }
}
