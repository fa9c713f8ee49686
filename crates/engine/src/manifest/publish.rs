//! Installs edits: the only way to a new version.
//!
//! Without a manifest an edit is applied, and that is all. With a manifest an edit takes effect
//! twice: in memory at once, so that readers of the new data do not wait; and durably when it is
//! committed, which is after its pages are durable and all previous edits are committed. This may
//! take a medium seconds: one rotation of a volume's windows. Actions that cannot be undone wait
//! for the commit: the log is kept, the memtables to which it would be replayed still count as
//! waiting, and extents are released by an edit of their own, after those that emptied them.

use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;

use super::edit::Edit;
use super::{Manifest, edit_codec, table_codec};
use crate::engine::Inner;
use crate::error::EngineError;
use crate::medium::{Medium, MediumError};
use crate::memory::checkpoint_bytes;
use crate::planted::Fault;
use crate::version::LevelEdit;
use crate::wal::Flushed;

/// Edits that took effect in memory only, in order.
#[derive(Default)]
pub(crate) struct Uncommitted {
    edits: VecDeque<Installed>,
    /// The number of edits committed to the manifest.
    committed: u64,
}

/// The number of an edit, in the order of installation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct EditNo(u64);

/// A future that is ready when pages are durable.
type Durability = Pin<Box<dyn Future<Output = Result<(), EngineError>>>>;

/// An edit that took effect in memory.
struct Installed {
    bytes: Vec<u8>,
    /// Ready when the pages that the edit refers to are durable; `None` once a task awaits it.
    durable: Option<Durability>,
    flushed: Option<Flushed>,
}

impl Uncommitted {
    pub(crate) fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    fn push(&mut self, edit: Installed) -> EditNo {
        self.edits.push_back(edit);
        self.newest()
    }

    /// Returns the newest installed edit.
    fn newest(&self) -> EditNo {
        EditNo(self.committed + self.edits.len() as u64)
    }

    fn has(&self, edit: EditNo) -> bool {
        edit.0 > self.committed
    }

    /// Takes the data needed to commit the oldest edit. The edit stays in the queue until it is
    /// committed.
    fn take_oldest(&mut self) -> (Durability, Vec<u8>) {
        let oldest = self.edits.front_mut().expect("an edit waits");
        (oldest.durable.take().expect("an edit is taken once"), std::mem::take(&mut oldest.bytes))
    }

    /// Removes the oldest edit, which is committed now, and returns its flush.
    fn commit_oldest(&mut self) -> Option<Flushed> {
        let oldest = self.edits.pop_front().expect("an edit is committed once");
        self.committed += 1;
        oldest.flushed
    }
}

impl<M: Medium> Inner<M> {
    /// Installs an edit and waits until it is durable.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`] if this edit or an earlier one could not be committed: it may be
    /// lost at the next power cut.
    pub(crate) async fn publish(&self, edit: Edit) -> Result<(), EngineError> {
        match self.install(edit)? {
            Some(number) => self.wait_for_commit(number).await,
            None => Ok(()),
        }
    }

    /// Waits until all edits installed so far are durable.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`] if one could not be committed; [`EngineError::Medium`] if the
    /// medium lacks room.
    pub(crate) async fn wait_for_commits(&self) -> Result<(), EngineError> {
        let newest = self.uncommitted.borrow().newest();
        let is_there = || self.uncommitted.borrow().has(newest);
        let is_over = || !is_there() || !self.store.is_healthy() || self.store.lacks_room();
        self.store.work.wait_until(is_over).await;
        if !is_there() {
            return Ok(());
        }
        self.store.check_healthy()?;
        Err(MediumError::NoSpace.into())
    }

    async fn wait_for_commit(&self, number: EditNo) -> Result<(), EngineError> {
        let is_over = || !self.uncommitted.borrow().has(number) || !self.store.is_healthy();
        self.store.work.wait_until(is_over).await;
        if self.uncommitted.borrow().has(number) { self.store.check_healthy() } else { Ok(()) }
    }

    /// Applies an edit for readers and queues it for commit. Returns its number, or `None` without
    /// a manifest. Requires: the pages of the edit can be read.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`] if an earlier edit could not be committed, so that this one could
    /// not be either.
    pub(crate) fn install(&self, edit: Edit) -> Result<Option<EditNo>, EngineError> {
        for LevelEdit { level, .. } in &edit.levels {
            assert!(self.busy.borrow()[*level], "an edit of level {level}, which nobody claimed");
        }
        let number = if self.manifest.is_some() {
            self.store.check_healthy()?;
            let bytes = edit_codec::encode(&edit, self.options.is_leveled());
            let (durable, flushed) = (self.store.sync_placed(&edit.changes), edit.flushed);
            self.apply(edit);
            if let Some(flushed) = flushed {
                self.front.flush_is_uncommitted();
                if self.planted.has(Fault::TrimLogBeforeCommit) {
                    self.front.trim_log(flushed);
                }
            }
            let durable = Some(Box::pin(durable) as Durability);
            Some(self.uncommitted.borrow_mut().push(Installed { bytes, durable, flushed }))
        } else {
            self.apply(edit);
            None
        };
        self.expire_for_memory();
        self.store.work.notify_all();
        Ok(number)
    }

    /// Runs the task that commits edits, forever.
    pub(crate) async fn commit_forever(self: Rc<Self>) {
        let manifest = self.manifest.as_ref().expect("the store has a journal");
        loop {
            self.store.work.wait_until(|| !self.uncommitted.borrow().is_empty()).await;
            if let Err(error) = self.commit_next(manifest).await {
                // No later edit can be committed.
                return self.store.fail(error);
            }
        }
    }

    /// Commits the oldest uncommitted edit, or all edits by a checkpoint.
    async fn commit_next(&self, manifest: &Manifest) -> Result<(), EngineError> {
        let (durable, bytes) = self.uncommitted.borrow_mut().take_oldest();
        durable.await?;
        let _turn = manifest.turn(&self.store).await?;
        let count = if manifest.is_due(&self.store, bytes.len()) {
            self.commit_all(manifest).await?
        } else {
            manifest.commit(&self.store, &bytes).await?;
            1
        };
        for _ in 0..count {
            let flushed = self.uncommitted.borrow_mut().commit_oldest();
            if let Some(flushed) = flushed {
                self.front.flush_is_committed(flushed);
            }
        }
        self.store.work.notify_all();
        self.store.room.notify_all();
        Ok(())
    }

    /// Writes a checkpoint, which includes all edits installed so far. Returns their number.
    async fn commit_all(&self, manifest: &Manifest) -> Result<usize, EngineError> {
        let (checkpoint, count) = (self.checkpoint(), self.uncommitted.borrow().edits.len());
        self.note_checkpoint(&checkpoint);
        if !self.planted.has(Fault::CheckpointBeforeDurable) {
            self.store.sync_all().await?;
        }
        manifest.checkpoint(&self.store, &checkpoint).await?;
        // More edits may have been installed meanwhile.
        let levels = self.checkpoint_bytes_of_levels();
        manifest.expect_checkpoint_of(&self.store, self.checkpoint_rest.get() + levels);
        Ok(count)
    }

    /// Writes the first checkpoint of a run. Requires: the caller has the manifest's turn.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`], [`EngineError::Medium`].
    pub(crate) async fn write_checkpoint(&self, manifest: &Manifest) -> Result<(), EngineError> {
        let bytes = self.checkpoint();
        self.note_checkpoint(&bytes);
        manifest.checkpoint(&self.store, &bytes).await
    }

    /// Notes the size of a checkpoint without its levels.
    fn note_checkpoint(&self, checkpoint: &[u8]) {
        let (total, of_levels) = (checkpoint.len() as u64, self.checkpoint_bytes_of_levels());
        assert!(of_levels <= total, "levels take {of_levels} bytes of a checkpoint of {total}");
        self.checkpoint_rest.set(total - of_levels);
    }

    /// Returns the number of bytes that the levels take in a checkpoint now.
    fn checkpoint_bytes_of_levels(&self) -> u64 {
        match &self.tables {
            Some(tables) => table_codec::tree_bytes(&*tables.tree()),
            None => checkpoint_bytes(&self.version.borrow()),
        }
    }

    /// Installs the edit's version as the current one and applies its other changes, all at one
    /// instant, so that readers find entries either in a memtable or in the levels.
    pub(crate) fn apply(&self, edit: Edit) {
        let Edit { levels, tables, changes, flushed, retired: _ } = edit;
        self.store.apply(&changes);
        if !levels.is_empty() {
            let next = self.version.borrow().edited(levels);
            self.account(&next);
            if let Some(manifest) = &self.manifest {
                let bytes = self.checkpoint_rest.get() + checkpoint_bytes(&next);
                manifest.expect_checkpoint_of(&self.store, bytes);
            }
            *self.version.borrow_mut() = Rc::new(next);
        }
        if !tables.is_empty() {
            self.apply_to_tables(&tables);
        }
        self.note_index_reads();
        if let Some(flushed) = flushed {
            // From now on its memory belongs to the snapshots that share it, if any.
            self.front.flushed();
            let before = self.flushed.replace(flushed);
            assert!(
                before.sequence <= flushed.sequence && before.log_from <= flushed.log_from,
                "a flush goes back from {before:?} to {flushed:?}"
            );
        }
    }
}
