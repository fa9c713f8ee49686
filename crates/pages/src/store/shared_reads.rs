//! Client reads of one page share one flash read.
//!
//! A Get that needs a page which another Get is reading waits for that read instead of starting
//! its own (the published code does so for meta pages). Without it the die of the hottest key
//! bounds the whole drive under a skewed load. Cost: of a read, a look at the few others whose page has
//! the same last digits.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::task::{Poll, Waker};

use runtime::PageImage;

use crate::medium::{MediumError, PageNo};

type Outcome = Result<PageImage, MediumError>;

/// Reads under way, by page.
pub(crate) struct SharedReads {
    places: RefCell<Vec<Place>>,
    /// Places of no read.
    free: RefCell<Vec<usize>>,
    /// The first place of those whose page has each number modulo `CLASSES`.
    by_class: [Cell<usize>; CLASSES],
    pub(crate) shared: Cell<u64>,
}

/// A read under way.
struct Place {
    page: PageNo,
    /// The next place of the same class.
    next: usize,
    /// Who waits for the page.
    followers: Vec<Rc<Follower>>,
}

const CLASSES: usize = 256;

/// Behind the last place of a class.
const NONE: usize = usize::MAX;

impl Default for SharedReads {
    fn default() -> Self {
        let by_class = [const { Cell::new(NONE) }; CLASSES];
        let (places, free) = Default::default();
        Self { places, free, by_class, shared: Cell::new(0) }
    }
}

#[derive(Default)]
struct Follower {
    told: RefCell<Option<Word>>,
    waker: RefCell<Option<Waker>>,
}

/// What a follower is told.
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
    has_told: bool,
}

impl Leader<'_> {
    /// The read has ended.
    fn tell(mut self, outcome: &Outcome) {
        self.has_told = true;
        for follower in self.reads.take(self.page, self.place) {
            follower.tell(Word::Read(outcome.clone()));
        }
    }
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        if !self.has_told {
            for follower in self.reads.take(self.page, self.place) {
                follower.tell(Word::GivenUp);
            }
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
        let leader = Leader { reads: self, page, place, has_told: false };
        let outcome = start().await;
        leader.tell(&outcome);
        outcome
    }

    /// Joins a read of `page`, if one is under way.
    fn follow(&self, page: PageNo) -> Option<Rc<Follower>> {
        let mut at = self.class(page).get();
        if at == NONE {
            return None;
        }
        let mut places = self.places.borrow_mut();
        while let Some(place) = places.get_mut(at) {
            if place.page == page {
                let follower = Rc::new(Follower::default());
                place.followers.push(Rc::clone(&follower));
                return Some(follower);
            }
            at = place.next;
        }
        None
    }

    /// Lists a page; gives its place.
    fn enter(&self, page: PageNo) -> usize {
        let mut places = self.places.borrow_mut();
        let at = self.free.borrow_mut().pop().unwrap_or(places.len());
        let next = self.class(page).replace(at);
        if let Some(place) = places.get_mut(at) {
            (place.page, place.next) = (page, next);
        } else {
            places.push(Place { page, next, followers: Vec::new() });
        }
        at
    }

    /// The read of the page at `place` has ended: who waits for it.
    fn take(&self, page: PageNo, place: usize) -> Vec<Rc<Follower>> {
        let mut places = self.places.borrow_mut();
        let (listed, next) = (places[place].page, places[place].next);
        let mut at = self.class(page).get();
        if at == place {
            self.class(page).set(next);
        } else {
            while at != NONE && places[at].next != place {
                at = places[at].next;
            }
            assert!(at != NONE, "a page stays listed until its read has ended");
            places[at].next = next;
        }
        assert_eq!(listed, page, "a page stays listed until its read has ended");
        self.free.borrow_mut().push(place);
        std::mem::take(&mut places[place].followers)
    }

    fn class(&self, page: PageNo) -> &Cell<usize> {
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
