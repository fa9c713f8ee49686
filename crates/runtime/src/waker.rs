//! Wakers without reference counts: a waker is the number of a runtime and the number of a task.
//!
//! `std` requires wakers to be `Send + Sync`. These are two integers, so they may move between
//! threads. The queue that they refer to is found by number in a thread-local list. A runtime in
//! virtual time is in the list of its thread for its whole life; a runtime in real time only while
//! the thread runs it. On other threads, wakers of a runtime in real time send a letter
//! ([`crate::real`]), and wakers of a runtime in virtual time do nothing. After the runtime has
//! ended, wakers do nothing. A task number may be reused by a later task, which is then polled once
//! unnecessarily; every future must tolerate that anyway.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ptr::{self, without_provenance};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{RawWaker, RawWakerVTable, Waker};

/// Ready tasks, each at most once.
#[derive(Default)]
pub(crate) struct ReadyQueue {
    inner: RefCell<Ready>,
}

#[derive(Default)]
struct Ready {
    queue: VecDeque<u32>,
    is_queued: Vec<bool>,
}

impl ReadyQueue {
    pub(crate) fn push(&self, task: u32) {
        let ready = &mut *self.inner.borrow_mut();
        let index = task as usize;
        if ready.is_queued.len() <= index {
            ready.is_queued.resize(index + 1, false);
        }
        if !ready.is_queued[index] {
            ready.is_queued[index] = true;
            ready.queue.push_back(task);
        }
    }

    /// Returns the number of ready tasks.
    pub(crate) fn len(&self) -> usize {
        self.inner.borrow().queue.len()
    }

    /// Removes and returns the task that `choose` picks, given the number of ready tasks. The cost
    /// does not depend on that number.
    #[expect(clippy::inline_always, reason = "two loops call it; see `Inner::poll`")]
    #[inline(always)]
    pub(crate) fn pop(&self, choose: impl FnOnce(usize) -> Pick) -> Option<u32> {
        let ready = &mut *self.inner.borrow_mut();
        if ready.queue.is_empty() {
            return None;
        }
        let task = match choose(ready.queue.len()) {
            Pick::Oldest => ready.queue.pop_front(),
            Pick::Index(index) => ready.queue.swap_remove_back(index),
        }?;
        ready.is_queued[task as usize] = false;
        Some(task)
    }
}

/// The ready task to run next.
pub(crate) enum Pick {
    Oldest,
    Index(usize),
}

static NEXT_RUNTIME: AtomicU32 = AtomicU32::new(1);

thread_local! {
    /// The queues of the runtimes that this thread runs.
    static QUEUES: RefCell<Vec<(u32, Rc<ReadyQueue>)>> = const { RefCell::new(Vec::new()) };
}

/// Returns the number for a new runtime.
pub(crate) fn new_runtime() -> u32 {
    NEXT_RUNTIME.fetch_add(1, Ordering::Relaxed)
}

/// Makes `queue` reachable by wakers of runtime `id` on this thread.
pub(crate) fn register(id: u32, queue: Rc<ReadyQueue>) {
    QUEUES.with_borrow_mut(|queues| queues.push((id, queue)));
}

/// As [`register`], until the result is dropped.
pub(crate) fn enter(id: u32, queue: &Rc<ReadyQueue>) -> Entered {
    register(id, Rc::clone(queue));
    Entered { id }
}

/// See [`enter`].
pub(crate) struct Entered {
    id: u32,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let _ = QUEUES.try_with(|queues| {
            let mut queues = queues.borrow_mut();
            // A runtime may be entered twice; the last entry leaves first.
            if let Some(at) = queues.iter().rposition(|(id, _)| *id == self.id) {
                queues.remove(at);
            }
        });
    }
}

/// Whether this thread runs runtime `id`.
pub(crate) fn is_entered(id: u32) -> bool {
    QUEUES.with_borrow(|queues| queues.iter().any(|(other, _)| *other == id))
}

/// Makes wakers of runtime `id` do nothing from now on.
pub(crate) fn unregister(id: u32) {
    // A runtime may be dropped while its thread ends, when the thread-local is already gone.
    let _ = QUEUES.try_with(|queues| queues.borrow_mut().retain(|(other, _)| *other != id));
}

/// Returns the waker of task `task` of runtime `runtime`.
pub(crate) fn waker(runtime: u32, task: u32) -> Waker {
    let data = (u64::from(runtime) << 32 | u64::from(task)) as usize;
    // SAFETY: the vtable's functions never dereference the pointer, which only carries an integer;
    // clone, wake and drop therefore keep the RawWaker contract on any thread.
    unsafe { Waker::from_raw(RawWaker::new(without_provenance(data), &VTABLE)) }
}

/// Returns the task that `waker` wakes, if it is a task of runtime `runtime`.
pub(crate) fn task_of(waker: &Waker, runtime: u32) -> Option<u32> {
    let data = waker.data().addr() as u64;
    (ptr::eq(waker.vtable(), &raw const VTABLE) && data >> 32 == u64::from(runtime))
        .then_some(data as u32)
}

static VTABLE: RawWakerVTable = RawWakerVTable::new(
    |data| RawWaker::new(data, &VTABLE),
    |data| wake(data.addr() as u64),
    |data| wake(data.addr() as u64),
    |_| (),
);

const _: () = assert!(size_of::<usize>() == 8, "a waker packs two 32-bit numbers in a pointer");

fn wake(data: u64) {
    let (runtime, task) = ((data >> 32) as u32, data as u32);
    let is_here = QUEUES.try_with(|queues| {
        let queues = queues.borrow();
        let Some((_, queue)) = queues.iter().find(|(id, _)| *id == runtime) else { return false };
        queue.push(task);
        true
    });
    if is_here != Ok(true) {
        crate::real::post::wake_elsewhere(runtime, task);
    }
}
