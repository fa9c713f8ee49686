//! Putting edits in force: the only way to a new version.

use std::rc::Rc;

use pages::error::EngineError;
use pages::journal::manifest::Manifest;
use pages::medium::Medium;

use crate::lsm::edit::Edit;
use crate::lsm::memory::checkpoint_bytes;
use crate::lsm::version::LevelEdit;
use crate::lsm::{Inner, edit_codec};
use crate::tables::codec;

impl<M: Medium> Inner<M> {
    /// Puts an edit in force: commits it to the manifest, if there is one, and applies it.
    ///
    /// # Errors
    /// [`EngineError::Medium`]: whether the edit outlives a power cut is unknown, and it is not in force.
    /// [`EngineError::ReadOnly`]: an earlier one could not be written, and neither will this one.
    pub(crate) async fn publish(&self, edit: Edit) -> Result<(), EngineError> {
        for LevelEdit { level, .. } in &edit.levels {
            assert!(self.busy.borrow()[*level], "an edit of level {level}, which nobody claimed");
        }
        if let Some(manifest) = &self.manifest {
            let _turn = manifest.turn(&self.store).await?;
            let bytes = edit_codec::encode(&edit, self.options.is_leveled());
            if manifest.is_due(&self.store, bytes.len()) {
                self.write_checkpoint(manifest).await?;
            }
            manifest.commit(&self.store, &bytes).await?;
            self.apply(edit);
        } else {
            self.apply(edit);
        }
        self.expire_for_memory();
        self.store.work.notify_all();
        Ok(())
    }

    /// Writes a checkpoint, by whoever has the turn.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`], [`EngineError::Medium`].
    pub(crate) async fn write_checkpoint(&self, manifest: &Manifest) -> Result<(), EngineError> {
        let bytes = self.checkpoint();
        let (total, of_levels) = (bytes.len() as u64, self.checkpoint_bytes_of_levels());
        assert!(of_levels <= total, "levels take {of_levels} bytes of a checkpoint of {total}");
        self.checkpoint_rest.set(total - of_levels);
        manifest.checkpoint(&self.store, &bytes).await
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
        if let Some(flushed) = flushed {
            // From now on it is memory of the snapshots that share it, if any.
            self.front.flushed();
            let before = self.flushed.replace(flushed);
            assert!(
                before.sequence <= flushed.sequence && before.log_from <= flushed.log_from,
                "a flush goes back from {before:?} to {flushed:?}"
            );
            if let Some(log) = &*self.front.log.borrow() {
                log.trim(flushed.log_from);
            }
        }
    }
}
