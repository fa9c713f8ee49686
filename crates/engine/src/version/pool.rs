//! The pool of segment descriptors, and the memory cost of versions.
//!
//! Published design (IterKVSSD, "Decoupling and Pooling Metadata from Version Data Structure"): the
//! metadata of a table is stored once, in a pool, and a version is a view of references to it, so
//! that iterators share the common parts of their versions. Here a descriptor is counted while any
//! version lists its segment, and views are shared in chunks (`level`). The counts are exact: they
//! follow from the lifetimes of the values themselves.

use std::cell::Cell;
use std::rc::Rc;

/// Counters of the components of all versions of a store.
#[derive(Default, Debug)]
pub(crate) struct Pool {
    descriptors: Cell<u64>,
    in_memory: Cell<u64>,
    references: Cell<u64>,
}

/// The counted components of versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PoolUse {
    /// Descriptors, each counted once.
    pub descriptors: u64,
    /// Descriptors whose segment is in memory.
    pub in_memory: u64,
    /// References in the chunks of views, each chunk counted once.
    pub references: u64,
}

impl Pool {
    /// Adds a descriptor to the pool while any version lists it.
    pub(crate) fn enter(self: &Rc<Self>, is_in_memory: bool) -> Descriptor {
        self.descriptors.set(self.descriptors.get() + 1);
        self.in_memory.set(self.in_memory.get() + u64::from(is_in_memory));
        Descriptor { entry: Rc::new(PoolEntry { pool: Rc::clone(self), is_in_memory }) }
    }

    pub(crate) fn in_use(&self) -> PoolUse {
        PoolUse {
            descriptors: self.descriptors.get(),
            in_memory: self.in_memory.get(),
            references: self.references.get(),
        }
    }
}

#[derive(Debug)]
struct PoolEntry {
    pool: Rc<Pool>,
    is_in_memory: bool,
}

impl Drop for PoolEntry {
    fn drop(&mut self) {
        let (pool, in_memory) = (&self.pool, u64::from(self.is_in_memory));
        let now = pool.in_use();
        assert!(now.descriptors > 0 && now.in_memory >= in_memory, "one goes twice: {now:?}");
        pool.descriptors.set(now.descriptors - 1);
        pool.in_memory.set(now.in_memory - in_memory);
    }
}

/// A reference to a descriptor. Clones refer to the same descriptor.
#[derive(Clone, Debug)]
pub(crate) struct Descriptor {
    entry: Rc<PoolEntry>,
}

impl Descriptor {
    /// Counts a chunk of `count` references until the result is dropped.
    pub(crate) fn count_chunk(&self, count: usize) -> Chunked {
        let pool = &self.entry.pool;
        pool.references.set(pool.references.get() + count as u64);
        Chunked { pool: Rc::clone(pool), count: count as u64 }
    }
}

/// A chunk of references in use.
pub(crate) struct Chunked {
    pool: Rc<Pool>,
    count: u64,
}

impl Drop for Chunked {
    fn drop(&mut self) {
        let references = self.pool.references.get();
        assert!(references >= self.count, "{} of {references} references go", self.count);
        self.pool.references.set(references - self.count);
    }
}
