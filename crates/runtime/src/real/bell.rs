//! How the executor sleeps, and how others wake it.
//!
//! One word says whether it sleeps: whoever has something for it leaves that where it looks before it goes to
//! sleep, then rings, which costs a call to the system only if it does sleep. What it sleeps in is the ring,
//! which also brings the ends of its I/O, or where there is none the word itself (a futex).

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
    /// Where I/O goes through a ring: that one.
    ring: Option<Arc<RingBell>>,
}

impl Bell {
    pub(crate) fn new(ring: Option<Arc<RingBell>>) -> Self {
        Self { state: AtomicU32::new(AWAKE), ring }
    }

    /// Wakes the executor if it sleeps, or is about to.
    pub(crate) fn ring(&self) {
        // Sequentially consistent, as in `sleep`: of "there is something" and "it sleeps" one side sees the other's.
        if self.state.swap(AWAKE, Ordering::SeqCst) == ASLEEP {
            if let Some(ring) = &self.ring {
                ring.wake();
            } else {
                let woken = futex::wake(&self.state, futex::Flags::PRIVATE, 1);
                woken.expect("a word of this process can be woken on");
            }
        }
    }

    /// Hands what is queued in the ring to the kernel, which takes a write longer than a Get takes of the runtime: nobody has to hold that
    /// meanwhile.
    pub(crate) fn submit(&self) {
        if let Some(ring) = &self.ring {
            ring.submit();
        }
    }

    /// From now on whoever rings wakes. What was left before that has to be looked for after this.
    pub(crate) fn lie_down(&self) {
        self.state.store(ASLEEP, Ordering::SeqCst);
    }

    /// Takes [`Self::lie_down`] back.
    pub(crate) fn get_up(&self) {
        self.state.store(AWAKE, Ordering::SeqCst);
    }

    /// Sleeps until somebody rings, I/O of the ring has ended, or `longest` is over. Hands what is queued in
    /// the ring to the kernel in the same call. May end early.
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
            // Woken before it slept; disturbed by a signal; the time is over.
            Ok(())
            | Err(
                rustix::io::Errno::AGAIN | rustix::io::Errno::INTR | rustix::io::Errno::TIMEDOUT,
            ) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
