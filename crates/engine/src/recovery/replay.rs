//! The part of reopening from the journal that all indexes share.

use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use super::found::{Found, FoundLog, Scan};
use super::scan::of_read;
use crate::error::OpenError;
use crate::format::codec::Reader;
use crate::format::object::Sequence;
use crate::format::page::PageKind;
use crate::manifest::{Manifest, RunStart};
use crate::medium::{ExtentId, Medium, MediumError, Stream};
use crate::planted::Fault;
use crate::space::PageStore;
use crate::wal::group_pages::FoundGroup;
use crate::wal::log::Log;
use crate::wal::records::read_record;
use crate::wal::{Flushed, LogSync};
use crate::write::Front;

impl<M: Medium> PageStore<M> {
    /// Releases the remains of a new store that lost power during its first checkpoint.
    ///
    /// # Errors
    /// Returns [`OpenError::Medium`].
    pub async fn release_torn(&self) -> Result<(), OpenError> {
        for store in [self].into_iter().chain(self.journal.get().map(|journal| &**journal)) {
            let medium = &store.medium;
            let mut written = Vec::new();
            for id in (0..store.shape.extents).map(ExtentId) {
                if medium.is_written_anywhere() || medium.frontier(id).await? > 0 {
                    written.push(id);
                }
            }
            store.release_all(written).await?;
        }
        Ok(())
    }

    /// Releases extents of the medium in parallel.
    async fn release_all(&self, ids: Vec<ExtentId>) -> Result<(), MediumError> {
        let releases: Vec<_> = ids.into_iter().map(|id| self.medium.release(id)).collect();
        for release in releases {
            release.await?;
        }
        Ok(())
    }

    /// Returns the WAL group to replay from.
    pub fn first_group_to_replay(&self, flushed: Flushed) -> u64 {
        if self.planted.has(Fault::ReplayTrimmedLog) { 0 } else { flushed.log_from }
    }

    /// Reconciles the extents with the contents of the medium. Releases the unneeded extents in
    /// parallel.
    ///
    /// # Errors
    /// Returns [`OpenError::DamagedJournal`] if pages are missing, or [`OpenError::Medium`].
    pub async fn settle_extents(&self, scan: &Scan, log: &FoundLog) -> Result<(), OpenError> {
        let needed: BTreeSet<ExtentId> =
            log.extents.iter().map(|e| e.0).chain(scan.manifest_extents.iter().copied()).collect();
        let of_journal = |error: OpenError| {
            if self.has_journal_apart() { error.of_journal() } else { error }
        };
        for (store, found) in [(self, Some(&scan.extents)), (self.journal(), scan.apart.as_ref())] {
            found.map_or(Ok(()), |found| store.check_needed(found))?;
        }
        self.begin_run(scan.next_run);
        // This must precede all releases, which rely on these groups.
        self.write_last_groups(scan, &needed).await.map_err(of_journal)?;
        let Some(apart) = &scan.apart else {
            return self.settle(&scan.extents, &needed, None).await;
        };
        self.settle(&scan.extents, &BTreeSet::new(), None).await?;
        // Checkpoints do not contain the generations of these extents: they continue after the
        // newest generation found.
        let firsts = apart.iter().filter_map(|found| found.first);
        let newest = firsts.map(|first| first.generation()).max();
        self.journal().settle(apart, &needed, newest).await.map_err(OpenError::of_journal)
    }

    /// Checks that the manifest refers to no extent in doubt.
    fn check_needed(&self, found: &[Found]) -> Result<(), OpenError> {
        let extents = self.extents.borrow();
        let lost = (0..).map(ExtentId).zip(found).find_map(|(id, found)| {
            let is_needed = extents.holds_index(id) && !extents.is_unused(id);
            found.doubt.filter(|_| is_needed)
        });
        lost.map_or(Ok(()), |why| Err(of_read(why)))
    }

    /// Reconciles extents with the scan's result. Free extents get at least generation `newest`.
    async fn settle(
        &self,
        found: &[Found],
        needed: &BTreeSet<ExtentId>,
        newest: Option<u32>,
    ) -> Result<(), OpenError> {
        let mut unneeded = Vec::new();
        for (id, found) in (0..).map(ExtentId).zip(found) {
            let generation = found.first.map(|first| first.generation()).max(newest);
            // Old contents of an unused extent may still be readable, so it is opened anew before
            // use.
            let is_anywhere = self.medium.is_written_anywhere();
            let is_unused = is_anywhere && self.extents.borrow().is_unused(id);
            let holds_index = !is_unused && self.extents.borrow().holds_index(id);
            let holds_journal = needed.contains(&id);
            if holds_index && holds_journal {
                let what = "an extent belongs to the index and to the journal";
                return Err(OpenError::DamagedJournal(what));
            } else if holds_index {
                let resumed = self.extents.borrow_mut().catch_up(id, found.frontier);
                let what = "pages that the manifest refers to are gone";
                resumed.ok_or(OpenError::DamagedJournal(what))?;
                if self.medium.knows(id) {
                    self.extents.borrow_mut().resume(id);
                } else {
                    // Reads of its contents will return that they are lost.
                    self.extents.borrow_mut().give_up(id);
                }
            } else if holds_journal {
                let first = found.first.expect("the scan knows it by its first page");
                let stream = match first.kind {
                    PageKind::Log => Stream::Log,
                    _ => Stream::Manifest,
                };
                self.extents.borrow_mut().adopt(id, stream, first.generation(), found.end);
            } else {
                if found.end > 0 {
                    unneeded.push(id);
                }
                self.extents.borrow_mut().become_free(id, generation);
            }
        }
        // Nothing is released before all checks have passed.
        Ok(self.release_all(unneeded).await?)
    }
}

impl<M: Medium> Front<M> {
    /// Begins the first run of a new store.
    pub(crate) fn begin(&self, manifest: &Manifest, sync: LogSync) {
        let run = self.store.run_after(0).expect("it is the first");
        self.store.begin_run(run);
        self.set_up_log(manifest, sync, RunStart { run, group: 0 }, VecDeque::new());
    }

    /// Creates the WAL and begins the manifest's run. Reserves extents for the WAL; `extents` are
    /// in use by it.
    pub(crate) fn set_up_log(
        &self,
        manifest: &Manifest,
        sync: LogSync,
        start: RunStart,
        extents: VecDeque<(ExtentId, u64)>,
    ) {
        manifest.begin_run(start);
        let store = self.store.kept_journal();
        store.set_aside[Stream::Log as usize].set(self.extents_of_log());
        let log = Log::new(Rc::clone(store), sync, start, extents);
        *self.log.borrow_mut() = Some(Rc::new(log));
    }

    /// Returns the extents for the WAL: for twice the contents of the memtables, one that is being
    /// filled, and one that is being released.
    pub(crate) fn extents_of_log(&self) -> usize {
        let memtables = self.limits.frozen as u32 + 1;
        let store = self.store.journal();
        // The other medium determines the longest value that a memtable accepts.
        let is_apart = self.store.has_journal_apart();
        let longest = if is_apart { u64::from(self.store.max_value_bytes()) } else { 0 };
        let pages = 2 * memtables * store.pages_of_memtable(self.limits.bytes + longest);
        store.extents_of(pages) + 2
    }

    /// Replays WAL groups from number `from` on into memtables, except for flushed writes. Frees
    /// each group's pages before it decodes the next group. Returns the number of the next group.
    ///
    /// # Errors
    /// Returns [`OpenError::DamagedJournal`] if a write is malformed.
    pub(crate) fn replay_log(
        &self,
        from: u64,
        groups: Vec<FoundGroup>,
        flushed: Sequence,
    ) -> Result<u64, OpenError> {
        let bad = || OpenError::DamagedJournal("a write in the log cannot be read");
        let replays_all = self.store.planted.has(Fault::ReplayTrimmedLog);
        let (mut newest, longest) = (None, self.store.max_value_bytes());
        let next = from + groups.len() as u64;
        for (number, group) in (from..).zip(groups) {
            let bytes = group.into_bytes();
            let input = &mut Reader::new(&bytes);
            while !input.is_at_end() {
                let record = read_record(input, longest).ok_or_else(bad)?;
                if newest.is_some_and(|newest| record.sequence <= newest) {
                    return Err(bad());
                }
                newest = Some(record.sequence);
                if record.sequence > flushed || replays_all {
                    self.replay(number, record);
                }
            }
        }
        Ok(next)
    }

    /// Returns the flushed state after the flush of the oldest frozen memtable; `before` is the
    /// current one.
    pub(crate) fn flushed_with_oldest(&self, before: Flushed) -> Flushed {
        let memtables = self.memtables.borrow();
        let oldest = memtables.frozen.front().expect("a memtable is being flushed").borrow();
        let log = self.log.borrow();
        let next = || log.as_ref().map_or(0, |log| log.next_group());
        let log_from = memtables.first_group_without_oldest().unwrap_or_else(next);
        // Objects moved by garbage collection have old sequence numbers, and groups that are no
        // longer needed may still be pending; hence the maximum.
        Flushed {
            sequence: oldest.last_sequence().max(before.sequence),
            log_from: log_from.max(before.log_from),
        }
    }

    /// Records that all live objects of an extent were moved into memtables: it may be released
    /// once these are flushed.
    pub(crate) fn note_moved(&self, id: ExtentId) {
        let mut moved = self.store.moved.borrow_mut();
        assert!(moved.iter().all(|m| m.0 != id), "extent {} was emptied twice", id.0);
        moved.push((id, self.flushes_until_empty()));
    }

    /// Removes and returns the extents whose moved objects have been flushed.
    pub(crate) fn take_flushed_moved(&self) -> Vec<ExtentId> {
        let done = self.flushes.get();
        let ready = |moved: &mut (ExtentId, u64)| moved.1 <= done;
        self.store.moved.borrow_mut().extract_if(.., ready).map(|(id, _)| id).collect()
    }
}
