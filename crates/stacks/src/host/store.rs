//! The store: an index on a medium, with the costs of its operations on the host.

use std::cell::RefCell;
use std::rc::Rc;

use engine::{
    Cpu, EngineError, EngineIterator, LogSync, Medium, OpenError, Planted, Step, StoreId,
    Surroundings, Value, WriteOptions,
};
use runtime::{Cores, Handle, Nanos};

use super::get_times::GetTimes;
use super::journal::Media;
use super::profile::HostProfile;
use crate::design::{Index, IndexOptions, IndexSetup, either};

/// The setup of a store.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The index and its options.
    pub index: IndexOptions,
    /// Key length that the index is sized for, in bytes.
    pub expected_key_bytes: u32,
    /// Value length that the index is sized for, in bytes.
    pub expected_value_bytes: u32,
    /// Deliberate bugs, for tests of the tests.
    pub planted: Planted,
    /// The identity of a new store.
    pub id: StoreId,
}

/// A store of a host. Clones are handles to the same store.
pub struct HostStore<M: Medium> {
    inner: Rc<Inner<M>>,
}

struct Inner<M: Medium> {
    index: Index<M>,
    /// Processor time of operations in addition to that charged by the index.
    get: Nanos,
    put: Nanos,
    next: Nanos,
    handle: Handle,
    get_times: RefCell<GetTimes>,
}

impl<M: Medium> Clone for HostStore<M> {
    fn clone(&self) -> Self {
        Self { inner: Rc::clone(&self.inner) }
    }
}

impl<M: Medium> HostStore<M> {
    /// Creates a new store on empty media: one for everything, or one for the data and one for the
    /// journal.
    ///
    /// # Errors
    /// Returns [`OpenError`] if the design does not fit, or does not support a separate journal.
    ///
    /// # Panics
    /// Panics if the design has no log: a block drive does not preserve its host's memory.
    pub fn create(
        handle: &Handle,
        host: &HostProfile,
        cores: &Rc<Cores>,
        media: Media<M>,
        options: StoreOptions,
    ) -> Result<Self, OpenError> {
        let (index, setup) = setup(handle, host, cores, media.data, options);
        Ok(Self::around(handle, Index::create(&index, setup, media.journal)?, host))
    }

    /// Opens the store on the media. Requires: the options are those of its creation.
    ///
    /// # Errors
    /// Returns [`OpenError`] if there is no such store, or it cannot be recovered.
    ///
    /// # Panics
    /// Panics as [`Self::create`] does.
    pub async fn open(
        handle: &Handle,
        host: &HostProfile,
        cores: &Rc<Cores>,
        media: Media<M>,
        options: StoreOptions,
    ) -> Result<Self, OpenError> {
        let (index, setup) = setup(handle, host, cores, media.data, options);
        let index = Index::open(&index, setup, media.journal).await?;
        Ok(Self::around(handle, index, host))
    }

    fn around(handle: &Handle, index: Index<M>, host: &HostProfile) -> Self {
        let us = Nanos::from_micros_f64;
        let processor = &host.processor;
        let (get, put, next) = (us(processor.get_us), us(processor.put_us), us(processor.next_us));
        let (handle, get_times) = (handle.clone(), RefCell::default());
        Self { inner: Rc::new(Inner { index, get, put, next, handle, get_times }) }
    }

    /// Returns the value of `key`, if it has one.
    ///
    /// # Errors
    /// Returns [`EngineError`] if the value cannot be read.
    pub async fn get(&self, key: &[u8]) -> Result<Option<Value>, EngineError> {
        let inner = &*self.inner;
        let begun = inner.handle.now();
        let lookup = either!(&inner.index, index => index.get(key, inner.get).await?);
        if let Some(reading) = lookup.reading {
            inner.get_times.borrow_mut().record(inner.handle.now() - begun, reading);
        }
        Ok(lookup.value)
    }

    /// Returns the times of Gets since the store was opened. Hash tables do not measure them.
    pub fn get_times(&self) -> GetTimes {
        self.inner.get_times.borrow().clone()
    }

    /// Sets the value of `key`. It is acknowledged according to `sync`, or the design if `sync` is
    /// `None`.
    ///
    /// # Errors
    /// Returns [`EngineError`] if the value cannot be written.
    pub async fn put(
        &self,
        key: &[u8],
        value: Value,
        sync: Option<LogSync>,
    ) -> Result<(), EngineError> {
        let inner = &*self.inner;
        let options = WriteOptions { sync, ..WriteOptions::default() };
        either!(&inner.index, index => index.put(key, value, options, inner.put).await?);
        Ok(())
    }

    /// Deletes `key`, whether or not it has a value. It is acknowledged like [`Self::put`].
    ///
    /// # Errors
    /// Returns [`EngineError`] if the tombstone cannot be written.
    pub async fn delete(&self, key: &[u8], sync: Option<LogSync>) -> Result<(), EngineError> {
        let inner = &*self.inner;
        let options = WriteOptions { sync, ..WriteOptions::default() };
        inner.index.delete(key, options, inner.put).await?;
        Ok(())
    }

    /// Creates an iterator on a snapshot, up to the key `upper_bound`, exclusive. Returns `None` if
    /// the index has no key order.
    ///
    /// # Errors
    /// Returns [`EngineError::IteratorMemory`] if the memory for iterators is exhausted.
    pub fn create_iterator(
        &self,
        upper_bound: Option<&[u8]>,
    ) -> Result<Option<HostIterator<M>>, EngineError> {
        let work = self.inner.next;
        let Some(engine) = self.inner.index.lsm() else { return Ok(None) };
        let iterator = engine.create_iterator(upper_bound)?;
        Ok(Some(HostIterator { iterator, work }))
    }

    /// Returns the index.
    pub fn index(&self) -> &Index<M> {
        &self.inner.index
    }
}

fn setup<M: Medium>(
    handle: &Handle,
    host: &HostProfile,
    cores: &Rc<Cores>,
    medium: M,
    options: StoreOptions,
) -> (IndexOptions, IndexSetup<M>) {
    let StoreOptions { index, expected_key_bytes, expected_value_bytes, planted, id } = options;
    let has_log = index.durability() == engine::Durability::Log;
    assert!(has_log, "a store of a host needs a log");
    let setup = IndexSetup {
        handle: handle.clone(),
        medium,
        surroundings: Surroundings {
            index_dram_bytes: host.memory.index_bytes,
            iterator_dram_bytes: host.memory.iterator_bytes,
            expected_key_bytes,
            expected_value_bytes,
        },
        cpu: Cpu { cores: Rc::clone(cores), costs: host.processor.costs.clone() },
        accelerator: None,
        planted,
        id,
    };
    (index, setup)
}

/// An iterator over a snapshot of a store in key order.
pub struct HostIterator<M: Medium> {
    iterator: EngineIterator<M>,
    work: Nanos,
}

impl<M: Medium> HostIterator<M> {
    /// Moves to the first pair at or after `key` and reads it; `None` if there is none.
    ///
    /// # Errors
    /// Returns [`EngineError`] if the pair cannot be read.
    pub async fn seek(&mut self, key: &[u8]) -> Result<Option<(Box<[u8]>, Value)>, EngineError> {
        let step = self.iterator.seek(key, self.work).await?;
        self.pair(step).await
    }

    /// Moves to the next pair and reads it; `None` at the end. `ahead` is the number of further
    /// pairs that the caller will request.
    ///
    /// # Errors
    /// Returns [`EngineError`] if the pair cannot be read.
    pub async fn next(&mut self, ahead: u32) -> Result<Option<(Box<[u8]>, Value)>, EngineError> {
        let step = self.iterator.next(ahead, self.work).await?;
        self.pair(step).await
    }

    /// Returns the pair of `step`, after skipping any number of deleted keys.
    async fn pair(&mut self, step: Step) -> Result<Option<(Box<[u8]>, Value)>, EngineError> {
        let mut step = step;
        loop {
            match step {
                Step::Pair(key, value) => return Ok(Some((key, value))),
                Step::End => return Ok(None),
                Step::Again => step = self.iterator.next(0, Nanos::ZERO).await?,
            }
        }
    }
}
