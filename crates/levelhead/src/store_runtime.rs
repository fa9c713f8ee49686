//! The runtime of a store: its options, and the thread that drives its background work.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use runtime::{IoChoice, RealOptions, Shared};

use crate::error::Error;
use crate::options::{Io, Options};

/// Returns the options of the store's runtime.
pub(crate) fn real_options(options: &Options) -> RealOptions {
    let io = match options.io {
        Io::Probe => IoChoice::Probe,
        Io::Ring => IoChoice::Ring,
        Io::Threads => IoChoice::Threads,
    };
    RealOptions { seed: seed(), io, trims_heap: options.trim_heap, ..RealOptions::default() }
}

/// Spawns the thread that runs background work.
pub(crate) fn drive<T: 'static>(shared: &Arc<Shared<T>>) -> Result<JoinHandle<()>, Error> {
    let driven = Arc::clone(shared);
    let thread = thread::Builder::new().name("levelhead".to_owned());
    let spawned = thread.spawn(move || driven.drive());
    spawned.map_err(|error| {
        Error::system(format_args!("no thread for background work: {error}"), error.kind())
    })
}

/// Returns a seed that distinguishes newly created stores from each other. It has no other effect.
pub(crate) fn seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}
