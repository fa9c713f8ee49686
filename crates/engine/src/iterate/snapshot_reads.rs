//! A client's view of a snapshot: Gets and iterators that all read the same instant.
//!
//! A Get of a snapshot works like a current Get: it searches the memtables and the version of its
//! instant, with filters and caches; after the memtables both use the same function. It is not
//! counted among the store's Gets, because the bound of their reads depends on the current levels.

use std::rc::Rc;

use runtime::Nanos;

use super::iterator::EngineIterator;
use super::snapshot::{Hold, Snapshot};
use crate::effort::Effort;
use crate::engine::{Engine, Inner};
use crate::error::EngineError;
use crate::format::value::Value;
use crate::medium::{Medium, PageNo};
use crate::operations::{Reads, check_key};
use crate::read::locate::Located;

/// A part of an index: the keys of a level in pages that are read together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexPart {
    /// The first key of the part.
    pub first: Box<[u8]>,
    /// The first key of the next part; `None` if there is none.
    pub end: Option<Box<[u8]>>,
}

impl IndexPart {
    /// Whether a key would be in this part.
    pub fn covers(&self, key: &[u8]) -> bool {
        *self.first <= *key && self.end.as_deref().is_none_or(|end| key < end)
    }
}

/// The store at one instant. Dropping it and its iterators releases the resources it holds: extents
/// that were in use then, older versions of keys in memtables, and memtables and segments that are
/// in no current level.
pub struct EngineSnapshot<M: Medium> {
    inner: Rc<Inner<M>>,
    hold: Rc<Hold>,
}

impl<M: Medium> Clone for EngineSnapshot<M> {
    fn clone(&self) -> Self {
        Self { inner: Rc::clone(&self.inner), hold: Rc::clone(&self.hold) }
    }
}

impl<M: Medium> Engine<M> {
    /// Takes a snapshot of the current state. A store that runs out of snapshot memory, or of
    /// space, expires the oldest snapshot.
    ///
    /// # Errors
    /// [`EngineError::IteratorMemory`] if there is no memory for it.
    pub fn snapshot(&self) -> Result<EngineSnapshot<M>, EngineError> {
        Ok(EngineSnapshot::new(&self.inner, &self.inner.take_snapshot(0)?))
    }
}

impl<M: Medium> EngineIterator<M> {
    /// Returns the part of the index that contains a page, if the part is not in memory: if the
    /// page cannot be read, the contents of the whole part are unknown. Cost: goes through all
    /// parts.
    ///
    /// # Errors
    /// [`EngineError::SnapshotTooOld`] if the snapshot has expired.
    pub fn part_in(&self, page: PageNo) -> Result<Option<IndexPart>, EngineError> {
        let snapshot = self.hold.get()?;
        for level in snapshot.version.levels() {
            let mut parts = level.iter().peekable();
            while let Some((first, segment)) = parts.next() {
                if segment.location.pages().any(|other| other == page) {
                    let end = parts.peek().map(|(end, _)| Box::from(*end));
                    return Ok(Some(IndexPart { first: first.into(), end }));
                }
            }
        }
        Ok(None)
    }

    /// Returns the snapshot that the iterator reads.
    pub fn snapshot(&self) -> EngineSnapshot<M> {
        EngineSnapshot::new(&self.inner, &self.hold)
    }
}

impl<M: Medium> EngineSnapshot<M> {
    fn new(inner: &Rc<Inner<M>>, hold: &Rc<Hold>) -> Self {
        Self { inner: Rc::clone(inner), hold: Rc::clone(hold) }
    }

    /// Creates an iterator over the snapshot's pairs in key order from `lower_bound` (inclusive;
    /// for descending Nexts) to `upper_bound` (exclusive).
    ///
    /// # Errors
    /// [`EngineError::IteratorMemory`] if there is no memory for another buffer;
    /// [`EngineError::SnapshotTooOld`] if the snapshot has expired.
    pub fn iterator(
        &self,
        lower_bound: Option<&[u8]>,
        upper_bound: Option<&[u8]>,
    ) -> Result<EngineIterator<M>, EngineError> {
        let options = self.inner.iterator_options.get();
        self.inner.take_buffer(&self.hold, options.first_buffer())?;
        let hold = Rc::clone(&self.hold);
        Ok(EngineIterator::new(&self.inner, hold, options, lower_bound, upper_bound))
    }

    /// Returns the value that `key` had.
    ///
    /// # Errors
    /// [`EngineError::SnapshotTooOld`] if the snapshot has expired; otherwise as [`Engine::get`].
    pub async fn get(&self, key: &[u8]) -> Result<Option<Value>, EngineError> {
        check_key(key)?;
        let snapshot = self.hold.get()?;
        let located = self.inner.locate_at(&snapshot, key).await?;
        let located = if self.inner.caches.has_values() {
            self.inner.look_for_value(key, located).await
        } else {
            located
        };
        match located {
            Located::Absent => Ok(None),
            Located::Known(entry) => Ok(entry),
            Located::At(pointer) => {
                let reads = &mut 0;
                let value = self.inner.read_and_keep(key, pointer, reads).await?;
                self.inner.take_in(*reads).await;
                Ok(Some(value))
            }
        }
    }

    /// Returns whether `key` had a value. Reads no value.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn exists(&self, key: &[u8]) -> Result<bool, EngineError> {
        check_key(key)?;
        let snapshot = self.hold.get()?;
        let located = self.inner.locate_at(&snapshot, key).await?;
        Ok(matches!(located, Located::At(_) | Located::Known(Some(_))))
    }
}

impl<M: Medium> Inner<M> {
    /// Finds the entry of `key` that a snapshot sees.
    async fn locate_at(&self, snapshot: &Snapshot, key: &[u8]) -> Result<Located, EngineError> {
        let Snapshot { memtables, version, sequence, .. } = snapshot;
        let effort = Effort { memtables: memtables.len() as u32, ..Effort::default() };
        let written = memtables.iter().find_map(|memtable| memtable.borrow().at(key, *sequence));
        if let Some(entry) = written {
            self.store.cpu.cores.spend(self.store.cpu.costs.of(effort)).await;
            return Ok(Located::Known(entry));
        }
        self.locate_in(version, key, Nanos::ZERO, effort, &mut Reads::default()).await
    }
}
