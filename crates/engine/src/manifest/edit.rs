//! Edits: the changes that flushes, compactions and collections publish.
//!
//! A unit of background work makes one edit. The edit is applied, and committed to the manifest if
//! the store has one: it takes effect completely or not at all, also after a power cut (`publish`).
//! Between making and applying an edit, the work holds its claim on the levels it changes, so that
//! the indexes in the edit stay valid.

use std::rc::Rc;

use super::changes::Changes;
use crate::engine::Inner;
use crate::format::pointer::Pointer;
use crate::medium::{ExtentId, Medium};
use crate::space::writing::Written;
use crate::version::LevelEdit;
use crate::version::open_table::Table;
use crate::version::tree::TreeEdit;
use crate::wal::Flushed;

/// A change of the index and of the extent accounting. Its tables are either open or as they were
/// read from a manifest.
pub(crate) struct Edit<T = Rc<Table>> {
    /// Segments that replace others, per level.
    pub levels: Vec<LevelEdit>,
    /// Tables that replace others, if levels are made of tables.
    pub tables: TreeEdit<T>,
    /// Pages and objects that become live or dead.
    pub changes: Changes,
    /// The new flush position, if the edit completes the flush of the oldest frozen memtable.
    pub flushed: Option<Flushed>,
    /// An extent that is no longer referenced.
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
    /// Returns the edit that makes the changes `levels`: their new pages become live, the pages
    /// that they replace become dead.
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

    /// Adds to an edit that these objects are dead.
    pub(crate) async fn with_dead(&self, mut edit: Edit, dead: &[Pointer]) -> Edit {
        self.store.mark_all_dead(&mut edit.changes, dead).await;
        edit
    }

    /// Adds to an edit that the oldest frozen memtable is flushed: its objects become live.
    pub(crate) async fn with_flushed(&self, mut edit: Edit, written: &Written) -> Edit {
        self.store.publish_objects(&mut edit.changes, written).await;
        edit.flushed = Some(self.front.flushed_with_oldest(self.flushed.get()));
        edit
    }
}
