//! Opening a hash table without its memory: from manifest and log.
//!
//! The steps are those of the tree (`recovery::reopen`), but an edit contains slot changes. During
//! the replay of edits, slot changes are kept by bucket page. They are dropped when a later edit
//! records that the page was written with them. The remaining changes are applied to pages in
//! memory, which are then dirty, as they were before the power cut. So there are no more such pages
//! than there was memory for. Cost: one read of each extent's header, the journal, and one read for
//! each of these pages.

use std::collections::BTreeMap;
use std::rc::Rc;

use runtime::IoClass;

use super::dump::Restored;
use super::edit::{Edit, PageWrite, SlotChange};
use super::open::HashSetup;
use super::{HashEngine, Inner, dump, edit_codec};
use crate::error::OpenError;
use crate::format::pointer::PointerFormat;
use crate::manifest::{Manifest, RunStart};
use crate::medium::Medium;
use crate::recovery::scan::Scan;

/// The state during the replay of checkpoint and edits.
struct Replayed {
    state: Restored,
    /// By bucket page: slot changes that the page on the medium lacks.
    slots: BTreeMap<u32, Vec<SlotChange>>,
}

impl<M: Medium> HashEngine<M> {
    /// Opens the store that the medium holds. Creates a new store if there is none, or if a new
    /// store lost power during its first checkpoint. Background tasks start at once. Requires: the
    /// design has a log.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn open(setup: HashSetup<M>) -> Result<Self, OpenError> {
        let mut engine = Self::build(setup)?;
        let scan = engine.inner.store.scan().await?;
        let Some(scan) = scan else {
            engine.inner.store.release_torn().await?;
            engine.start_tasks();
            return Ok(engine);
        };
        let inner = Rc::get_mut(&mut engine.inner).expect("nobody has it yet");
        inner.manifest = Some(Manifest::new(scan.manifest_extents()));
        engine.inner.restore(scan).await?;
        engine.start_tasks();
        Ok(engine)
    }
}

impl<M: Medium> Inner<M> {
    async fn restore(&self, mut scan: Scan) -> Result<(), OpenError> {
        let store = &self.store;
        store.id.set(scan.id);
        let Replayed { state, slots } = self.replay(&scan)?;
        let flushed = state.flushed;
        let from = store.first_group_to_replay(flushed);
        let log = scan.take_log_from(from)?;
        store.restore_extents(state.extents.settled());
        store.settle_extents(&scan, &log).await?;
        self.front.sequence.set(state.sequence);
        self.flushed.set(flushed);
        self.longest_search.set(state.longest_search);
        self.keys.set(state.keys);
        *self.directory.borrow_mut() = state.directory;
        self.restore_dirty(state.dirty, slots).await?;
        let next = self.front.replay_log(from, log.groups, flushed.sequence)?;
        let (sync, extents) = (self.options.log_sync, log.extents.into());
        let manifest = self.manifest.as_ref().expect("a store that is reopened has one");
        let start = RunStart { run: scan.next_run, group: next };
        self.front.set_up_log(manifest, sync, start, extents);
        self.count_memory();
        Ok(self.write_checkpoint(manifest, &self.encode(&Edit::default())).await?)
    }

    /// Replays checkpoint and edits.
    fn replay(&self, scan: &Scan) -> Result<Replayed, OpenError> {
        let bad = || OpenError::DamagedJournal("an edit of the manifest cannot be read");
        let (shape, format) = (self.store.shape, self.store.format);
        let (checkpoint, edits) = scan.manifest.split_first().ok_or(OpenError::NoManifest)?;
        let (image, edit) = dump::parts_of_checkpoint(checkpoint).ok_or(OpenError::BadDump)?;
        let state = dump::restore(image, shape, format, self.table.pages);
        let mut state = state.ok_or(OpenError::BadDump)?;
        state.extents.begin_run(scan.noted_run);
        let mut replayed = Replayed { state, slots: BTreeMap::new() };
        for bytes in [edit].into_iter().chain(edits.iter().map(Vec::as_slice)) {
            let (edit, totals) = edit_codec::decode(bytes, format).ok_or_else(bad)?;
            let is_slot = |change: &SlotChange| {
                change.at.page < self.table.pages && change.at.index < self.buckets.slots
            };
            let is_page = |write: &PageWrite| {
                write.page < self.table.pages && shape.extent_of(write.at).0 < shape.extents
            };
            let are_places = edit.slots.iter().all(is_slot) && edit.pages.iter().all(is_page);
            if !are_places || totals.keys > self.table.slots() {
                return Err(bad());
            }
            replayed.state.keys = totals.keys;
            replayed.state.longest_search = totals.longest_search;
            replayed.replay(edit, &format).ok_or_else(bad)?;
        }
        if !replayed.state.counts_its_pages() {
            let what = "it counts other bucket pages than the directory has";
            return Err(OpenError::DamagedJournal(what));
        }
        Ok(replayed)
    }

    /// Applies `slots` to their bucket pages, and adds all pages that differ from the medium to the
    /// cache.
    async fn restore_dirty(
        &self,
        mut dirty: BTreeMap<u32, (u64, Box<[u8]>)>,
        slots: BTreeMap<u32, Vec<SlotChange>>,
    ) -> Result<(), OpenError> {
        for (page, changes) in slots {
            let at = self.directory.borrow()[page as usize];
            let mut bytes = match (dirty.remove(&page), at) {
                (Some((_, bytes)), _) => bytes,
                (None, Some(at)) => self.read_bucket(page, at, IoClass::Journal).await?,
                (None, None) => self.buckets.blank(),
            };
            for change in changes {
                self.buckets.set(&mut bytes, change.at.index, change.slot);
            }
            dirty.insert(page, (0, bytes));
        }
        let what = "there are more changed bucket pages than memory had room for";
        for (page, (_, bytes)) in dirty {
            self.install_dirty(page, bytes).ok_or(OpenError::DamagedJournal(what))?;
        }
        Ok(())
    }
}

impl Replayed {
    fn replay(&mut self, edit: Edit, format: &PointerFormat) -> Option<()> {
        let Edit { slots, pages, changes, flushed, retired } = edit;
        for change in slots {
            self.slots.entry(change.at.page).or_default().push(change);
        }
        for PageWrite { page, changes, at } in pages {
            self.state.directory[page as usize] = Some(at);
            if self.state.dirty.get(&page).is_some_and(|(last, _)| *last <= changes) {
                self.state.dirty.remove(&page);
            }
            if let Some(slots) = self.slots.get_mut(&page) {
                slots.retain(|change| change.number > changes);
                if slots.is_empty() {
                    self.slots.remove(&page);
                }
            }
        }
        self.state.extents.replay(&changes, format)?;
        if let Some(flushed) = flushed {
            // No sequence number is assigned twice: a write with an old number would count as
            // flushed.
            self.state.sequence = self.state.sequence.max(flushed.sequence);
            self.state.flushed = flushed;
        }
        for id in retired {
            self.state.extents.replay_retired(id)?;
        }
        Some(())
    }
}
