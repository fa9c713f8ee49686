//! The interface of a store under load.

use std::convert::Infallible;
use std::fmt::Display;
use std::future::Future;
use std::marker::PhantomData;

use engine::Value;

/// A key-value store as its clients see it.
///
/// Implementations are handles that are cheap to clone: each client task has one. Every method may
/// be called while earlier calls are still in flight.
///
/// The oracle requires of a target: a Get that begins after a Put has returned sees that Put or a
/// later one, and overlapping operations take effect in some order. Creating an iterator is such an
/// operation; its effect is the snapshot.
pub trait KvTarget: Clone + 'static {
    /// Why an operation failed. The first error ends the phase.
    type Error: Display;

    /// Reads keys in order; [`NoIterators`] if the store cannot.
    type Iterator: KvIterator<Error = Self::Error>;

    /// Reads the value of `key`; `None` if it has none.
    fn get(&self, key: &[u8]) -> impl Future<Output = Result<Option<Value>, Self::Error>>;

    /// Sets the value of `key`, whether or not it had one.
    fn put(&self, key: &[u8], value: Value) -> impl Future<Output = Result<(), Self::Error>>;

    /// Removes the value of `key`. Returns whether it had one, as far as the store knows.
    fn delete(&self, key: &[u8]) -> impl Future<Output = Result<bool, Self::Error>>;

    /// Returns why the store has no iterators, as a sentence for the user such as "this design
    /// keeps no key order"; `None` if it has. Sessions ask before they start.
    fn why_no_iterators(&self) -> Option<&'static str>;

    /// Creates an iterator over the store as it was at some instant of this call, independent of
    /// later writes. It does not return keys from `upper_bound` on.
    fn create_iterator(
        &self,
        upper_bound: Option<&[u8]>,
    ) -> impl Future<Output = Result<Self::Iterator, Self::Error>>;
}

/// A pair returned by an iterator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pair {
    /// The key.
    pub key: Box<[u8]>,
    /// Its value in the snapshot.
    pub value: Value,
}

/// Reads a snapshot in byte order of the keys.
///
/// The client calls one method at a time, [`Self::seek`] first, and [`Self::destroy`] last, also
/// after an error. The oracle requires of an iterator: it returns every pair of the snapshot from
/// the sought key up to the bound, each once, and no other.
pub trait KvIterator {
    /// Why a pair could not be read.
    type Error: Display;

    /// Moves to the first pair whose key is not below `target`, and reads it; `None` if no such
    /// pair exists.
    fn seek(&mut self, target: &[u8]) -> impl Future<Output = Result<Option<Pair>, Self::Error>>;

    /// Moves to the next pair, and reads it; `None` at the end.
    fn next(&mut self) -> impl Future<Output = Result<Option<Pair>, Self::Error>>;

    /// Reads the next `count` pairs, at least one, as one request. Fewer mean the end.
    fn next_many(&mut self, count: usize) -> impl Future<Output = Result<Vec<Pair>, Self::Error>>;

    /// Releases the snapshot.
    fn destroy(self) -> impl Future<Output = Result<(), Self::Error>>;
}

/// The iterator type of targets without iterators: it has no values.
#[derive(Debug)]
pub struct NoIterators<E> {
    never: Infallible,
    error: PhantomData<E>,
}

impl<E: Display> KvIterator for NoIterators<E> {
    type Error = E;

    async fn seek(&mut self, _target: &[u8]) -> Result<Option<Pair>, E> {
        match self.never {}
    }

    async fn next(&mut self) -> Result<Option<Pair>, E> {
        match self.never {}
    }

    async fn next_many(&mut self, _count: usize) -> Result<Vec<Pair>, E> {
        match self.never {}
    }

    async fn destroy(self) -> Result<(), E> {
        match self.never {}
    }
}
