//! The manifest: edits since the last checkpoint.
//!
//! Epoch by epoch: group 0 of an epoch is a checkpoint, the ones behind it are edits. When the edits
//! would grow longer than the checkpoint, the next edit is preceded by a new checkpoint, in extents of
//! its own, and those of the epoch before count as empty once it is durable. An edit is committed and
//! applied in one turn: a checkpoint never misses an edit that was committed before it.
//!
//! Extents are set aside for the epoch and for the checkpoint that ends it. How long that would be now
//! is known at any time, so that what is set aside grows with each edit, as far as clients have left
//! room ([`MemtableLimits::checkpoint_bytes`](crate::front::MemtableLimits)), and never by a jump.
//!
//! An edit that could not be written makes the store fail before anybody else gets the turn, and a
//! store that has failed writes none: what stood behind a missing one could not be opened any more.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use runtime::{IoClass, Permit, Semaphore};

use crate::error::EngineError;
use crate::format::page::PageKind;
use crate::journal::groups::{self, GroupId};
use crate::medium::{ExtentId, Medium, Stream};
use crate::store::PageStore;

/// The manifest of a running store.
pub struct Manifest {
    /// The epoch that is being written; 0 before the first checkpoint.
    epoch: Cell<u32>,
    /// Number of the next group.
    next: Cell<u64>,
    turn: Semaphore,
    /// Extents of this epoch.
    extents: RefCell<Vec<ExtentId>>,
    /// This epoch's checkpoint, and pages of the edits since.
    checkpoint: Cell<CheckpointSize>,
    edit_pages: Cell<u32>,
}

/// How long a checkpoint is.
#[derive(Clone, Copy, Default, Debug)]
pub struct CheckpointSize {
    /// In bytes.
    pub total: u64,
    /// What of them grows and shrinks with the index; the rest stays about the same.
    pub of_index: u64,
}

impl Manifest {
    /// The manifest of a store whose last epoch, in `extents`, was `epoch`; 0 if it is new.
    pub fn new(epoch: u32, extents: Vec<ExtentId>) -> Self {
        Self {
            epoch: Cell::new(epoch),
            next: Cell::new(0),
            turn: Semaphore::new(1),
            extents: RefCell::new(extents),
            checkpoint: Cell::default(),
            edit_pages: Cell::new(0),
        }
    }

    /// Waits for the turn to commit and apply.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`]: the store has failed, for whatever reason.
    pub async fn turn<M: Medium>(&self, store: &PageStore<M>) -> Result<Permit, EngineError> {
        let permit = self.turn.acquire(1).await;
        store.check_healthy()?;
        Ok(permit)
    }

    /// The epoch in force.
    pub fn epoch(&self) -> u32 {
        self.epoch.get()
    }

    /// Whether a checkpoint is due before an edit of so many bytes. One edit may always follow.
    pub fn is_due<M: Medium>(&self, store: &PageStore<M>, edit_bytes: usize) -> bool {
        let edits = self.edit_pages.get();
        let most = edits_after(store, pages_of(store, self.checkpoint.get().total));
        self.epoch.get() == 0 || edits > 0 && edits + pages_of(store, edit_bytes as u64) > most
    }

    /// Sets extents aside for this epoch and the next, whose checkpoint takes `index_bytes` for the
    /// index if it is written now.
    pub fn set_aside<M: Medium>(&self, store: &PageStore<M>, index_bytes: u64) {
        let CheckpointSize { total, of_index } = self.checkpoint.get();
        let next = pages_of(store, total - of_index + index_bytes);
        let longer = next.max(pages_of(store, total));
        store.set_aside[Stream::Manifest as usize].set(extents_of_epochs(store, longer, next));
    }

    /// Writes a checkpoint: everything committed so far, by whoever has the turn. `index_bytes` of it
    /// are the index's. What was written before is not needed any more.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`] once background work has stopped; [`EngineError::Medium`].
    pub async fn checkpoint<M: Medium>(
        &self,
        store: &Rc<PageStore<M>>,
        bytes: &[u8],
        index_bytes: u64,
    ) -> Result<(), EngineError> {
        store.check_healthy()?;
        let size = CheckpointSize { total: bytes.len() as u64, of_index: index_bytes };
        assert!(size.of_index <= size.total, "what is the index's is part of {size:?}");
        if self.next.get() == 0 {
            // The first of this life.
            store.set_aside[Stream::Manifest as usize].set(extents_for(store, size.total));
        }
        wait_for_room(store, size).await;
        self.epoch.set(self.epoch.get() + 1);
        self.next.set(0);
        store.extents.borrow_mut().close(Stream::Manifest);
        let old = self.extents.take();
        self.write(store, bytes).await?;
        self.checkpoint.set(size);
        self.edit_pages.set(0);
        for id in old {
            let is_needed = self.extents.borrow().contains(&id);
            assert!(!is_needed, "extent {} holds the checkpoint that replaces it", id.0);
            store.release_journal_extent(id);
        }
        Ok(())
    }

    /// Writes an edit, by whoever has the turn.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`] once background work has stopped; [`EngineError::Medium`].
    pub async fn commit<M: Medium>(
        &self,
        store: &PageStore<M>,
        edit: &[u8],
    ) -> Result<(), EngineError> {
        assert!(self.epoch.get() > 0, "an edit stands behind a checkpoint");
        assert!(self.turn.in_use() > 0, "an edit is written by whoever has the turn");
        assert!(self.next.get() > 0, "the first group of an epoch is its checkpoint");
        let pages = self.write(store, edit).await?;
        self.edit_pages.set(self.edit_pages.get() + pages);
        Ok(())
    }

    async fn write<M: Medium>(
        &self,
        store: &PageStore<M>,
        bytes: &[u8],
    ) -> Result<u32, EngineError> {
        store.check_healthy()?;
        let written = self.write_group(store, bytes).await;
        written.inspect_err(|error| store.fail(error.clone()))
    }

    async fn write_group<M: Medium>(
        &self,
        store: &PageStore<M>,
        bytes: &[u8],
    ) -> Result<u32, EngineError> {
        let id = GroupId { epoch: self.epoch.get(), number: self.next.get() };
        self.next.set(id.number + 1);
        let payload = store.shape.payload_bytes;
        let pages = groups::encode(PageKind::Manifest, id, bytes, 0, payload);
        let count = store.in_units(pages.len() as u32);
        let units = store.journal_units(Stream::Manifest, pages)?;
        for unit in &units {
            let id = store.shape.extent_of(unit.first);
            let mut extents = self.extents.borrow_mut();
            if extents.last() != Some(&id) {
                extents.push(id);
            }
        }
        store.append_units(Stream::Manifest, units, IoClass::Journal).await?;
        Ok(count)
    }
}

/// Where epochs follow one another faster than extents are erased: waits for those of earlier ones, so
/// that the manifest does not take more than is set aside for it.
async fn wait_for_room<M: Medium>(store: &PageStore<M>, checkpoint: CheckpointSize) {
    let needed = store.extents_of(pages_of(store, checkpoint.total));
    let due = store.set_aside[Stream::Manifest as usize].get();
    store.wait_for_releases(Stream::Manifest, due.saturating_sub(needed)).await;
}

/// Extents for an epoch whose checkpoint has so many bytes, and for a next one like it.
pub(crate) fn extents_for<M: Medium>(store: &PageStore<M>, checkpoint_bytes: u64) -> usize {
    let pages = pages_of(store, checkpoint_bytes);
    extents_of_epochs(store, pages, pages)
}

/// Extents that are set aside besides if checkpoints may grow by so many bytes.
pub(crate) fn extents_for_growth<M: Medium>(store: &PageStore<M>, bytes: u64) -> usize {
    if bytes == 0 { 0 } else { store.extents_of(3 * pages_of(store, bytes)) }
}

/// Extents for an epoch of a checkpoint of `pages` pages, with its edits, for the last one of the epoch
/// before, and for the checkpoint that comes next.
fn extents_of_epochs<M: Medium>(store: &PageStore<M>, pages: u32, next: u32) -> usize {
    store.extents_of(pages + edits_after(store, pages)) + 1 + store.extents_of(next)
}

/// Pages of edits that may follow a checkpoint of `pages` pages.
fn edits_after<M: Medium>(store: &PageStore<M>, pages: u32) -> u32 {
    pages.max(store.shape.pages_per_extent / 2)
}

/// Pages that a group of so many bytes takes.
fn pages_of<M: Medium>(store: &PageStore<M>, bytes: u64) -> u32 {
    store.in_units(groups::pages_of(bytes, store.shape.payload_bytes))
}
