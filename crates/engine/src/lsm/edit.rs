//! Edits: what flushes, compactions and collections publish.
//!
//! One piece of background work makes one edit, the edit is committed to the journal, and applied:
//! all of it is in force, after a power cut too, or nothing. [`Inner::publish`] is the only way to a
//! new version. Between making an edit and applying it the work holds its claim on the levels it
//! changes, so the places in them that it names stay what they are.

use std::rc::Rc;

use crate::format::pointer::Pointer;
use crate::lsm::Inner;
use crate::lsm::level::Location;
use crate::lsm::version::LevelEdit;
use crate::store::changes::Changes;
use crate::store::medium::Medium;
use crate::store::writing::Written;

/// A change of the index and of what it says about the extents.
#[derive(Default)]
pub(crate) struct Edit {
    /// Segments that take the place of others, level by level.
    pub levels: Vec<LevelEdit>,
    /// Pages and objects that are in use or dead from then on.
    pub changes: Changes,
    /// Whether the oldest frozen memtable is in the levels from then on.
    pub flushed: bool,
}

impl<M: Medium> Inner<M> {
    /// The edit that makes `levels`: their new pages are in use from then on, and those they replace
    /// are dead.
    pub(crate) fn edit_of(&self, levels: Vec<LevelEdit>) -> Edit {
        let mut changes = Changes::default();
        let version = self.version.borrow();
        for edit in &levels {
            for new in &edit.new {
                if let Location::Stored(page) = new.segment.location {
                    self.store.publish_page(&mut changes, page);
                }
            }
            let level = version.level(edit.level);
            for index in edit.range.clone() {
                if let Location::Stored(page) = level.segment(index).location {
                    self.store.mark_page_dead(&mut changes, page);
                }
            }
        }
        Edit { levels, changes, flushed: false }
    }

    /// Adds that these objects have no entries any more.
    pub(crate) fn with_dead(&self, mut edit: Edit, dead: &[Pointer]) -> Edit {
        self.store.mark_dead(&mut edit.changes, dead);
        edit
    }

    /// Adds that the oldest frozen memtable is flushed: its objects have entries.
    pub(crate) fn with_flushed(&self, mut edit: Edit, written: &Written) -> Edit {
        self.store.publish_objects(&mut edit.changes, written);
        edit.flushed = true;
        edit
    }

    /// Puts an edit in force.
    pub(crate) fn publish(&self, edit: Edit) {
        self.apply(edit);
        self.expire_for_memory();
        self.store.work.notify_all();
    }

    /// Makes the version that the edit leads to the current one, and what else the edit says: all
    /// at one instant, so that readers find the entries of a memtable there or in the levels.
    fn apply(&self, edit: Edit) {
        let Edit { levels, changes, flushed } = edit;
        self.store.apply(&changes);
        let next = self.version.borrow().edited(levels);
        self.account(&next);
        *self.version.borrow_mut() = Rc::new(next);
        if flushed {
            // From now on it is memory of the snapshots that share it, if any.
            self.front.flushed();
        }
    }
}
