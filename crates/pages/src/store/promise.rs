//! Promises of space: pages that are certain to be there when they are written.

use std::cell::Cell;

use runtime::Notify;

use crate::medium::Stream;

/// Pages promised and not yet taken, by stream.
#[derive(Default)]
pub(crate) struct Promised {
    pub(super) pages: [Cell<u32>; Stream::ALL.len()],
}

impl Promised {
    pub(super) fn of(&self, stream: Stream) -> &Cell<u32> {
        &self.pages[stream as usize]
    }
}

/// Pages that are certain to be there when they are written. What is left of it when it is dropped
/// is anybody's again.
pub struct Promise<'a> {
    pub(super) stream: Stream,
    pub(super) left: u32,
    pub(super) promised: &'a Cell<u32>,
    pub(super) work: &'a Notify,
}

impl<'a> Promise<'a> {
    /// `pages` of it count against what is free no more.
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

    /// Gives `pages` of it, as long as there are as many, to another.
    #[must_use]
    pub fn split(&mut self, pages: u32) -> Promise<'a> {
        assert!(self.left >= pages, "a write was promised less space than it takes");
        self.left -= pages;
        Promise { stream: self.stream, left: pages, promised: self.promised, work: self.work }
    }

    /// Uses up `pages` of it.
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
