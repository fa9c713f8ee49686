//! Epochs: when has everybody who could still follow an old pointer gone?
//!
//! A reader holds a guard across its flash reads. What a change makes unreachable is released once
//! every reader that began before the change has left. Cost: two counter updates per read.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use runtime::Notify;

/// Hands out guards and tells when old ones are gone.
#[derive(Clone, Default)]
pub struct Epochs {
    shared: Rc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Epoch of the first counter.
    oldest: Cell<u64>,
    /// Readers by epoch, from `oldest` to the current one.
    readers: RefCell<VecDeque<u32>>,
    drained: Notify,
}

/// A reader is under way.
pub struct Guard {
    shared: Rc<Shared>,
    epoch: u64,
}

impl Epochs {
    /// Begins a read.
    pub fn enter(&self) -> Guard {
        let mut readers = self.shared.readers.borrow_mut();
        if readers.is_empty() {
            readers.push_back(0);
        }
        *readers.back_mut().expect("it has an epoch now") += 1;
        let epoch = self.shared.oldest.get() + readers.len() as u64 - 1;
        Guard { shared: Rc::clone(&self.shared), epoch }
    }

    /// Whether no reader is under way.
    pub fn is_quiet(&self) -> bool {
        self.shared.readers.borrow().iter().all(|readers| *readers == 0)
    }

    /// Waits until every reader that has begun by now is gone.
    pub(crate) async fn drain(&self) {
        let shared = &self.shared;
        let current = shared.oldest.get() + shared.readers.borrow().len().max(1) as u64 - 1;
        if shared.readers.borrow().is_empty() {
            shared.readers.borrow_mut().push_back(0);
        }
        shared.readers.borrow_mut().push_back(0);
        shared.retire();
        shared.drained.wait_until(|| shared.oldest.get() > current).await;
    }
}

impl Shared {
    /// Forgets leading epochs without readers, but never the current one.
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
        let index = (self.epoch - self.shared.oldest.get()) as usize;
        let is_gone = {
            let mut readers = self.shared.readers.borrow_mut();
            readers[index] -= 1;
            index == 0 && readers[0] == 0 && readers.len() > 1
        };
        if is_gone {
            self.shared.retire();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::{Nanos, Runtime};

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

    impl Epochs {
        async fn drain_is_pending_while(self, _guard: &Guard, handle: &runtime::Handle) {
            let drained = handle.spawn("drain again", async move { self.drain().await });
            handle.sleep(Nanos(5)).await;
            assert!(!drained.is_finished());
        }
    }
}
