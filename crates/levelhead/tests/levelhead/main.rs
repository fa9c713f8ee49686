//! Integration tests of the embedded store, on real files.

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

/// The test file system (`faultfs`) is served by this process. With the system's allocator, a
/// thread that waits for the file system inside an allocation would keep the allocator's lock, and
/// the serving thread could not allocate (decision 57). This allocator holds no such lock.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
