//! Opening a store whose memory is gone: from manifest and log.
//!
//! The newest checkpoint is restored and the edits behind it are replayed; then the extents are
//! compared with what the medium holds, which may be ahead: what was written and never committed is
//! released, or left as a hole. The log from the last flush on goes into memtables, pinned levels are
//! read, and a new checkpoint says where all of it stands now. A power cut anywhere in between leaves
//! the old checkpoint in force. Cost: a look at each extent, the journal, and the pinned levels.

use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use crate::error::OpenError;
use crate::format::codec::Reader;
use crate::format::page::PageKind;
use crate::journal::log::Log;
use crate::journal::manifest::Manifest;
use crate::journal::scan::{FoundLog, Scan};
use crate::lsm::level::{Location, NamedSegment, Segment};
use crate::lsm::open::Setup;
use crate::lsm::version::{LevelEdit, Version};
use crate::lsm::{Engine, Inner, dump, edit_codec};
use crate::planted::Fault;
use crate::records::read_record;
use crate::store::extents::Extents;
use crate::store::medium::{ExtentId, Medium, Stream};

impl<M: Medium> Engine<M> {
    /// The store that the medium holds, or a new one if nothing was ever written there; for designs
    /// with a log. Background tasks start at once.
    ///
    /// # Errors
    /// [`OpenError`].
    pub async fn open(setup: Setup<M>) -> Result<Self, OpenError> {
        let mut engine = Self::build(setup)?;
        let scan = engine.inner.store.scan().await?;
        let Some(scan) = scan else {
            engine.inner.release_torn().await?;
            engine.start_tasks();
            return Ok(engine);
        };
        let inner = Rc::get_mut(&mut engine.inner).expect("nobody has it yet");
        inner.manifest = Some(Manifest::new(scan.last_epoch, scan.manifest_extents()));
        engine.inner.restore(&scan).await?;
        engine.start_tasks();
        Ok(engine)
    }
}

impl<M: Medium> Inner<M> {
    /// A new store may have lost power in its first checkpoint: what is there is nobody's.
    async fn release_torn(&self) -> Result<(), OpenError> {
        for id in (0..self.store.shape.extents).map(ExtentId) {
            if self.store.medium.frontier(id).await? > 0 {
                self.store.medium.release(id).await?;
            }
        }
        Ok(())
    }

    async fn restore(self: &Rc<Self>, scan: &Scan) -> Result<(), OpenError> {
        let store = &self.store;
        let epoch = scan.last_epoch.checked_add(1);
        let epoch = epoch.ok_or(OpenError::DamagedJournal("it counts epochs beyond all bounds"))?;
        store.id.set(scan.id);
        let (version, extents) = self.replay(scan)?;
        let log = scan.log_from(self.first_group_to_replay())?;
        *store.extents.borrow_mut() = extents;
        self.settle_extents(scan, &log).await?;
        let version = self.with_pinned_levels(version).await?;
        version.assert_consistent();
        self.account(&version);
        *self.version.borrow_mut() = Rc::new(version);
        let from = self.first_group_to_replay();
        self.replay_log(from, &log)?;
        let next = from + log.groups.len() as u64;
        self.set_up_log(epoch, next, log.extents.into());
        let manifest = self.manifest.as_ref().expect("a store that is reopened has one");
        Ok(manifest.checkpoint(store, &self.checkpoint()).await?)
    }

    /// The log of a store, and the extents that are set aside for it: enough for what memtables hold
    /// twice over, one that is being filled, and one that is being released.
    pub(crate) fn set_up_log(&self, epoch: u32, next: u64, extents: VecDeque<(ExtentId, u64)>) {
        let memtables = self.options.frozen_memtables as u32 + 1;
        let pages = 2 * memtables * self.store.pages_of_memtable(self.options.memtable_bytes);
        let due = self.store.extents_of(pages) + 2;
        self.store.set_aside[Stream::Log as usize].set(due);
        let log = Log::new(Rc::clone(&self.store), self.options.log_sync, epoch, next, extents);
        *self.front.log.borrow_mut() = Some(Rc::new(log));
    }

    /// Checkpoint and edits.
    fn replay(&self, scan: &Scan) -> Result<(Version, Extents), OpenError> {
        let bad = || OpenError::DamagedJournal("an edit of the manifest cannot be read");
        let (checkpoint, edits) = scan.manifest.split_first().ok_or(OpenError::NoManifest)?;
        let empty = Rc::clone(&self.version.borrow());
        let restored = dump::restore(checkpoint, &empty, &self.home());
        let restored = restored.ok_or(OpenError::BadDump)?;
        self.front.sequence.set(restored.sequence);
        self.flushed.set(restored.flushed);
        *self.plan.borrow_mut() = restored.plan;
        *self.cursors.borrow_mut() = restored.cursors;
        let (mut version, mut extents) = (restored.version, restored.extents);
        for bytes in edits {
            let edit = edit_codec::decode(bytes, &self.home()).ok_or_else(bad)?;
            version = version.replay(edit.levels).ok_or_else(bad)?;
            extents.replay(&edit.changes).ok_or_else(bad)?;
            if let Some(flushed) = edit.flushed {
                // No number is given twice: a write with an old one would count as flushed.
                let sequence = self.front.sequence.get().max(flushed.sequence);
                if !self.store.planted.has(Fault::SequenceGoesBack) {
                    self.front.sequence.set(sequence);
                }
                self.flushed.set(flushed);
            }
            if let Some(id) = edit.retired {
                extents.replay_retired(id).ok_or_else(bad)?;
            }
        }
        Ok((version, extents.settled()))
    }

    fn first_group_to_replay(&self) -> u64 {
        if self.store.planted.has(Fault::ReplayTrimmedLog) {
            0
        } else {
            self.flushed.get().log_from
        }
    }

    /// Brings the extents in line with what the medium holds.
    async fn settle_extents(&self, scan: &Scan, log: &FoundLog) -> Result<(), OpenError> {
        let store = &self.store;
        let needed: BTreeSet<ExtentId> =
            scan.manifest_extents().into_iter().chain(log.extents.iter().map(|e| e.0)).collect();
        for (id, found) in (0..).map(ExtentId).zip(&scan.extents) {
            let generation = found.first.map(|first| first.generation);
            let holds_index = store.extents.borrow().holds_index(id);
            if holds_index {
                let resumed = store.extents.borrow_mut().catch_up(id, found.frontier);
                let what = "pages that the manifest refers to are gone";
                resumed.ok_or(OpenError::DamagedJournal(what))?;
            } else if needed.contains(&id) {
                let first = found.first.expect("the scan knows it by its first page");
                let stream = match first.kind {
                    PageKind::Log => Stream::Log,
                    _ => Stream::Manifest,
                };
                store.extents.borrow_mut().adopt(id, stream, first.generation, found.frontier);
            } else {
                if found.frontier > 0 {
                    store.medium.release(id).await?;
                }
                store.extents.borrow_mut().become_free(id, generation);
            }
        }
        Ok(())
    }

    /// Reads what is pinned.
    async fn with_pinned_levels(&self, mut version: Version) -> Result<Version, OpenError> {
        let pinned = self.plan.borrow().pinned as usize;
        for n in 0..pinned.min(version.levels().len()) {
            let level = Rc::clone(&version.levels()[n]);
            let images = self.load(&level, 0..level.len()).await?;
            let cached = |(named, image): (NamedSegment, runtime::PageImage)| {
                let page = named.segment.location.page();
                let location = Location::Cached(page.expect("it was read from there"), image);
                let segment = Segment::new(location, named.segment.entries, &self.pool);
                NamedSegment { segment, ..named }
            };
            let new = level.named(0..level.len()).into_iter().zip(images).map(cached).collect();
            version = version.edited(vec![LevelEdit { level: n, range: 0..level.len(), new }]);
        }
        Ok(version)
    }

    /// Puts what the log holds in memtables.
    fn replay_log(&self, from: u64, log: &FoundLog) -> Result<(), OpenError> {
        let bad = || OpenError::DamagedJournal("a write in the log cannot be read");
        let replays_all = self.store.planted.has(Fault::ReplayTrimmedLog);
        let (mut newest, longest) = (None, self.store.max_value_bytes());
        for (group, bytes) in (from..).zip(&log.groups) {
            let input = &mut Reader::new(bytes);
            while !input.is_at_end() {
                let record = read_record(input, longest).ok_or_else(bad)?;
                if newest.is_some_and(|newest| record.sequence <= newest) {
                    return Err(bad());
                }
                newest = Some(record.sequence);
                if record.sequence <= self.flushed.get().sequence && !replays_all {
                    continue;
                }
                self.front.replay(group, record);
            }
        }
        Ok(())
    }
}
