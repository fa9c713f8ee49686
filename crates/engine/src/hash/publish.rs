//! Putting an edit in force: everything that has been gathered is committed and applied by whoever has
//! the turn at the manifest.

use super::edit::{Edit, PageWrite, SlotChange, Totals};
use super::{Inner, edit_codec};
use crate::error::EngineError;
use crate::manifest::Manifest;
use crate::manifest::changes::Changes;
use crate::medium::Medium;

impl<M: Medium> Inner<M> {
    /// Notes a slot that was changed in memory.
    pub(crate) fn note_slot(&self, change: SlotChange) {
        if self.manifest.is_some() {
            self.gathered.edit.borrow_mut().slots.push(change);
        }
    }

    /// Changes that follow from slots.
    pub(crate) fn note_changes(&self, changes: Changes) {
        if self.manifest.is_some() {
            self.gathered.edit.borrow_mut().changes.merge(changes);
        } else {
            self.store.apply(&changes);
        }
    }

    /// Puts an edit in force, with all that was noted before.
    ///
    /// # Errors
    /// [`EngineError::Medium`]: whether the edit outlives a power cut is unknown, and it is not in force.
    /// [`EngineError::ReadOnly`]: an earlier one could not be written, and neither will this one.
    pub(crate) async fn publish(&self, edit: Edit) -> Result<(), EngineError> {
        let Some(manifest) = &self.manifest else {
            self.apply(edit);
            return Ok(());
        };
        self.gathered.edit.borrow_mut().merge(edit);
        let number = self.gathered.taken.get() + 1;
        let _turn = manifest.turn(&self.store).await?;
        // Whoever had the turn before may have taken this along.
        if self.gathered.committed.get() < number {
            self.commit_gathered(manifest).await?;
        }
        Ok(())
    }

    /// Commits and applies what was gathered, by whoever has the turn.
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

    /// Writes a checkpoint with an edit, by whoever has the turn. The next may be as long as one ever is.
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

    /// An edit as bytes. What it says of the whole table is as of now.
    pub(crate) fn encode(&self, edit: &Edit) -> Vec<u8> {
        let totals = Totals { keys: self.keys.get(), longest_search: self.longest_search.get() };
        edit_codec::encode(edit, totals, self.store.format)
    }

    /// All at one instant; slots are changed already.
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
