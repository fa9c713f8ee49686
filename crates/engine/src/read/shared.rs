//! Client reads of the same page share one flash read.
//!
//! A get that needs a page which another get is reading waits for that read instead of starting its
//! own. (The published code does the same for meta pages.) Without this, the die of the hottest key
//! limits the whole drive under a skewed load. Cost per read: a comparison with the few reads in
//! flight whose page numbers are equal modulo `CLASSES`.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::task::{Poll, Waker};

use runtime::PageImage;

use crate::medium::{MediumError, PageNo};

type Outcome = Result<PageImage, MediumError>;

/// Reads in flight, by page.
pub(crate) struct SharedReads {
    places: RefCell<Vec<Place>>,
    /// Unused entries of `places`.
    free: RefCell<Vec<usize>>,
    /// For each page number modulo `CLASSES`: the first entry of the list.
    by_class: [Cell<usize>; CLASSES],
    pub(crate) shared: Cell<u64>,
}

/// A read in flight.
struct Place {
    page: PageNo,
    /// The next entry of the same class.
    next: usize,
    /// The readers that wait for the page.
    followers: Vec<Rc<Follower>>,
}

const CLASSES: usize = 256;

/// The end of a class's list.
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

/// The result that a follower receives.
enum Word {
    Read(Outcome),
    /// The leader was dropped: the page is no longer being read.
    GivenUp,
}

/// The reader that reads a page for all its followers. If it is dropped before the read ends, its
/// followers read by themselves.
struct Leader<'a> {
    reads: &'a SharedReads,
    page: PageNo,
    place: usize,
    has_told: bool,
}

impl Leader<'_> {
    /// Gives the result of the read to all followers.
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
    /// Returns the contents of `page`: from a read in flight, for which `joined` is called, or from
    /// a new read that `start` submits. A read that is not shared is not listed here.
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

    /// Lists a page and returns the index of its entry.
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

    /// Removes the entry `place` of a read that has ended, and returns its followers.
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

    /// Returns the number of reads that another read has served.
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
