//! The system's allocator with counters of each thread's allocations and deallocations. For tests
//! that a decoder allocates memory in proportion to its input, whatever length the input claims,
//! and that a simulation frees all of its memory.
//!
//! A test binary selects it: `#[global_allocator] static ALLOCATOR: Counted = Counted;`

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::thread::LocalKey;

thread_local! {
    static ASKED: Cell<u64> = const { Cell::new(0) };
    static GIVEN_BACK: Cell<u64> = const { Cell::new(0) };
}

/// The counting allocator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted;

/// Returns the bytes that this thread has allocated so far, freed or not. Always 0 if the program
/// uses another allocator.
pub fn asked_bytes() -> u64 {
    ASKED.get()
}

/// Returns the bytes that this thread has allocated and not freed. Memory that another thread freed
/// still counts. Always 0 if the program uses another allocator.
pub fn held_bytes() -> u64 {
    ASKED.get().saturating_sub(GIVEN_BACK.get())
}

fn count(counter: &'static LocalKey<Cell<u64>>, bytes: usize) {
    // A thread that is ending no longer has a counter.
    let _ = counter.try_with(|count| count.set(count.get().saturating_add(bytes as u64)));
}

// SAFETY: every call is forwarded unchanged to the system's allocator; counting allocates nothing.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(&ASKED, layout.size());
        // SAFETY: the caller's guarantees are those that the system's allocator requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(&GIVEN_BACK, layout.size());
        // SAFETY: as above; memory of this allocator comes from the system's.
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
