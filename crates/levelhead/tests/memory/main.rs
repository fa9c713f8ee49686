//! Memory of a process with a store, by the allocator of the system: the other tests have one of their own.

mod memory;
#[path = "../levelhead/scratch.rs"]
#[allow(dead_code, reason = "the other tests need the rest")]
mod scratch;
