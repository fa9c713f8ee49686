//! Operations in flight: their buffers, their waiters and their execution.
//!
//! An operation starts with the call, and continues whether or not its future is polled. It owns
//! its buffer until it has ended: dropping the future earlier only abandons the result, and
//! dropping the runtime waits for the kernel.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fs::File;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use rustix::io::Errno;

use super::op::{Op, Progress, Room, What};
use super::post::{Letter, Post};
use super::ring::{End, Ring};
use super::workers::Workers;
use crate::{Handle, PageImage};

/// The maximum number of operations in the ring; further ones are queued before it.
const MOST_IN_RING: usize = 2048;

/// The engine that executes operations.
pub(crate) enum Engine {
    Ring(Ring),
    Threads(Workers),
    /// The runtime has ended.
    Closed,
}

/// One operation, from the call to the end of its future.
struct Place {
    /// The operation once it has ended. Before that, the ring, a thread or the queue owns it.
    op: Option<Op>,
    result: Option<io::Result<usize>>,
    waiter: Option<Waker>,
    /// Whether the future was dropped.
    is_abandoned: bool,
}

#[derive(Default)]
struct Places {
    all: Vec<Option<Place>>,
    free: Vec<u32>,
}

/// See the module's documentation.
pub(crate) struct Io {
    engine: RefCell<Engine>,
    places: RefCell<Places>,
    /// Operations that wait for the ring.
    queued: RefCell<VecDeque<(u32, Op)>>,
    post: Arc<Post>,
    /// Whether one read is left to the polling thread instead of being started.
    leaves_a_read: Cell<bool>,
    left: RefCell<Option<(u32, Op)>>,
    /// Kept from turn to turn to reuse its memory.
    ends: RefCell<Vec<End>>,
}

impl Io {
    pub(crate) fn new(engine: Engine, post: Arc<Post>) -> Self {
        Self {
            engine: RefCell::new(engine),
            places: RefCell::default(),
            queued: RefCell::default(),
            post,
            leaves_a_read: Cell::new(false),
            left: RefCell::default(),
            ends: RefCell::default(),
        }
    }

    /// Starts an operation and returns the place of its result.
    fn begin(&self, op: Op) -> u32 {
        let place = self.take_place();
        let is_read = matches!(op.what, What::Read);
        let mut left = self.left.borrow_mut();
        if is_read && self.leaves_a_read.get() && left.is_none() {
            *left = Some((place, op));
        } else {
            drop(left);
            self.start(place, op);
        }
        place
    }

    fn take_place(&self) -> u32 {
        let fresh = Place { op: None, result: None, waiter: None, is_abandoned: false };
        let mut places = self.places.borrow_mut();
        let places = &mut *places;
        if let Some(free) = places.free.pop() {
            places.all[free as usize] = Some(fresh);
            return free;
        }
        places.all.push(Some(fresh));
        places.all.len() as u32 - 1
    }

    /// Starts the operation whose result goes to `place`.
    pub(crate) fn start(&self, place: u32, op: Op) {
        match &mut *self.engine.borrow_mut() {
            Engine::Ring(ring) => {
                if ring.in_flight() >= MOST_IN_RING {
                    self.queued.borrow_mut().push_back((place, op));
                } else {
                    ring.queue(op, place);
                }
            }
            Engine::Threads(workers) => {
                let (post, mut op) = (Arc::clone(&self.post), op);
                workers.run(Box::new(move || {
                    let result = op.perform();
                    // A runtime that has ended does not need the result.
                    let _ = post.send(Letter::Ended(place, op, result));
                }));
            }
            Engine::Closed => {
                self.place(place, |kept| {
                    kept.op = Some(op);
                    kept.result = Some(Err(Errno::CANCELED.into()));
                });
            }
        }
    }

    fn place<T>(&self, place: u32, with: impl FnOnce(&mut Place) -> T) -> T {
        let mut places = self.places.borrow_mut();
        with(places.all[place as usize].as_mut().expect("it is in use"))
    }

    fn free_place(&self, place: u32) -> Place {
        let mut places = self.places.borrow_mut();
        places.free.push(place);
        places.all[place as usize].take().expect("it is in use")
    }

    /// Records the result of an operation and wakes its waiter.
    pub(crate) fn end(&self, place: u32, op: Op, result: io::Result<usize>) {
        let (waiter, is_abandoned) = self.place(place, |kept| {
            kept.op = Some(op);
            kept.result = Some(result);
            (kept.waiter.take(), kept.is_abandoned)
        });
        if is_abandoned {
            drop(self.free_place(place));
        }
        waiter.into_iter().for_each(Waker::wake);
    }

    /// Processes the completions of the ring.
    pub(crate) fn reap(&self) {
        let mut ends = std::mem::take(&mut *self.ends.borrow_mut());
        if let Engine::Ring(ring) = &mut *self.engine.borrow_mut() {
            ring.ends(&mut ends);
        }
        for (place, mut op, came) in ends.drain(..) {
            match op.advance(came) {
                Progress::Ended(result) => self.end(place, op, result),
                Progress::GoesOn => self.queued.borrow_mut().push_front((place, op)),
            }
        }
        *self.ends.borrow_mut() = ends;
        self.refill();
    }

    /// Moves queued operations into the ring.
    fn refill(&self) {
        if self.queued.borrow().is_empty() {
            return;
        }
        let mut engine = self.engine.borrow_mut();
        let Engine::Ring(ring) = &mut *engine else { return };
        while ring.in_flight() < MOST_IN_RING {
            let Some((place, op)) = self.queued.borrow_mut().pop_front() else { return };
            ring.queue(op, place);
        }
    }

    /// Returns the number of operations queued in the ring so far. The caller that queued them must
    /// submit them with [`super::bell::Bell::submit`].
    pub(crate) fn queued(&self) -> u64 {
        match &*self.engine.borrow() {
            Engine::Ring(ring) => ring.queued(),
            Engine::Threads(_) | Engine::Closed => 0,
        }
    }

    /// Sets whether the next read is left to the polling thread; see [`Self::take_left`].
    pub(crate) fn leave_reads(&self, are_left: bool) {
        self.leaves_a_read.set(are_left);
    }

    /// Takes the read that was left, if any.
    pub(crate) fn take_left(&self) -> Option<(u32, Op)> {
        self.left.borrow_mut().take()
    }

    /// Rejects new operations, and waits until the kernel and the threads have none. Requires:
    /// every task has been dropped.
    pub(crate) fn close(&self) {
        self.queued.borrow_mut().clear();
        drop(self.take_left());
        let engine = std::mem::replace(&mut *self.engine.borrow_mut(), Engine::Closed);
        drop(engine);
        // Futures that are held outside of tasks end with an error.
        let waiting: Vec<_> = {
            let mut places = self.places.borrow_mut();
            let places = places.all.iter_mut().flatten();
            let unended = places.filter(|kept| kept.result.is_none());
            let waiter = |kept: &mut Place| {
                kept.result = Some(Err(Errno::CANCELED.into()));
                kept.waiter.take()
            };
            unended.filter_map(waiter).collect()
        };
        waiting.into_iter().for_each(Waker::wake);
    }
}

/// An operation in flight.
struct Pending {
    handle: Handle,
    place: Option<u32>,
}

impl Pending {
    fn io(&self) -> &Io {
        &self.handle.real().io
    }

    fn poll_end(&mut self, cx: &Context<'_>) -> Poll<(io::Result<usize>, PageImage)> {
        let place = self.place.expect("an operation ends once");
        let result = self.io().place(place, |kept| {
            let result = kept.result.take();
            if result.is_none() {
                kept.waiter = Some(cx.waker().clone());
            }
            result
        });
        let Some(result) = result else { return Poll::Pending };
        self.place = None;
        let op = self.io().free_place(place).op;
        let buffer = op.map_or_else(|| PageImage::new(&[]), |op| op.buffer);
        Poll::Ready((result, buffer))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let Some(place) = self.place.take() else { return };
        let is_over = self.io().place(place, |kept| {
            kept.is_abandoned = true;
            kept.waiter = None;
            kept.result.is_some()
        });
        if is_over {
            drop(self.io().free_place(place));
        }
    }
}

/// A read or a write in flight. Returns the number of bytes transferred, and the buffer. The number
/// is less than the buffer's length only at the end of a file.
#[must_use = "what came of it is told to whoever awaits it"]
pub struct Transfer(Pending);

impl Future for Transfer {
    type Output = (io::Result<usize>, PageImage);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll_end(cx)
    }
}

/// Another file operation in flight.
#[must_use = "what came of it is told to whoever awaits it"]
pub struct FileCommand(Pending);

impl Future for FileCommand {
    type Output = io::Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll_end(cx).map(|(result, _)| result.map(drop))
    }
}

/// Real I/O. Each operation is in flight when the call returns, whether or not the returned future
/// is polled.
///
/// All of these methods panic in virtual time, which has no real files.
impl Handle {
    /// Reads from `offset` on into `buffer`, which is returned filled.
    ///
    /// # Panics
    /// Panics if the buffer is shared.
    pub fn read_at(&self, file: &Arc<File>, offset: u64, mut buffer: PageImage) -> Transfer {
        assert!(buffer.bytes_mut().is_some(), "who shares a buffer would see it change");
        Transfer(self.begin(file, What::Read, offset, buffer))
    }

    /// Writes `bytes` from `offset` on. With `is_durable`, the bytes are durable when the write
    /// completes.
    pub fn write_at(
        &self,
        file: &Arc<File>,
        offset: u64,
        bytes: PageImage,
        is_durable: bool,
    ) -> Transfer {
        Transfer(self.begin(file, What::Write { is_durable }, offset, bytes))
    }

    /// Makes the data of a file durable, and the metadata needed to read it (`fdatasync`).
    pub fn sync_data(&self, file: &Arc<File>) -> FileCommand {
        FileCommand(self.begin(file, What::SyncData, 0, PageImage::new(&[])))
    }

    /// Makes the data and all metadata of a file durable (`fsync`).
    pub fn sync_all(&self, file: &Arc<File>) -> FileCommand {
        FileCommand(self.begin(file, What::SyncAll, 0, PageImage::new(&[])))
    }

    /// Changes the space allocated to a range of a file.
    pub fn change_room(
        &self,
        file: &Arc<File>,
        offset: u64,
        bytes: u64,
        mode: Room,
    ) -> FileCommand {
        FileCommand(self.begin(file, What::Allocate { mode, bytes }, offset, PageImage::new(&[])))
    }

    fn begin(&self, file: &Arc<File>, what: What, offset: u64, buffer: PageImage) -> Pending {
        let op = Op { file: Arc::clone(file), what, offset, buffer, done: 0 };
        let place = self.real().io.begin(op);
        Pending { handle: self.clone(), place: Some(place) }
    }
}
