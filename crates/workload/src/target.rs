//! What a workload drives.

use std::convert::Infallible;
use std::fmt::Display;
use std::future::Future;
use std::marker::PhantomData;

use pages::Value;

/// A key-value store as its clients see it.
///
/// Implementors are handles that are cheap to clone: each client task holds one. Every method may
/// be called while earlier calls are still under way.
///
/// The oracle holds a target to this: a Get that begins after a Put has returned sees that Put or
/// a later one, and operations that overlap take effect in some order. Making an iterator is an
/// operation like these; what it takes effect on is the snapshot.
pub trait KvTarget: Clone + 'static {
    /// Why an operation could not be done. The first one ends the phase.
    type Error: Display;

    /// What reads keys in order; [`NoIterators`] where nothing can.
    type Iterator: KvIterator<Error = Self::Error>;

    /// Reads the value of `key`; `None` if it has none.
    fn get(&self, key: &[u8]) -> impl Future<Output = Result<Option<Value>, Self::Error>>;

    /// Gives `key` a value, whether or not it had one.
    fn put(&self, key: &[u8], value: Value) -> impl Future<Output = Result<(), Self::Error>>;

    /// Takes the value of `key` away. Whether there was one is told as far as the store knows.
    fn delete(&self, key: &[u8]) -> impl Future<Output = Result<bool, Self::Error>>;

    /// Why there are no iterators, as a sentence for the user such as "this design keeps no key
    /// order"; `None` if there are. Sessions ask before they start.
    fn why_no_iterators(&self) -> Option<&'static str>;

    /// Makes an iterator, which sees the store as it was at some instant of this call, whatever is
    /// written afterwards. Keys from `upper_bound` on do not exist for it.
    fn create_iterator(
        &self,
        upper_bound: Option<&[u8]>,
    ) -> impl Future<Output = Result<Self::Iterator, Self::Error>>;
}

/// A pair that an iterator has come to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pair {
    /// The key.
    pub key: Box<[u8]>,
    /// Its value in the snapshot.
    pub value: Value,
}

/// Reads a snapshot in the order of the keys' bytes.
///
/// The client calls one method at a time, [`Self::seek`] first, and [`Self::destroy`] last, also
/// after an error. The oracle holds an iterator to this: it gives every pair of the snapshot from
/// the key sought up to the bound, each once, and no other.
pub trait KvIterator {
    /// Why a pair could not be had.
    type Error: Display;

    /// Goes to the first pair whose key is not below `target`, and reads it; `None` if there is
    /// none.
    fn seek(&mut self, target: &[u8]) -> impl Future<Output = Result<Option<Pair>, Self::Error>>;

    /// Goes to the next pair, and reads it; `None` at the end.
    fn next(&mut self) -> impl Future<Output = Result<Option<Pair>, Self::Error>>;

    /// Reads the next `count` pairs, at least one, as one request. Fewer mean the end.
    fn next_many(&mut self, count: usize) -> impl Future<Output = Result<Vec<Pair>, Self::Error>>;

    /// Gives back what the snapshot holds on to.
    fn destroy(self) -> impl Future<Output = Result<(), Self::Error>>;
}

/// The iterator of targets that have none: there is no such value.
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
