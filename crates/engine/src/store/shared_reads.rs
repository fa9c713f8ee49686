//! Client reads of one page share one flash read.
//!
//! A Get that needs a page which another Get is reading waits for that read instead of starting
//! its own (the published code does so for meta pages). Without it the die of the hottest key
//! bounds the whole drive under a skewed load. Cost: a scan over the pages being read, dozens.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::task::{Poll, Waker};

use runtime::PageImage;

use crate::store::medium::{MediumError, PageNo};

type Outcome = Result<PageImage, MediumError>;

/// Reads under way, by page.
#[derive(Default)]
pub(crate) struct SharedReads {
    pages: RefCell<Vec<PageNo>>,
    /// Who waits for the page at the same place of `pages`.
    followers: RefCell<Vec<Vec<Rc<Follower>>>>,
    shared: Cell<u64>,
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
    word: Word,
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        for follower in self.reads.take(self.page) {
            follower.tell(self.word.clone());
        }
    }
}

impl SharedReads {
    /// What `page` holds: from a read that is under way, which `joined` is called for, or from a
    /// new one that `start` submits.
    pub(crate) async fn read<F: Future<Output = Outcome>>(
        &self,
        page: PageNo,
        joined: impl Fn(),
        start: impl FnOnce() -> F,
    ) -> Outcome {
        while let Some(follower) = self.follow(page) {
            joined();
            if let Word::Read(outcome) = follower.told().await {
                self.shared.set(self.shared.get() + 1);
                return outcome;
            }
        }
        self.pages.borrow_mut().push(page);
        self.followers.borrow_mut().push(Vec::new());
        let mut leader = Leader { reads: self, page, word: Word::GivenUp };
        let outcome = start().await;
        leader.word = Word::Read(outcome.clone());
        outcome
    }

    /// Joins a read of `page`, if one is under way.
    fn follow(&self, page: PageNo) -> Option<Rc<Follower>> {
        let place = place_of(page, &self.pages.borrow())?;
        let follower = Rc::new(Follower::default());
        self.followers.borrow_mut()[place].push(Rc::clone(&follower));
        Some(follower)
    }

    fn take(&self, page: PageNo) -> Vec<Rc<Follower>> {
        let mut pages = self.pages.borrow_mut();
        let place = place_of(page, &pages).expect("it stays listed until its read has ended");
        pages.swap_remove(place);
        self.followers.borrow_mut().swap_remove(place)
    }

    /// Reads that were served by another's so far.
    pub(crate) fn shared(&self) -> u64 {
        self.shared.get()
    }
}

/// Where `page` stands in `pages`. Most often nowhere: whether it is among some is asked without a
/// branch for each, so that a processor compares several at a time.
fn place_of(page: PageNo, pages: &[PageNo]) -> Option<usize> {
    const TOGETHER: usize = 16;
    let has_it = |some: &[PageNo]| some.iter().fold(false, |has, other| has | (*other == page));
    let start = TOGETHER * pages.chunks(TOGETHER).position(has_it)?;
    pages[start..].iter().position(|other| *other == page).map(|place| start + place)
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
                    let image = reads.read(PageNo(page), || {}, start).await.expect("readable");
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
            followed.read(PageNo(1), || {}, start).await.expect("readable").bytes().to_vec()
        });
        rt.block_on(async move {
            {
                let start = || async { std::future::pending::<Outcome>().await };
                let mut leader = Box::pin(reads.read(PageNo(1), || {}, start));
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
