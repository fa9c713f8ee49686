//! The system's allocator, which counts what each thread asks of it and gives back: for tests that a
//! decoder takes memory for what it was given and not for what that claims to be, and that a
//! simulation leaves nothing behind.
//!
//! A test binary chooses it: `#[global_allocator] static ALLOCATOR: Counted = Counted;`

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::thread::LocalKey;

thread_local! {
    static ASKED: Cell<u64> = const { Cell::new(0) };
    static GIVEN_BACK: Cell<u64> = const { Cell::new(0) };
}

/// The allocator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted;

/// Bytes that this thread has asked for so far, whether given back since or not. 0 for ever if the
/// program has another allocator.
pub fn asked_bytes() -> u64 {
    ASKED.get()
}

/// Bytes that this thread has asked for and not given back; what another thread gave back for it
/// still counts. 0 for ever if the program has another allocator.
pub fn held_bytes() -> u64 {
    ASKED.get().saturating_sub(GIVEN_BACK.get())
}

fn count(counter: &'static LocalKey<Cell<u64>>, bytes: usize) {
    // A thread that is ending has no counter any more.
    let _ = counter.try_with(|count| count.set(count.get().saturating_add(bytes as u64)));
}

// SAFETY: every call is handed on to the system's allocator as it is; counting allocates nothing.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(&ASKED, layout.size());
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(&GIVEN_BACK, layout.size());
        // SAFETY: as above; what this allocator gave came from the system's.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(&ASKED, layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count(&ASKED, bytes.saturating_sub(layout.size()));
        count(&GIVEN_BACK, layout.size().saturating_sub(bytes));
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, bytes) }
    }
}
