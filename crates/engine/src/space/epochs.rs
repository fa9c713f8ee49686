//! Epochs: detect when every reader that may still follow an old pointer has finished.
//!
//! A reader holds a guard across its flash reads. Pages that a change makes unreachable are
//! released once every reader that began before the change has finished. Cost: two counter updates
//! per read.
//!
//! A reader on a thread outside of the runtime cannot touch the counters. When it finishes, it puts
//! its epoch into a list under a lock, and the next call inside the runtime takes the list over.
//! Only a task in `Epochs::drain` has to be woken for that.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

use runtime::{Mutex, Notify};

/// Hands out guards and waits for old guards to be dropped.
#[derive(Clone, Default)]
pub struct Epochs {
    shared: Rc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// The epoch of the first counter.
    oldest: Cell<u64>,
    /// The number of readers of each epoch, from `oldest` to the current one.
    readers: RefCell<VecDeque<u32>>,
    drained: Notify,
    /// Readers outside of the runtime whose end was not taken over yet.
    outside: Cell<usize>,
    left: Arc<Mutex<Left>>,
}

/// The results of readers outside of the runtime, to be taken over by the runtime.
#[derive(Default)]
struct Left {
    /// The epochs of readers that have finished.
    epochs: Vec<u64>,
    /// Wakers of the tasks that wait for these readers.
    waiters: Vec<Waker>,
}

/// The guard of a reader.
pub struct Guard {
    shared: Rc<Shared>,
    epoch: u64,
}

/// The guard of a reader outside of the runtime; may be dropped on any thread.
pub(crate) struct Outside {
    left: Arc<Mutex<Left>>,
    epoch: u64,
}

impl Epochs {
    /// Begins a read.
    pub fn enter(&self) -> Guard {
        Guard { epoch: self.shared.begin(), shared: Rc::clone(&self.shared) }
    }

    /// Begins a read that runs outside of the runtime.
    pub(crate) fn enter_outside(&self) -> Outside {
        let shared = &self.shared;
        shared.take_back(None);
        shared.outside.set(shared.outside.get() + 1);
        Outside { epoch: shared.begin(), left: Arc::clone(&shared.left) }
    }

    /// Whether no reader is active.
    pub fn is_quiet(&self) -> bool {
        self.shared.take_back(None);
        self.shared.readers.borrow().iter().all(|readers| *readers == 0)
    }

    /// Waits until every reader that has begun before the call has finished.
    pub(crate) async fn drain(&self) {
        let shared = &self.shared;
        let current = shared.oldest.get() + shared.readers.borrow().len().max(1) as u64 - 1;
        if shared.readers.borrow().is_empty() {
            shared.readers.borrow_mut().push_back(0);
        }
        shared.readers.borrow_mut().push_back(0);
        shared.retire();
        let mut drained = pin!(shared.drained.wait_until(|| shared.oldest.get() > current));
        poll_fn(|cx| {
            shared.take_back(Some(cx.waker()));
            drained.as_mut().poll(cx)
        })
        .await;
    }
}

impl Shared {
    /// Adds a reader to the current epoch and returns that epoch.
    fn begin(&self) -> u64 {
        let mut readers = self.readers.borrow_mut();
        if readers.is_empty() {
            readers.push_back(0);
        }
        *readers.back_mut().expect("it has an epoch now") += 1;
        self.oldest.get() + readers.len() as u64 - 1
    }

    /// Removes a reader of `epoch`.
    fn end(&self, epoch: u64) {
        let index = (epoch - self.oldest.get()) as usize;
        let is_gone = {
            let mut readers = self.readers.borrow_mut();
            readers[index] -= 1;
            index == 0 && readers[0] == 0 && readers.len() > 1
        };
        if is_gone {
            self.retire();
        }
    }

    /// Takes over the readers outside that have finished. `waiter` is woken when the next one
    /// finishes.
    fn take_back(&self, waiter: Option<&Waker>) {
        if self.outside.get() == 0 {
            return;
        }
        let mut left = self.left.lock();
        let epochs = std::mem::take(&mut left.epochs);
        self.outside.set(self.outside.get() - epochs.len());
        if let Some(waiter) = waiter.filter(|_| self.outside.get() > 0)
            && !left.waiters.iter().any(|other| other.will_wake(waiter))
        {
            left.waiters.push(waiter.clone());
        }
        drop(left);
        for epoch in epochs {
            self.end(epoch);
        }
    }

    /// Removes leading epochs without readers, but never the current one.
    fn retire(&self) {
        let mut readers = self.readers.borrow_mut();
        let mut has_retired = false;
        while readers.len() > 1 && readers[0] == 0 {
            readers.pop_front();
            self.oldest.set(self.oldest.get() + 1);
            has_retired = true;
        }
        drop(readers);
        if has_retired {
            self.drained.notify_all();
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.shared.end(self.epoch);
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let mut left = self.left.lock();
        left.epochs.push(self.epoch);
        let waiters = std::mem::take(&mut left.waiters);
        drop(left);
        waiters.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::{Nanos, RealOptions, Runtime};

    #[test]
    fn draining_waits_for_earlier_readers_only() {
        let rt = Runtime::new(1);
        let handle = rt.handle();
        let epochs = Epochs::default();
        rt.block_on(async move {
            let early = epochs.enter();
            let draining = epochs.clone();
            let drained = handle.spawn("drain", async move { draining.drain().await });
            handle.sleep(Nanos(1)).await;
            let late = epochs.enter();
            assert!(!drained.is_finished());
            drop(early);
            handle.sleep(Nanos(1)).await;
            assert!(drained.is_finished(), "a reader that began later does not count");
            epochs.clone().drain_is_pending_while(&late, &handle).await;
            drop(late);
            epochs.drain().await;
        });
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a reader is outside of the runtime")]
    fn draining_waits_for_a_reader_on_another_thread() {
        let rt = Runtime::real(RealOptions::default()).expect("a runtime");
        let handle = rt.handle();
        let epochs = Epochs::default();
        rt.block_on(async move {
            let (reader, later) = (epochs.enter_outside(), epochs.enter_outside());
            let draining = epochs.clone();
            let drained = handle.spawn("drain", async move { draining.drain().await });
            handle.sleep(Nanos::from_millis(1)).await;
            assert!(!drained.is_finished() && !epochs.is_quiet());
            let thread = std::thread::spawn(move || drop((later, reader)));
            drained.await;
            thread.join().expect("it only leaves");
            assert!(epochs.is_quiet());
            // No task waits: the next call takes over the epochs of readers that have finished.
            drop(epochs.enter_outside());
            epochs.drain().await;
            assert_eq!(epochs.shared.outside.get(), 0);
        });
    }

    impl Epochs {
        async fn drain_is_pending_while(self, _guard: &Guard, handle: &runtime::Handle) {
            let drained = handle.spawn("drain again", async move { self.drain().await });
            handle.sleep(Nanos(5)).await;
            assert!(!drained.is_finished());
        }
    }
}
