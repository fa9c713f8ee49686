//! Sleeping and waking of the executor.
//!
//! One word records whether the executor sleeps. Another thread first stores its letter where the
//! executor looks before it sleeps, and then rings the bell; this costs a system call only if the
//! executor sleeps. The executor sleeps in the ring, which also delivers completed I/O, or without
//! a ring on the word itself (a futex).

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::thread::futex;

use super::ring::RingBell;

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// See the module's documentation.
pub(crate) struct Bell {
    state: AtomicU32,
    /// The ring, if I/O uses one.
    ring: Option<Arc<RingBell>>,
}

impl Bell {
    pub(crate) fn new(ring: Option<Arc<RingBell>>) -> Self {
        Self { state: AtomicU32::new(AWAKE), ring }
    }

    /// Wakes the executor if it sleeps or is about to.
    pub(crate) fn ring(&self) {
        // Sequentially consistent, as in `sleep`: at least one side sees the other's store, the
        // letter or the state.
        if self.state.swap(AWAKE, Ordering::SeqCst) == ASLEEP {
            if let Some(ring) = &self.ring {
                ring.wake();
            } else {
                let woken = futex::wake(&self.state, futex::Flags::PRIVATE, 1);
                woken.expect("a word of this process can be woken on");
            }
        }
    }

    /// Submits the operations queued in the ring to the kernel. For a write this takes longer than
    /// a Get holds the runtime, so call it without holding the runtime.
    pub(crate) fn submit(&self) {
        if let Some(ring) = &self.ring {
            ring.submit();
        }
    }

    /// Announces the sleep: from now on a ring wakes the executor. Letters sent before must be
    /// checked after this call.
    pub(crate) fn lie_down(&self) {
        self.state.store(ASLEEP, Ordering::SeqCst);
    }

    /// Cancels [`Self::lie_down`].
    pub(crate) fn get_up(&self) {
        self.state.store(AWAKE, Ordering::SeqCst);
    }

    /// Sleeps until a ring, the end of an I/O, or the end of `longest`. Submits the operations
    /// queued in the ring in the same system call. May return early.
    pub(crate) fn sleep(&self, longest: Option<Duration>) {
        let slept = match &self.ring {
            Some(ring) => ring.wait(longest),
            None => self.sleep_on_word(longest),
        };
        if let Err(error) = slept {
            panic!("waiting for I/O failed: {error}");
        }
        self.get_up();
    }

    fn sleep_on_word(&self, longest: Option<Duration>) -> io::Result<()> {
        let longest = longest.map(|span| {
            futex::Timespec::try_from(span).expect("a span of 64 bits of nanoseconds fits")
        });
        match futex::wait(&self.state, futex::Flags::PRIVATE, ASLEEP, longest.as_ref()) {
            // Rung before it slept, interrupted by a signal, or timed out.
            Ok(())
            | Err(
                rustix::io::Errno::AGAIN | rustix::io::Errno::INTR | rustix::io::Errno::TIMEDOUT,
            ) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
