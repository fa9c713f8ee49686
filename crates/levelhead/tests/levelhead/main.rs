//! The store as people embed it, on real files.

mod away;
mod batches;
mod care;
mod compact;
mod copies;
mod damage;
mod drives;
mod ends;
mod everything;
mod extremes;
mod failing;
mod failures;
mod flips;
mod forks;
mod growing;
mod inline;
mod kills;
mod members;
mod model;
mod other_memory;
mod power;
mod ranges;
mod remains;
mod replaced;
mod room;
mod salvage;
mod scratch;
mod settled;
mod strangers;
mod threads;
mod turns;
mod windows;

/// The file system of tests (`faultfs`) answers from this process. A thread that waits for it within an allocation would keep a lock
/// of the system's allocator from the one that is to answer (decision 57); this one has none that allocations hold.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
