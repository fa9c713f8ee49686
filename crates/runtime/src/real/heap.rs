//! What is free in the heap and is kept there by the allocator of the system.
//!
//! glibc has a heap for nearly each thread, and what was freed goes back to the one that it came from, whoever frees it: the index that
//! one thread has read while a store was opened, and that others replace, leaves a heap that nobody allocates from any more. So a process
//! takes what each of its threads once had in use, together, and not what is in use. To be asked for it is the one thing that makes the
//! allocator give that back.
//!
//! Other allocators give back by themselves, or never: nothing happens with them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::Nanos;

/// Bytes that are freed before it is worth a search of all heaps.
const ENOUGH: u64 = 16 << 20;
/// Whoever allocates from a heap that is being searched waits: they are let alone so many times as long as that took.
const RESTS: u64 = 4;

/// What was freed since heaps gave back, and when they did. Shared with the thread that has them do so.
#[derive(Default)]
pub(crate) struct Heap {
    freed: AtomicU64,
    is_giving: AtomicBool,
    rests_until: AtomicU64,
}

impl Heap {
    /// So many bytes were freed. Whether heaps are to give back now; then [`Self::give_back`] is to follow.
    pub(crate) fn note_freed(&self, bytes: u64, now: Nanos) -> bool {
        let freed = self.freed.load(Ordering::Relaxed).saturating_add(bytes);
        self.freed.store(freed, Ordering::Relaxed);
        let rests = self.rests_until.load(Ordering::Relaxed) > now.0;
        if !IS_ASKED || freed < ENOUGH || rests || self.is_giving.swap(true, Ordering::Relaxed) {
            return false;
        }
        self.freed.store(0, Ordering::Relaxed);
        true
    }

    /// Has all heaps of the process give back what is free in them, in whole pages of memory. Cost: a call to the system for each piece of
    /// that, and that whoever touches a page again is given a new one.
    pub(crate) fn give_back(&self, now: impl Fn() -> Nanos) {
        let begun = now();
        trim();
        let ended = now();
        let rest = RESTS * ended.saturating_since(begun).0;
        self.rests_until.store(ended.0 + rest, Ordering::Relaxed);
        self.is_giving.store(false, Ordering::Relaxed);
    }
}

/// Whether there is an allocator that has to be asked.
const IS_ASKED: bool = cfg!(all(target_os = "linux", target_env = "gnu"));

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn trim() {
    // SAFETY: it is declared as glibc's manual has it, and may be called at any time by any thread.
    unsafe extern "C" {
        /// Of glibc (`man 3 malloc_trim`): `pad` is what is left free at the end of the main heap, in bytes.
        safe fn malloc_trim(pad: usize) -> std::ffi::c_int;
    }
    // It says whether it had anything, which matters to nobody.
    let _ = malloc_trim(0);
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn trim() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heaps_give_back_when_enough_was_freed_and_rest_as_long_as_that_took() {
        let heap = Heap::default();
        assert!(!heap.note_freed(ENOUGH - 1, Nanos(0)));
        assert_eq!(heap.note_freed(1, Nanos(0)), IS_ASKED);
        assert!(!heap.note_freed(u64::MAX, Nanos(0)), "they do already");
        let clock = AtomicU64::new(100);
        heap.give_back(|| Nanos(clock.fetch_add(10, Ordering::Relaxed)));
        let until = Nanos(110 + RESTS * 10);
        assert!(!heap.note_freed(1, Nanos(until.0 - 1)), "they rest");
        assert_eq!(heap.note_freed(1, until), IS_ASKED, "what was freed meanwhile counts");
    }
}
