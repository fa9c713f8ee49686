//! The interface of a store driven by client threads.

use std::fmt::Display;

/// A store shared by threads, with blocking calls.
///
/// The oracle requires the same as of a [`KvTarget`](crate::KvTarget).
pub trait SharedTarget: Sync {
    /// Why an operation failed. The first error ends the phase.
    type Error: Display;

    /// Reads the value of `key`; `None` if it has none.
    ///
    /// # Errors
    /// Returns the error of the store.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Self::Error>;

    /// Sets the value of `key`, whether or not it had one.
    ///
    /// # Errors
    /// Returns the error of the store.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Self::Error>;

    /// Removes the value of `key`.
    ///
    /// # Errors
    /// Returns the error of the store.
    fn delete(&self, key: &[u8]) -> Result<(), Self::Error>;

    /// Passes pairs to `take` in key order, from the first at or after `from` to the last below
    /// `until`, as of one instant between the call and the first pair, until `take` returns false.
    /// Errors up to the end of the range are detected before this returns.
    ///
    /// # Errors
    /// Returns the error of the store.
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
