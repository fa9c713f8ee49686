//! The methods of a handle: spawning, sleeping, reading the clock.

use std::future::Future;
use std::rc::Rc;
use std::task::{Poll, Waker};

use super::{BoxedTask, Handle, Slot};
use crate::join::{JoinHandle, JoinState};
use crate::timer::{Event, Sleep, Target};
use crate::wheel::Ticket;
use crate::{Nanos, Rng, waker};

impl Handle {
    /// Returns the current instant.
    pub fn now(&self) -> Nanos {
        self.inner.now.get()
    }

    /// Returns the seed of the runtime.
    pub fn seed(&self) -> u64 {
        self.inner.seed
    }

    /// Returns a separate random stream for `label`. The same label gives the same stream.
    pub fn rng(&self, label: &str) -> Rng {
        Rng::derive(self.inner.seed, label)
    }

    /// Starts a task. `name` appears in messages about hangs and deadlocks.
    ///
    /// Dropping the [`JoinHandle`] leaves the task running.
    pub fn spawn<T: 'static>(
        &self,
        name: &'static str,
        future: impl Future<Output = T> + 'static,
    ) -> JoinHandle<T> {
        let state = Rc::new(JoinState::default());
        let for_task = Rc::clone(&state);
        let boxed: BoxedTask = Box::pin(async move { for_task.finish(future.await) });
        let slot = Slot { future: Some(boxed), name, ..Slot::default() };
        let mut tasks = self.inner.tasks.borrow_mut();
        let task = tasks.free.pop().unwrap_or(tasks.slots.len() as u32);
        if task as usize == tasks.slots.len() {
            tasks.slots.push(slot);
        } else {
            tasks.slots[task as usize] = slot;
        }
        drop(tasks);
        self.inner.ready.push(task);
        JoinHandle::new(state, self.clone(), task)
    }

    /// Waits for `span`.
    pub fn sleep(&self, span: Nanos) -> Sleep {
        self.sleep_until(self.now() + span)
    }

    /// Waits until the instant `at`. Does not wait if that has passed.
    pub fn sleep_until(&self, at: Nanos) -> Sleep {
        Sleep::new(self.clone(), at)
    }

    /// Lets every other ready task run once before this task continues.
    pub async fn yield_now(&self) {
        let mut yielded = false;
        std::future::poll_fn(|cx| {
            if std::mem::replace(&mut yielded, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// Yields if this turn of the loop has already taken long. Call it between steps of
    /// processor-heavy work. Does nothing in virtual time, where no task waits for the processor.
    pub async fn give_way(&self) {
        let real = self.inner.real.as_ref();
        if real.is_some_and(|real| real.turn_is_long(self.now())) {
            self.yield_now().await;
        }
    }

    /// Fires `event` with `token` at the instant `at`, which must not have passed.
    pub fn fire_at(&self, at: Nanos, event: Rc<dyn Event>, token: u64) {
        assert!(at >= self.now(), "an event was armed for {at}, but it is {} already", self.now());
        let _armed = self.arm(at, Target::Fire(event, token));
    }

    /// Returns the name of the task that `waker` wakes; an empty string if it is not a task of this
    /// runtime.
    pub(crate) fn name_of(&self, waker: &Waker) -> &'static str {
        let tasks = self.inner.tasks.borrow();
        let task = waker::task_of(waker, self.inner.id);
        task.and_then(|task| tasks.slots.get(task as usize)).map_or("", |slot| slot.name)
    }

    /// Wakes the task of `waker`. Faster than [`Waker::wake`], which must first find the runtime.
    pub fn wake(&self, waker: Waker) {
        match waker::task_of(&waker, self.inner.id) {
            Some(task) => self.inner.ready.push(task),
            None => waker.wake(),
        }
    }

    fn arm(&self, at: Nanos, target: Target) -> Ticket {
        self.inner.timers.borrow_mut().enter(at.0, target)
    }

    /// Arms a timer that wakes the task of `waker`.
    pub(crate) fn arm_for(&self, at: Nanos, waker: &Waker) -> Ticket {
        let target = match waker::task_of(waker, self.inner.id) {
            Some(task) => Target::Task(task),
            None => Target::Wake(waker.clone()),
        };
        self.arm(at, target)
    }

    pub(crate) fn disarm(&self, armed: Ticket) {
        // A separate statement, because dropping the target may disarm other timers.
        let cancelled = self.inner.timers.borrow_mut().cancel(armed);
        drop(cancelled);
    }

    /// Drops a task wherever it is. A task that is being polled is dropped when the poll returns.
    pub(crate) fn abort(&self, task: u32) {
        let mut tasks = self.inner.tasks.borrow_mut();
        let Some(slot) = tasks.slots.get_mut(task as usize) else {
            return; // The runtime has ended, and every task with it.
        };
        let Some(future) = slot.future.take() else {
            slot.is_aborted = true;
            return;
        };
        tasks.free.push(task);
        drop(tasks); // The members of the future may spawn or wake tasks when dropped.
        drop(future);
    }

    /// Returns a hash of all steps so far. Equal hashes mean equal runs.
    pub fn trace_hash(&self) -> u64 {
        self.inner.trace.get()
    }

    /// Returns the number of task polls and device events so far.
    pub fn steps(&self) -> u64 {
        self.inner.steps.get()
    }
}
