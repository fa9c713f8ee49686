//! The memory of a process with a store under the system's allocator; the other tests use another
//! allocator.

mod memory;
#[path = "../levelhead/scratch.rs"]
#[allow(dead_code, reason = "the other tests need the rest")]
mod scratch;
