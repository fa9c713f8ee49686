//! Free heap memory that the system's allocator keeps.
//!
//! glibc has a heap for nearly each thread, and freed memory returns to its own heap, whichever
//! thread frees it. For example, one thread reads the index while a store is opened, and other
//! threads replace that index later: this leaves a heap from which no thread allocates any more. So
//! a process uses the sum of the peak memory of its threads, and not the memory in use. The
//! allocator returns the free memory only when asked to.
//!
//! Other allocators return memory by themselves, or never; with them this module does nothing.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::Nanos;

/// Freed bytes that justify a search of all heaps.
const ENOUGH: u64 = 16 << 20;
/// The length of the pause after a search, as a multiple of its duration. Allocations from a heap
/// that is being searched have to wait.
const RESTS: u64 = 4;

/// The bytes freed since the last search, and the end of the pause. Shared with the thread that
/// searches.
#[derive(Default)]
pub(crate) struct Heap {
    freed: AtomicU64,
    is_giving: AtomicBool,
    rests_until: AtomicU64,
}

impl Heap {
    /// Records freed bytes. Returns whether the caller must now run [`Self::give_back`].
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

    /// Returns the free memory of all heaps of the process to the system, in whole pages. Cost: a
    /// system call for each piece, and a page fault when a page is used again.
    pub(crate) fn give_back(&self, now: impl Fn() -> Nanos) {
        let begun = now();
        trim();
        let ended = now();
        let rest = RESTS * ended.saturating_since(begun).0;
        self.rests_until.store(ended.0 + rest, Ordering::Relaxed);
        self.is_giving.store(false, Ordering::Relaxed);
    }
}

/// Whether the allocator has to be asked to return memory.
const IS_ASKED: bool = cfg!(all(target_os = "linux", target_env = "gnu"));

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn trim() {
    // SAFETY: the declaration is that of glibc's manual; the function may be called at any time on
    // any thread.
    unsafe extern "C" {
        /// From glibc (`man 3 malloc_trim`): `pad` is the free space to keep at the end of the main
        /// heap, in bytes.
        safe fn malloc_trim(pad: usize) -> std::ffi::c_int;
    }
    // Ignores whether any memory was returned.
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
