//! What a workload drives.

use std::fmt::Display;
use std::future::Future;

use engine::Value;

/// A key-value store as its clients see it.
///
/// Implementors are handles that are cheap to clone: each client task holds one. Every method may
/// be called while earlier calls are still under way.
///
/// The oracle holds a target to this: a Get that begins after a Put has returned sees that Put or
/// a later one, and operations that overlap take effect in some order.
pub trait KvTarget: Clone + 'static {
    /// Why an operation could not be done. The first one ends the phase.
    type Error: Display;

    /// Reads the value of `key`; `None` if it has none.
    fn get(&self, key: &[u8]) -> impl Future<Output = Result<Option<Value>, Self::Error>>;

    /// Gives `key` a value, whether or not it had one.
    fn put(&self, key: &[u8], value: Value) -> impl Future<Output = Result<(), Self::Error>>;

    /// Takes the value of `key` away. Whether there was one is told as far as the store knows.
    fn delete(&self, key: &[u8]) -> impl Future<Output = Result<bool, Self::Error>>;
}
