//! What a store has to be able to do to be compared.

use std::time::Duration;

use workload::SharedTarget;

use crate::child::Setup;

/// A store. Its writes by [`SharedTarget`] are acknowledged before they are durable, as its own fastest way has it, and are durable
/// a second later at most or when its memtable is flushed; README.md says which.
pub trait Peer: SharedTarget<Error = String> + Sized {
    /// Flushes what is in memory, and waits until no background work is left, as far as the store tells.
    fn settle(&self);

    /// Puts these pairs; they are durable when it returns.
    fn put_durably(&self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<(), String>;

    /// The store as it is best set for reads beside this many bytes of writes a second; it may be opened anew for it.
    fn for_writes(self, _setup: &Setup, _bytes_per_second: u64) -> anyhow::Result<Self> {
        Ok(self)
    }

    /// Why the store cannot write beside reads or scan, if it cannot.
    fn reads_only(&self) -> bool {
        false
    }
}

/// Waits until a store has had no background work for a while: between two compactions there may be a moment without any.
pub fn wait_for_quiet(is_quiet: impl Fn() -> bool) {
    let mut quiet = 0;
    while quiet < 5 {
        quiet = if is_quiet() { quiet + 1 } else { 0 };
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// An error in words.
pub fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}
