//! What client threads drive.

use std::fmt::Display;

/// A store that threads share, each of which waits for what it has asked for.
///
/// The oracle holds it to what it holds a [`KvTarget`](crate::KvTarget) to.
pub trait SharedTarget: Sync {
    /// Why an operation could not be done. The first one ends the phase.
    type Error: Display;

    /// Reads the value of `key`; `None` if it has none.
    ///
    /// # Errors
    /// What the store says.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Self::Error>;

    /// Gives `key` a value, whether or not it had one.
    ///
    /// # Errors
    /// What the store says.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Self::Error>;

    /// Takes the value of `key` away.
    ///
    /// # Errors
    /// What the store says.
    fn delete(&self, key: &[u8]) -> Result<(), Self::Error>;

    /// Hands pairs to `take` in the order of their keys, from the first at or behind `from` to the last below `until`, as they
    /// are at an instant between the call and the first of them, until `take` says that it is enough. Whatever there is to find
    /// out at the end of the range is found out before it returns.
    ///
    /// # Errors
    /// What the store says.
    fn scan(
        &self,
        from: &[u8],
        until: Option<&[u8]>,
        take: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), Self::Error>;
}

impl<T: SharedTarget> SharedTarget for &T {
    type Error = T::Error;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, T::Error> {
        (**self).get(key)
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), T::Error> {
        (**self).put(key, value)
    }

    fn delete(&self, key: &[u8]) -> Result<(), T::Error> {
        (**self).delete(key)
    }

    fn scan(
        &self,
        from: &[u8],
        until: Option<&[u8]>,
        take: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), T::Error> {
        (**self).scan(from, until, take)
    }
}
