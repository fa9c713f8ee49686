//! Putting edits in force: the only way to a new version.
//!
//! Without a manifest an edit is applied, and that is all. With one it is in force twice: in memory at once, so that
//! nothing waits that only reads what it wrote; and after a power cut when it is committed, which is when its pages are
//! durable and all edits before it are committed. A medium may take seconds for that: a rotation of a volume's windows.
//! What cannot be taken back waits for it: the log is kept, memtables that it would be replayed to count as waiting,
//! and extents are released by an edit of their own, behind those that emptied them.

use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;

use pages::error::EngineError;
use pages::journal::Flushed;
use pages::journal::manifest::Manifest;
use pages::medium::{Medium, MediumError};

use crate::lsm::edit::Edit;
use crate::lsm::memory::checkpoint_bytes;
use crate::lsm::version::LevelEdit;
use crate::lsm::{Inner, edit_codec};
use crate::planted::Fault;
use crate::tables::codec;

/// Edits that are in force in memory only, in order.
#[derive(Default)]
pub(crate) struct Uncommitted {
    edits: VecDeque<Installed>,
    /// How many edits are in the manifest.
    committed: u64,
}

/// The number of an edit: they are counted in the order in which they were installed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct EditNo(u64);

/// What is waited for until pages are durable.
type Durability = Pin<Box<dyn Future<Output = Result<(), EngineError>>>>;

/// An edit that is in force in memory.
struct Installed {
    bytes: Vec<u8>,
    /// Ready when what it refers to is durable; nothing, once that is awaited.
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

    /// The newest edit that was installed.
    fn newest(&self) -> EditNo {
        EditNo(self.committed + self.edits.len() as u64)
    }

    fn has(&self, edit: EditNo) -> bool {
        edit.0 > self.committed
    }

    /// What the oldest edit is committed with. It stays until it is.
    fn take_oldest(&mut self) -> (Durability, Vec<u8>) {
        let oldest = self.edits.front_mut().expect("an edit waits");
        (oldest.durable.take().expect("an edit is taken once"), std::mem::take(&mut oldest.bytes))
    }

    /// The flush of the oldest edit, which is committed now.
    fn commit_oldest(&mut self) -> Option<Flushed> {
        let oldest = self.edits.pop_front().expect("an edit is committed once");
        self.committed += 1;
        oldest.flushed
    }
}

impl<M: Medium> Inner<M> {
    /// Puts an edit in force, after a power cut too.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`]: this edit or an earlier one could not be committed, and it may be lost with the next
    /// power cut.
    pub(crate) async fn publish(&self, edit: Edit) -> Result<(), EngineError> {
        match self.install(edit)? {
            Some(number) => self.wait_for_commit(number).await,
            None => Ok(()),
        }
    }

    /// Waits until all edits that are in force now are so after a power cut too.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`]: one could not be committed. [`EngineError::Medium`]: it lacks room.
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

    /// Puts an edit in force for readers. Its pages can be read. It is committed as soon as that can be: its number.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`]: an earlier one could not be committed, and neither would this one.
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

    /// The task that commits edits, for ever.
    pub(crate) async fn commit_forever(self: Rc<Self>) {
        let manifest = self.manifest.as_ref().expect("the store has a journal");
        loop {
            self.store.work.wait_until(|| !self.uncommitted.borrow().is_empty()).await;
            if let Err(error) = self.commit_next(manifest).await {
                // None behind it can be committed.
                return self.store.fail(error);
            }
        }
    }

    /// Commits the oldest edit that is not, or, with a checkpoint, all there are.
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

    /// Writes a checkpoint, in which all edits are that are in force now. How many.
    async fn commit_all(&self, manifest: &Manifest) -> Result<usize, EngineError> {
        let (checkpoint, count) = (self.checkpoint(), self.uncommitted.borrow().edits.len());
        self.note_checkpoint(&checkpoint);
        if !self.planted.has(Fault::CheckpointBeforeDurable) {
            self.store.sync_all().await?;
        }
        manifest.checkpoint(&self.store, &checkpoint).await?;
        // Edits may have been installed since.
        let levels = self.checkpoint_bytes_of_levels();
        manifest.expect_checkpoint_of(&self.store, self.checkpoint_rest.get() + levels);
        Ok(count)
    }

    /// Writes the first checkpoint of a run, by whoever has the turn.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`], [`EngineError::Medium`].
    pub(crate) async fn write_checkpoint(&self, manifest: &Manifest) -> Result<(), EngineError> {
        let bytes = self.checkpoint();
        self.note_checkpoint(&bytes);
        manifest.checkpoint(&self.store, &bytes).await
    }

    /// How much of a checkpoint the levels are not.
    fn note_checkpoint(&self, checkpoint: &[u8]) {
        let (total, of_levels) = (checkpoint.len() as u64, self.checkpoint_bytes_of_levels());
        assert!(of_levels <= total, "levels take {of_levels} bytes of a checkpoint of {total}");
        self.checkpoint_rest.set(total - of_levels);
    }

    /// Bytes that the levels take of a checkpoint now.
    fn checkpoint_bytes_of_levels(&self) -> u64 {
        match &self.tables {
            Some(tables) => codec::tree_bytes(&*tables.tree()),
            None => checkpoint_bytes(&self.version.borrow()),
        }
    }

    /// Makes the version that the edit leads to the current one, and what else the edit says: all
    /// at one instant, so that readers find the entries of a memtable there or in the levels.
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
            // From now on it is memory of the snapshots that share it, if any.
            self.front.flushed();
            let before = self.flushed.replace(flushed);
            assert!(
                before.sequence <= flushed.sequence && before.log_from <= flushed.log_from,
                "a flush goes back from {before:?} to {flushed:?}"
            );
        }
    }
}
