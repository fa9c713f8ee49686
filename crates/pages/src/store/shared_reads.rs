//! Client reads of one page share one flash read.
//!
//! A Get that needs a page which another Get is reading waits for that read instead of starting
//! its own (the published code does so for meta pages). Without it the die of the hottest key
//! bounds the whole drive under a skewed load. Cost: a scan over the pages being read, dozens, when one
//! may be shared.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::task::{Poll, Waker};

use runtime::PageImage;

use crate::medium::{MediumError, PageNo};

type Outcome = Result<PageImage, MediumError>;

/// Reads under way, by page.
pub(crate) struct SharedReads {
    pages: RefCell<Vec<Option<PageNo>>>,
    /// Places of `pages` without one.
    free: RefCell<Vec<usize>>,
    /// How many of `pages` have each number modulo `CLASSES`: none, for most that are asked for.
    by_class: [Cell<u32>; CLASSES],
    /// Who waits for the page at the same place of `pages`.
    followers: RefCell<Vec<Vec<Rc<Follower>>>>,
    shared: Cell<u64>,
}

const CLASSES: usize = 256;

impl Default for SharedReads {
    fn default() -> Self {
        let by_class = [const { Cell::new(0) }; CLASSES];
        let (pages, free, followers) = Default::default();
        Self { pages, free, by_class, followers, shared: Cell::new(0) }
    }
}

#[derive(Default)]
struct Follower {
    told: RefCell<Option<Word>>,
    waker: RefCell<Option<Waker>>,
}

/// What a follower is told.
#[derive(Clone)]
enum Word {
    Read(Outcome),
    /// Nobody reads the page any more.
    GivenUp,
}

/// Whoever reads a page for all. Dropped before the end, its followers fend for themselves.
struct Leader<'a> {
    reads: &'a SharedReads,
    page: PageNo,
    place: usize,
    word: Word,
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        for follower in self.reads.take(self.page, self.place) {
            follower.tell(self.word.clone());
        }
    }
}

impl SharedReads {
    /// What `page` holds: from a read that is under way, which `joined` is called for, or from a
    /// new one that `start` submits. One that is not shared begins and ends by itself.
    pub(crate) async fn read_if<F: Future<Output = Outcome>>(
        &self,
        is_shared: bool,
        page: PageNo,
        joined: impl Fn(),
        start: impl FnOnce() -> F,
    ) -> Outcome {
        if !is_shared {
            return start().await;
        }
        while let Some(follower) = self.follow(page) {
            joined();
            if let Word::Read(outcome) = follower.told().await {
                self.shared.set(self.shared.get() + 1);
                return outcome;
            }
        }
        let place = self.enter(page);
        let mut leader = Leader { reads: self, page, place, word: Word::GivenUp };
        let outcome = start().await;
        leader.word = Word::Read(outcome.clone());
        outcome
    }

    /// Joins a read of `page`, if one is under way.
    fn follow(&self, page: PageNo) -> Option<Rc<Follower>> {
        if self.class(page).get() == 0 {
            return None;
        }
        let place = self.pages.borrow().iter().position(|other| *other == Some(page))?;
        let follower = Rc::new(Follower::default());
        self.followers.borrow_mut()[place].push(Rc::clone(&follower));
        Some(follower)
    }

    /// Lists a page; gives its place.
    fn enter(&self, page: PageNo) -> usize {
        let class = self.class(page);
        class.set(class.get() + 1);
        let mut pages = self.pages.borrow_mut();
        if let Some(place) = self.free.borrow_mut().pop() {
            pages[place] = Some(page);
            return place;
        }
        pages.push(Some(page));
        self.followers.borrow_mut().push(Vec::new());
        pages.len() - 1
    }

    /// The read of the page at `place` has ended: who waits for it.
    fn take(&self, page: PageNo, place: usize) -> Vec<Rc<Follower>> {
        let listed = self.pages.borrow_mut()[place].take();
        assert_eq!(listed, Some(page), "a page stays listed until its read has ended");
        let class = self.class(page);
        class.set(class.get() - 1);
        self.free.borrow_mut().push(place);
        std::mem::take(&mut self.followers.borrow_mut()[place])
    }

    fn class(&self, page: PageNo) -> &Cell<u32> {
        &self.by_class[page.0 as usize % CLASSES]
    }

    /// Reads that were served by another's so far.
    pub(crate) fn shared(&self) -> u64 {
        self.shared.get()
    }
}

impl Follower {
    fn tell(&self, word: Word) {
        *self.told.borrow_mut() = Some(word);
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }

    async fn told(&self) -> Word {
        std::future::poll_fn(|cx| {
            let told = self.told.borrow_mut().take();
            if told.is_none() {
                *self.waker.borrow_mut() = Some(cx.waker().clone());
            }
            told.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::{Nanos, Runtime};

    #[test]
    fn readers_of_one_page_share_a_read_and_later_ones_do_not() {
        let rt = Runtime::new(1);
        let handle = rt.handle();
        let reads = Rc::new(SharedReads::default());
        let started = Rc::new(Cell::new(0));
        let read = {
            let (handle, reads, started) = (handle.clone(), Rc::clone(&reads), Rc::clone(&started));
            move |page: u32| {
                let (handle, reads, started) =
                    (handle.clone(), Rc::clone(&reads), Rc::clone(&started));
                async move {
                    let start = || async {
                        started.set(started.get() + 1);
                        handle.sleep(Nanos(100)).await;
                        Ok(PageImage::new(&page.to_le_bytes()))
                    };
                    let image =
                        reads.read_if(true, PageNo(page), || {}, start).await.expect("readable");
                    assert_eq!(image.bytes(), page.to_le_bytes());
                }
            }
        };
        let tasks: Vec<_> = [1, 1, 2, 1, 2].map(|page| handle.spawn("reader", read(page))).into();
        rt.block_on(async move {
            for task in tasks {
                task.await;
            }
            assert_eq!(handle.now(), Nanos(100));
            read(1).await;
        });
        assert_eq!((started.get(), reads.shared()), (3, 3));
    }

    #[test]
    fn followers_of_a_read_that_is_given_up_read_for_themselves() {
        let rt = Runtime::new(1);
        let handle = rt.handle();
        let reads = Rc::new(SharedReads::default());
        let (sleeper, followed) = (handle.clone(), Rc::clone(&reads));
        let follower = handle.spawn("follower", async move {
            sleeper.sleep(Nanos(10)).await;
            let start = || async { Ok(PageImage::new(b"late")) };
            followed
                .read_if(true, PageNo(1), || {}, start)
                .await
                .expect("readable")
                .bytes()
                .to_vec()
        });
        rt.block_on(async move {
            {
                let start = || async { std::future::pending::<Outcome>().await };
                let mut leader = Box::pin(reads.read_if(true, PageNo(1), || {}, start));
                let poll = std::future::poll_fn(|cx| {
                    assert!(leader.as_mut().poll(cx).is_pending());
                    Poll::Ready(())
                });
                poll.await;
                handle.sleep(Nanos(20)).await;
                assert!(!follower.is_finished());
            }
            assert_eq!(follower.await, b"late");
        });
    }
}
