//! The system's allocator, which counts what each thread asks of it: for tests that a decoder takes
//! memory for what it was given, and not for what that claims to be.
//!
//! A test binary chooses it: `#[global_allocator] static ALLOCATOR: Counted = Counted;`

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ASKED: Cell<u64> = const { Cell::new(0) };
}

/// The allocator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted;

/// Bytes that this thread has asked for so far, whether given back since or not. 0 for ever if the
/// program has another allocator.
pub fn asked_bytes() -> u64 {
    ASKED.get()
}

fn count(bytes: usize) {
    // A thread that is ending has no counter any more.
    let _ = ASKED.try_with(|asked| asked.set(asked.get().saturating_add(bytes as u64)));
}

// SAFETY: every call is handed on to the system's allocator as it is; counting allocates nothing.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above; what this allocator gave came from the system's.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count(bytes.saturating_sub(layout.size()));
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, bytes) }
    }
}
