//! The manifest: edits since the last checkpoint.
//!
//! The manifest consists of epochs. Group 0 of an epoch is a checkpoint, the later groups are
//! edits. When the edits would grow longer than the checkpoint, a new checkpoint is written before
//! the next edit, in extents of its own; once it is durable, the extents of the previous epoch
//! count as empty. An edit is committed and applied in one turn, so a checkpoint never misses an
//! edit that was committed before it.
//!
//! Extents are reserved for the current epoch and for the checkpoint that ends it. The length of
//! that checkpoint is known at any time. So the reservation grows with each edit, as far as clients
//! have left space ([`MemtableLimits::checkpoint_bytes`](crate::memtable::MemtableLimits)), and
//! never jumps.
//!
//! A checkpoint starts with the run that writes it and with the start of that run's WAL: see
//! [`RunStart`].
//!
//! An edit that could not be written fails the store before another task gets the turn, and a
//! failed store writes no edits: edits after a missing one could not be replayed.

pub(crate) mod changes;
pub(crate) mod edit;
pub(crate) mod edit_codec;
pub(crate) mod extent_changes;
pub(crate) mod fields;
pub(crate) mod level_codec;
pub(crate) mod publish;
pub(crate) mod table_codec;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use runtime::{Permit, Semaphore};

use crate::error::EngineError;
use crate::format::codec::{Reader, Writer};
use crate::format::page::PageKind;
use crate::medium::{ExtentId, Medium, Shape, Stream};
use crate::space::PageStore;
use crate::wal::group_pages;
use crate::wal::group_pages::GroupId;

/// The start of a run of a store. A run lasts from an opening of the store to the power cut that
/// ends it. Groups of earlier runs from this number on were torn, or looked torn to the recovery.
/// They are not part of the WAL, and must stay excluded even if a later recovery finds more of
/// their pages, for example on another member of a volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RunStart {
    /// The number of the run: the epoch of its first checkpoint. All WAL groups of the run carry
    /// it.
    pub run: u32,
    /// Number of the run's first WAL group.
    pub group: u64,
}

impl RunStart {
    const BYTES: u64 = 4 + 8;

    /// Returns the stored form of a checkpoint.
    fn prefixed(self, checkpoint: &[u8]) -> Vec<u8> {
        let mut out = Writer::default();
        out.u32(self.run);
        out.u64(self.group);
        [out.finish().as_slice(), checkpoint].concat()
    }

    /// Splits a stored checkpoint; `None` if it is malformed.
    pub(crate) fn split_off(checkpoint: &[u8]) -> Option<(Self, &[u8])> {
        let (prefix, rest) = checkpoint.split_at_checked(Self::BYTES as usize)?;
        let input = &mut Reader::new(prefix);
        Some((Self { run: input.u32()?, group: input.u64()? }, rest))
    }

    /// Whether a group is part of the WAL.
    pub(crate) fn counts(self, id: GroupId) -> bool {
        id.epoch >= self.run || id.number < self.group
    }
}

/// The manifest of a running store.
pub(crate) struct Manifest {
    /// The epoch that is being written.
    epoch: Cell<u32>,
    /// Number of the next group.
    next: Cell<u64>,
    run: Cell<RunStart>,
    turn: Semaphore,
    /// Extents of this epoch.
    extents: RefCell<Vec<ExtentId>>,
    /// Pages of this epoch's checkpoint, of the edits since, and of a checkpoint if it were written
    /// now.
    checkpoint_pages: Cell<u32>,
    edit_pages: Cell<u32>,
    next_pages: Cell<u32>,
}

impl Manifest {
    /// Creates the manifest of a store whose last epoch is in `extents`; these are empty for a new
    /// store.
    pub(crate) fn new(extents: Vec<ExtentId>) -> Self {
        Self {
            epoch: Cell::new(0),
            next: Cell::new(0),
            run: Cell::new(RunStart { run: 0, group: 0 }),
            turn: Semaphore::new(1),
            extents: RefCell::new(extents),
            checkpoint_pages: Cell::new(0),
            edit_pages: Cell::new(0),
            next_pages: Cell::new(0),
        }
    }

    /// Begins a run. The next checkpoint is the first of the run and records it.
    pub(crate) fn begin_run(&self, start: RunStart) {
        assert!(!self.has_begun() && start.run > 0, "{start:?} of a store that runs");
        self.epoch.set(start.run - 1);
        self.run.set(start);
    }

    /// Whether this run has written a checkpoint.
    pub(crate) fn has_begun(&self) -> bool {
        self.checkpoint_pages.get() > 0
    }

    /// Returns the current epoch, which increases with each checkpoint and each recovery.
    pub(crate) fn epoch(&self) -> u32 {
        self.epoch.get()
    }

    /// Waits for the turn to commit and apply an edit.
    ///
    /// # Errors
    /// Returns [`EngineError::ReadOnly`] if the store has failed.
    pub(crate) async fn turn<M: Medium>(
        &self,
        store: &PageStore<M>,
    ) -> Result<Permit, EngineError> {
        let permit = self.turn.acquire(1).await;
        store.check_healthy()?;
        Ok(permit)
    }

    /// Waits for the first checkpoint of a new store. No other data may be on its media before
    /// that: a recovery that finds data pages but no complete manifest reports the manifest as
    /// lost.
    ///
    /// # Errors
    /// As [`Self::turn`].
    pub(crate) async fn begun<M: Medium>(&self, store: &PageStore<M>) -> Result<(), EngineError> {
        // The first turn writes it.
        if !self.has_begun() {
            drop(self.turn(store).await?);
        }
        Ok(())
    }

    /// Whether a checkpoint is due before an edit of `edit_bytes` bytes. A single edit may always
    /// follow a checkpoint.
    pub(crate) fn is_due<M: Medium>(&self, store: &PageStore<M>, edit_bytes: usize) -> bool {
        let (edits, shape) = (self.edit_pages.get(), &store.journal().shape);
        let most = edits_after(shape, self.checkpoint_pages.get());
        !self.has_begun() || edits > 0 && edits + pages_of(shape, edit_bytes as u64) > most
    }

    /// Sets the size of a checkpoint from now on to `bytes` bytes. Reserves extents for this epoch
    /// and the next one.
    pub(crate) fn expect_checkpoint_of<M: Medium>(&self, store: &PageStore<M>, bytes: u64) {
        let store = store.journal();
        self.next_pages.set(pages_of(&store.shape, RunStart::BYTES + bytes));
        self.set_extents_aside(store);
    }

    fn set_extents_aside<M: Medium>(&self, store: &PageStore<M>) {
        let (now, next) = (self.checkpoint_pages.get(), self.next_pages.get());
        let longer = now.max(next);
        let expected = longer + edits_after(&store.shape, longer);
        let epoch = expected.max(now + self.edit_pages.get());
        store.set_aside[Stream::Manifest as usize].set(extents_of(&store.shape, epoch, next));
    }

    /// Writes a checkpoint of everything committed so far. Everything written before becomes
    /// unnecessary. Requires: the caller has the turn.
    ///
    /// # Errors
    /// Returns [`EngineError::ReadOnly`] once background work has stopped, or
    /// [`EngineError::Medium`].
    pub(crate) async fn checkpoint<M: Medium>(
        &self,
        store: &Rc<PageStore<M>>,
        bytes: &[u8],
    ) -> Result<(), EngineError> {
        let store = store.kept_journal();
        store.check_healthy()?;
        self.expect_checkpoint_of(store, bytes.len() as u64);
        let pages = self.next_pages.get();
        wait_for_room(store, pages).await;
        self.epoch.set(self.epoch.get() + 1);
        self.next.set(0);
        store.extents.borrow_mut().close(Stream::Manifest);
        let old = self.extents.take();
        self.write(store, &self.run.get().prefixed(bytes)).await?;
        self.checkpoint_pages.set(pages);
        self.edit_pages.set(0);
        self.set_extents_aside(store);
        for id in old {
            let is_needed = self.extents.borrow().contains(&id);
            assert!(!is_needed, "extent {} holds the checkpoint that replaces it", id.0);
            store.release_journal_extent(id);
        }
        Ok(())
    }

    /// Writes an edit. Requires: the caller has the turn.
    ///
    /// # Errors
    /// Returns [`EngineError::ReadOnly`] once background work has stopped, or
    /// [`EngineError::Medium`].
    pub(crate) async fn commit<M: Medium>(
        &self,
        store: &PageStore<M>,
        edit: &[u8],
    ) -> Result<(), EngineError> {
        let store = store.journal();
        assert!(self.has_begun(), "an edit stands behind a checkpoint");
        assert!(self.turn.in_use() > 0, "an edit is written by whoever has the turn");
        assert!(self.next.get() > 0, "the first group of an epoch is its checkpoint");
        store.check_healthy()?;
        let pages = pages_of(&store.shape, edit.len() as u64);
        self.edit_pages.set(self.edit_pages.get() + pages);
        self.set_extents_aside(store);
        let room = store.extents.borrow().room(Stream::Manifest);
        wait_for_room(store, pages.saturating_sub(room)).await;
        self.write(store, edit).await
    }

    async fn write<M: Medium>(
        &self,
        store: &PageStore<M>,
        bytes: &[u8],
    ) -> Result<(), EngineError> {
        store.check_healthy()?;
        let written = self.write_group(store, bytes).await;
        written.map_err(|error| {
            store.fail(error.clone());
            // The stored failure names the medium that failed.
            store.failure().filter(|_| store.is_journal()).map_or(error, EngineError::ReadOnly)
        })
    }

    async fn write_group<M: Medium>(
        &self,
        store: &PageStore<M>,
        bytes: &[u8],
    ) -> Result<(), EngineError> {
        let id = GroupId { epoch: self.epoch.get(), number: self.next.get() };
        self.next.set(id.number + 1);
        let payload = store.shape.payload_bytes;
        let pages = group_pages::encode(PageKind::Manifest, id, bytes, 0, payload);
        let expected = pages_of(&store.shape, bytes.len() as u64);
        let taken = store.in_units(pages.len() as u32);
        assert_eq!(taken, expected, "a group takes other pages than were set aside for it");
        let note = |id| {
            let mut extents = self.extents.borrow_mut();
            if extents.last() != Some(&id) {
                extents.push(id);
            }
        };
        store.write_journal(Stream::Manifest, pages, note).await
    }
}

/// Waits until earlier epochs are erased, if the manifest grows faster than that, so that it does
/// not use more extents than reserved. `pages` are the pages beyond the open extent.
async fn wait_for_room<M: Medium>(store: &PageStore<M>, pages: u32) {
    let due = store.set_aside[Stream::Manifest as usize].get();
    let most = due.saturating_sub(store.extents_of(pages));
    store.wait_for_releases(Stream::Manifest, most).await;
}

/// Returns the extents of an epoch whose checkpoint has `checkpoint_bytes` bytes, and of the next
/// checkpoint.
pub(crate) fn extents_for(shape: &Shape, checkpoint_bytes: u64) -> usize {
    let pages = pages_of(shape, RunStart::BYTES + checkpoint_bytes);
    extents_of(shape, pages + edits_after(shape, pages), pages)
}

/// Returns the extents to reserve in addition if checkpoints may grow by `bytes` bytes.
pub(crate) fn extents_for_growth(shape: &Shape, bytes: u64) -> usize {
    let pages = if bytes == 0 { 0 } else { pages_of(shape, bytes) };
    shape.extents_of(2 * pages) + shape.extents_of(pages)
}

/// Returns the extents for the pages of an epoch and for the next checkpoint, and one spare extent:
/// the part of a checkpoint besides the index grows a little now and then.
fn extents_of(shape: &Shape, epoch: u32, next: u32) -> usize {
    shape.extents_of(epoch) + 1 + shape.extents_of(next)
}

/// Returns the maximum pages of edits after a checkpoint of `pages` pages.
fn edits_after(shape: &Shape, pages: u32) -> u32 {
    pages.max(shape.pages_per_extent / 2)
}

/// Returns the pages of a group of `bytes` bytes, in whole append units.
fn pages_of(shape: &Shape, bytes: u64) -> u32 {
    shape.in_units(group_pages::pages_of(bytes, shape.payload_bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_group_that_a_recovery_did_not_find_whole_is_not_of_the_log() {
        let start = RunStart { run: 4, group: 9 };
        let counts = |epoch, number| start.counts(GroupId { epoch, number });
        assert!(counts(1, 8) && counts(3, 8), "they were found");
        assert!(!counts(1, 9) && !counts(3, 12), "they were torn");
        assert!(counts(4, 9) && counts(5, 12), "they came later");
        let written = start.prefixed(b"checkpoint");
        assert_eq!(RunStart::split_off(&written), Some((start, b"checkpoint".as_slice())));
        assert_eq!(RunStart::split_off(&written[..11]), None);
    }

    proptest! {
        #[test]
        fn clients_leave_room_for_what_a_checkpoint_grows_by(
            bytes in 0..400_000_u64,
            growth in 1..60_000_u64,
            unit in 1..6_u32,
            units in 2..20_u32,
        ) {
            let shape = Shape {
                payload_bytes: 544,
                page_bytes: 512,
                pages_per_extent: unit * units,
                extents: 100,
                grows_to: 0,
                append_unit: unit,
                parallelism: 1,
            };
            let (now, then) = (extents_for(&shape, bytes), extents_for(&shape, bytes + growth));
            prop_assert!(then <= now + extents_for_growth(&shape, growth), "{now}, then {then}");
        }
    }
}
