//! What a store has to be able to do to be compared.

use workload::SharedTarget;

/// A store. Its writes by [`SharedTarget`] are acknowledged before they are durable, as its own fastest way has it, and are durable
/// a second later at most or when its memtable is flushed; README.md says which.
pub trait Peer: SharedTarget<Error = String> {
    /// Flushes what is in memory, and waits until no background work is left, as far as the store tells.
    fn settle(&self);

    /// Puts these pairs; they are durable when it returns.
    fn put_durably(&self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Result<(), String>;

    /// Why the store cannot write beside reads or scan, if it cannot.
    fn reads_only(&self) -> bool {
        false
    }
}

/// An error in words.
pub fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}
