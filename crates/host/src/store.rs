//! The store: an index on a medium, and what its operations cost on the host.

use std::cell::RefCell;
use std::rc::Rc;

use design::{Index, IndexOptions, IndexSetup, Planted, either};
use engine::{EngineIterator, Step};
use pages::{
    Cpu, EngineError, LogSync, Medium, OpenError, StoreId, Surroundings, Value, WriteOptions,
};
use runtime::{Cores, Handle, Nanos};

use crate::get_times::GetTimes;
use crate::journal::Media;
use crate::profile::HostProfile;

/// What a store is set up for.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The index, and its options.
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
    /// Processor time of operations besides what the index charges.
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
    /// A fresh store on empty media: one alone, or one for the data and one for the journal.
    ///
    /// # Errors
    /// [`OpenError`]: the design does not fit, or takes no journal apart.
    ///
    /// # Panics
    /// If the design has no log: a block drive keeps no memory for its host.
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

    /// The store that is on the media, given as they were when it was made.
    ///
    /// # Errors
    /// [`OpenError`].
    ///
    /// # Panics
    /// As [`Self::create`].
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

    /// The value of `key`, if it has one.
    ///
    /// # Errors
    /// [`EngineError`].
    pub async fn get(&self, key: &[u8]) -> Result<Option<Value>, EngineError> {
        let inner = &*self.inner;
        let begun = inner.handle.now();
        let lookup = either!(&inner.index, index => index.get(key, inner.get).await?);
        if let Some(reading) = lookup.reading {
            inner.get_times.borrow_mut().record(inner.handle.now() - begun, reading);
        }
        Ok(lookup.value)
    }

    /// Where the time of Gets went since the store was opened; of indexes that tell, which hash tables do not.
    pub fn get_times(&self) -> GetTimes {
        self.inner.get_times.borrow().clone()
    }

    /// Gives `key` a value. Acknowledged as `sync` says, or else the design.
    ///
    /// # Errors
    /// [`EngineError`].
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

    /// Removes `key`, whether or not it has a value. Acknowledged as [`Self::put`].
    ///
    /// # Errors
    /// [`EngineError`].
    pub async fn delete(&self, key: &[u8], sync: Option<LogSync>) -> Result<(), EngineError> {
        let inner = &*self.inner;
        let options = WriteOptions { sync, ..WriteOptions::default() };
        inner.index.delete(key, options, inner.put).await?;
        Ok(())
    }

    /// An iterator on a snapshot of now, up to the key `upper_bound`, exclusive; nothing where the index
    /// has no order of keys.
    ///
    /// # Errors
    /// [`EngineError::IteratorMemory`].
    pub fn create_iterator(
        &self,
        upper_bound: Option<&[u8]>,
    ) -> Result<Option<HostIterator<M>>, EngineError> {
        let work = self.inner.next;
        let Some(engine) = self.inner.index.lsm() else { return Ok(None) };
        let iterator = engine.create_iterator(upper_bound)?;
        Ok(Some(HostIterator { iterator, work }))
    }

    /// The index.
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
    let has_log = index.durability() == pages::Durability::Log;
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

/// Reads a snapshot of a store in key order.
pub struct HostIterator<M: Medium> {
    iterator: EngineIterator<M>,
    work: Nanos,
}

impl<M: Medium> HostIterator<M> {
    /// Goes to the first pair at or after `key`, and reads it; nothing if there is none.
    ///
    /// # Errors
    /// [`EngineError`].
    pub async fn seek(&mut self, key: &[u8]) -> Result<Option<(Box<[u8]>, Value)>, EngineError> {
        let step = self.iterator.seek(key, self.work).await?;
        self.pair(step).await
    }

    /// Goes to the next pair, and reads it; nothing at the end. `ahead` more are going to be asked for.
    ///
    /// # Errors
    /// [`EngineError`].
    pub async fn next(&mut self, ahead: u32) -> Result<Option<(Box<[u8]>, Value)>, EngineError> {
        let step = self.iterator.next(ahead, self.work).await?;
        self.pair(step).await
    }

    /// The pair of `step`; passes deleted keys, however many there are.
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
