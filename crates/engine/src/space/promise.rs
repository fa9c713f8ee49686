//! Promises: space that is reserved before it is written.

use std::cell::Cell;

use runtime::Notify;

use crate::medium::Stream;

/// Pages promised and not used yet, by stream.
#[derive(Default)]
pub(crate) struct Promised {
    pub(super) pages: [Cell<u32>; Stream::ALL.len()],
}

impl Promised {
    pub(super) fn of(&self, stream: Stream) -> &Cell<u32> {
        &self.pages[stream as usize]
    }
}

/// A reservation of pages. Dropping it gives the unused pages back.
pub struct Promise<'a> {
    pub(super) stream: Stream,
    pub(super) left: u32,
    pub(super) promised: &'a Cell<u32>,
    pub(super) work: &'a Notify,
}

impl<'a> Promise<'a> {
    /// Removes `pages` pages from the total of promised pages.
    fn forget(&self, pages: u32) {
        let promised = self.promised.get();
        assert!(
            promised >= pages,
            "{pages} pages of {:?} leave a promise, but all promises together are {promised}",
            self.stream
        );
        self.promised.set(promised - pages);
    }

    pub(crate) fn stream(&self) -> Stream {
        self.stream
    }

    /// Moves `pages` pages into a new promise. Requires: this promise has that many left.
    #[must_use]
    pub fn split(&mut self, pages: u32) -> Promise<'a> {
        assert!(self.left >= pages, "a write was promised less space than it takes");
        self.left -= pages;
        Promise { stream: self.stream, left: pages, promised: self.promised, work: self.work }
    }

    /// Uses up `pages` pages.
    pub(crate) fn take(&mut self, pages: u32) {
        assert!(self.left >= pages, "a write was promised less space than it takes");
        self.left -= pages;
        self.forget(pages);
    }
}

impl Drop for Promise<'_> {
    fn drop(&mut self) {
        if self.left > 0 {
            self.forget(self.left);
            self.work.notify_all();
        }
    }
}
