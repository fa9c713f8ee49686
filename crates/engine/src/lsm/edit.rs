//! Edits: what flushes, compactions and collections publish.
//!
//! One piece of background work makes one edit, which is applied, and committed to the journal if there is one: all of it is
//! in force, after a power cut too, or nothing (`publish`). Between making an edit and applying it the work holds its
//! claim on the levels it changes, so the places in them that it names stay what they are.

use std::rc::Rc;

use pages::format::pointer::Pointer;
use pages::journal::Flushed;
use pages::medium::{ExtentId, Medium};
use pages::store::changes::Changes;
use pages::store::writing::Written;

use crate::lsm::Inner;
use crate::lsm::tables::open_table::Table;
use crate::lsm::version::LevelEdit;
use crate::tables::tree::TreeEdit;

/// A change of the index and of what it says about the extents. Its tables are open, or just as they were
/// found in a manifest.
pub(crate) struct Edit<T = Rc<Table>> {
    /// Segments that take the place of others, level by level.
    pub levels: Vec<LevelEdit>,
    /// Tables that take the place of others, where levels are made of tables.
    pub tables: TreeEdit<T>,
    /// Pages and objects that are in use or dead from then on.
    pub changes: Changes,
    /// Whether the oldest frozen memtable is in the levels from then on.
    pub flushed: Option<Flushed>,
    /// An extent that nothing refers to from then on.
    pub retired: Option<ExtentId>,
}

impl<T> Default for Edit<T> {
    fn default() -> Self {
        Self {
            levels: Vec::new(),
            tables: TreeEdit::default(),
            changes: Changes::default(),
            flushed: None,
            retired: None,
        }
    }
}

impl<M: Medium> Inner<M> {
    /// The edit that makes `levels`: their new pages are in use from then on, and those they replace
    /// are dead.
    pub(crate) fn edit_of(&self, levels: Vec<LevelEdit>) -> Edit {
        let mut changes = Changes::default();
        let version = self.version.borrow();
        for edit in &levels {
            for new in &edit.new {
                for page in new.segment.location.pages() {
                    self.store.publish_page(&mut changes, page);
                }
            }
            let level = version.level(edit.level);
            assert!(
                edit.range.start <= edit.range.end && edit.range.end <= level.len(),
                "an edit of segments {:?} of level {}, which has {}",
                edit.range,
                edit.level,
                level.len()
            );
            for index in edit.range.clone() {
                for page in level.segment(index).location.pages() {
                    self.store.mark_page_dead(&mut changes, page);
                }
            }
        }
        Edit { levels, changes, ..Edit::default() }
    }

    /// Adds that these objects have no entries any more.
    pub(crate) async fn with_dead(&self, mut edit: Edit, dead: &[Pointer]) -> Edit {
        self.store.mark_all_dead(&mut edit.changes, dead).await;
        edit
    }

    /// Adds that the oldest frozen memtable is flushed: its objects have entries.
    pub(crate) async fn with_flushed(&self, mut edit: Edit, written: &Written) -> Edit {
        self.store.publish_objects(&mut edit.changes, written).await;
        edit.flushed = Some(self.front.flushed_with_oldest(self.flushed.get()));
        edit
    }
}
