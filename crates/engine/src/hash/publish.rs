//! Publishing of edits: the task that has the turn at the manifest commits and applies everything
//! that has been gathered.

use super::edit::{Edit, PageWrite, SlotChange, Totals};
use super::{Inner, edit_codec};
use crate::error::EngineError;
use crate::manifest::Manifest;
use crate::manifest::changes::Changes;
use crate::medium::Medium;

impl<M: Medium> Inner<M> {
    /// Adds a slot that was changed in memory to the gathered edit.
    pub(crate) fn note_slot(&self, change: SlotChange) {
        if self.manifest.is_some() {
            self.gathered.edit.borrow_mut().slots.push(change);
        }
    }

    /// Adds the changes of extents that follow from changed slots to the gathered edit. Without a
    /// manifest, applies them at once.
    pub(crate) fn note_changes(&self, changes: Changes) {
        if self.manifest.is_some() {
            self.gathered.edit.borrow_mut().changes.merge(changes);
        } else {
            self.store.apply(&changes);
        }
    }

    /// Publishes an edit, together with everything that was gathered before.
    ///
    /// # Errors
    /// [`EngineError::Medium`] if the commit failed: the edit is not in force, and may or may not
    /// survive a power cut. [`EngineError::ReadOnly`] if an earlier edit could not be written: this
    /// one will not be written either.
    pub(crate) async fn publish(&self, edit: Edit) -> Result<(), EngineError> {
        let Some(manifest) = &self.manifest else {
            self.apply(edit);
            return Ok(());
        };
        self.gathered.edit.borrow_mut().merge(edit);
        let number = self.gathered.taken.get() + 1;
        let _turn = manifest.turn(&self.store).await?;
        // The previous task with the turn may have committed this edit.
        if self.gathered.committed.get() < number {
            self.commit_gathered(manifest).await?;
        }
        Ok(())
    }

    /// Commits and applies the gathered edit. Requires: the caller has the turn.
    pub(crate) async fn commit_gathered(&self, manifest: &Manifest) -> Result<(), EngineError> {
        let edit = self.gathered.edit.take();
        self.gathered.taken.set(self.gathered.taken.get() + 1);
        let bytes = self.encode(&edit);
        if manifest.is_due(&self.store, bytes.len()) {
            self.write_checkpoint(manifest, &bytes).await?;
        } else {
            manifest.commit(&self.store, &bytes).await?;
        }
        self.gathered.committed.set(self.gathered.taken.get());
        self.apply(edit);
        self.settled.notify_all();
        self.store.work.notify_all();
        Ok(())
    }

    /// Writes a checkpoint with an edit, and reserves extents for the longest possible next
    /// checkpoint. Requires: the caller has the turn.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`], [`EngineError::Medium`].
    pub(crate) async fn write_checkpoint(
        &self,
        manifest: &Manifest,
        edit: &[u8],
    ) -> Result<(), EngineError> {
        let bytes = self.checkpoint(edit);
        manifest.checkpoint(&self.store, &bytes).await?;
        let longest = self.longest_checkpoint.max(bytes.len() as u64);
        manifest.expect_checkpoint_of(&self.store, longest);
        Ok(())
    }

    /// Returns an edit as bytes, with the current totals of the table.
    pub(crate) fn encode(&self, edit: &Edit) -> Vec<u8> {
        let totals = Totals { keys: self.keys.get(), longest_search: self.longest_search.get() };
        edit_codec::encode(edit, totals, self.store.format)
    }

    /// Applies an edit in one step. The slots were changed in memory before.
    fn apply(&self, edit: Edit) {
        let Edit { slots: _, pages, changes, flushed, retired: _ } = edit;
        for PageWrite { page, at, .. } in pages {
            self.directory.borrow_mut()[page as usize] = Some(at);
            let was_marked = self.writing.borrow_mut().remove(page);
            assert!(was_marked, "bucket page {page} was written while others could write it");
        }
        self.store.apply(&changes);
        if let Some(flushed) = flushed {
            self.front.flushed();
            self.flushed.set(flushed);
            self.front.trim_log(flushed);
        }
    }
}
