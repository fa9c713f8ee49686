//! Edits: what flushes, compactions and collections publish.
//!
//! One piece of background work makes one edit, the edit is committed to the journal, and applied:
//! all of it is in force, after a power cut too, or nothing. [`Inner::publish`] is the only way to a
//! new version. Between making an edit and applying it the work holds its claim on the levels it
//! changes, so the places in them that it names stay what they are.

use std::rc::Rc;

use crate::error::EngineError;
use crate::format::object::Sequence;
use crate::format::pointer::Pointer;
use crate::lsm::version::LevelEdit;
use crate::lsm::{Inner, edit_codec};
use crate::store::changes::Changes;
use crate::store::medium::{ExtentId, Medium};
use crate::store::writing::Written;

/// A change of the index and of what it says about the extents.
#[derive(Default)]
pub(crate) struct Edit {
    /// Segments that take the place of others, level by level.
    pub levels: Vec<LevelEdit>,
    /// Pages and objects that are in use or dead from then on.
    pub changes: Changes,
    /// Whether the oldest frozen memtable is in the levels from then on.
    pub flushed: Option<Flushed>,
    /// An extent that nothing refers to from then on.
    pub retired: Option<ExtentId>,
}

/// What the flush of a memtable makes unnecessary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flushed {
    /// Writes of clients up to this one are in the levels.
    pub sequence: Sequence,
    /// The log is needed from this group on.
    pub log_from: u64,
}

impl<M: Medium> Inner<M> {
    /// The edit that makes `levels`: their new pages are in use from then on, and those they replace
    /// are dead.
    pub(crate) fn edit_of(&self, levels: Vec<LevelEdit>) -> Edit {
        let mut changes = Changes::default();
        let version = self.version.borrow();
        for edit in &levels {
            for new in &edit.new {
                if let Some(page) = new.segment.location.page() {
                    self.store.publish_page(&mut changes, page);
                }
            }
            let level = version.level(edit.level);
            for index in edit.range.clone() {
                if let Some(page) = level.segment(index).location.page() {
                    self.store.mark_page_dead(&mut changes, page);
                }
            }
        }
        Edit { levels, changes, ..Edit::default() }
    }

    /// Adds that these objects have no entries any more.
    pub(crate) fn with_dead(&self, mut edit: Edit, dead: &[Pointer]) -> Edit {
        self.store.mark_dead(&mut edit.changes, dead);
        edit
    }

    /// Adds that the oldest frozen memtable is flushed: its objects have entries.
    pub(crate) fn with_flushed(&self, mut edit: Edit, written: &Written) -> Edit {
        self.store.publish_objects(&mut edit.changes, written);
        let memtables = self.front.memtables.borrow();
        let oldest = memtables.frozen.front().expect("a memtable is being flushed").borrow();
        let log = self.front.log.borrow();
        let next = log.as_ref().map_or(0, |log| log.next_group());
        edit.flushed = Some(Flushed {
            sequence: oldest.last_sequence().max(self.flushed.get().sequence),
            log_from: memtables.first_group_without_oldest().unwrap_or(next),
        });
        edit
    }

    /// Puts an edit in force: commits it to the manifest, if there is one, and applies it.
    ///
    /// # Errors
    /// [`EngineError::Medium`]: whether the edit outlives a power cut is unknown, and it is not in force.
    pub(crate) async fn publish(&self, edit: Edit) -> Result<(), EngineError> {
        if let Some(manifest) = &self.manifest {
            let _turn = manifest.turn().await;
            if manifest.is_due(&self.store) {
                manifest.checkpoint(&self.store, &self.checkpoint()).await?;
            }
            manifest.commit(&self.store, &edit_codec::encode(&edit)).await?;
            self.apply(edit);
        } else {
            self.apply(edit);
        }
        self.expire_for_memory();
        self.store.work.notify_all();
        Ok(())
    }

    /// Makes the version that the edit leads to the current one, and what else the edit says: all
    /// at one instant, so that readers find the entries of a memtable there or in the levels.
    pub(crate) fn apply(&self, edit: Edit) {
        let Edit { levels, changes, flushed, retired: _ } = edit;
        self.store.apply(&changes);
        if !levels.is_empty() {
            let next = self.version.borrow().edited(levels);
            self.account(&next);
            *self.version.borrow_mut() = Rc::new(next);
        }
        if let Some(flushed) = flushed {
            // From now on it is memory of the snapshots that share it, if any.
            self.front.flushed();
            self.flushed.set(flushed);
            if let Some(log) = &*self.front.log.borrow() {
                log.trim(flushed.log_from);
            }
        }
    }
}
