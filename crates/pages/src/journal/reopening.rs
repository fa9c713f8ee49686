//! What every index does with what a power cut left of its journal.

use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use crate::error::{EngineError, OpenError};
use crate::format::codec::Reader;
use crate::format::object::Sequence;
use crate::format::page::PageKind;
use crate::front::Front;
use crate::journal::groups::FoundGroup;
use crate::journal::log::Log;
use crate::journal::manifest::{Manifest, RunStart};
use crate::journal::scan::{Found, FoundLog, Scan, of_read};
use crate::journal::{Flushed, LogSync};
use crate::medium::{ExtentId, Medium, MediumError, Stream};
use crate::planted::Fault;
use crate::records::read_record;
use crate::store::PageStore;

impl<M: Medium> PageStore<M> {
    /// A new store may have lost power in its first checkpoint: what is there is nobody's.
    ///
    /// # Errors
    /// [`OpenError::Medium`].
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

    /// Releases extents of the medium side by side.
    async fn release_all(&self, ids: Vec<ExtentId>) -> Result<(), MediumError> {
        let releases: Vec<_> = ids.into_iter().map(|id| self.medium.release(id)).collect();
        for release in releases {
            release.await?;
        }
        Ok(())
    }

    /// The group of the log to replay from.
    pub fn first_group_to_replay(&self, flushed: Flushed) -> u64 {
        if self.planted.has(Fault::ReplayTrimmedLog) { 0 } else { flushed.log_from }
    }

    /// Brings the extents in line with what the medium holds. What is left over is released side by side.
    ///
    /// # Errors
    /// [`OpenError::DamagedJournal`] if pages are gone; [`OpenError::Medium`].
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
        // Before anything is released because they say so.
        self.write_last_groups(scan, &needed).await.map_err(of_journal)?;
        let Some(apart) = &scan.apart else {
            return self.settle(&scan.extents, &needed, None).await;
        };
        self.settle(&scan.extents, &BTreeSet::new(), None).await?;
        // No checkpoint has the generations of its extents: they go on behind the newest that is there.
        let firsts = apart.iter().filter_map(|found| found.first);
        let newest = firsts.map(|first| first.generation()).max();
        self.journal().settle(apart, &needed, newest).await.map_err(OpenError::of_journal)
    }

    /// Nothing that the manifest refers to is in doubt.
    fn check_needed(&self, found: &[Found]) -> Result<(), OpenError> {
        let extents = self.extents.borrow();
        let lost = (0..).map(ExtentId).zip(found).find_map(|(id, found)| {
            let is_needed = extents.holds_index(id) && !extents.is_unused(id);
            found.doubt.filter(|_| is_needed)
        });
        lost.map_or(Ok(()), |why| Err(of_read(why)))
    }

    /// Brings extents in line with what was `found`. Those that are free are of generation `newest` at least.
    async fn settle(
        &self,
        found: &[Found],
        needed: &BTreeSet<ExtentId>,
        newest: Option<u32>,
    ) -> Result<(), OpenError> {
        let mut unneeded = Vec::new();
        for (id, found) in (0..).map(ExtentId).zip(found) {
            let generation = found.first.map(|first| first.generation()).max(newest);
            // What was written to an extent that is not in use may show through: it is opened anew.
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
                    // Who reads what was in it is told that it is lost.
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
        // Now that nothing speaks against opening the store.
        Ok(self.release_all(unneeded).await?)
    }
}

impl<M: Medium> Front<M> {
    /// A new store begins its first run.
    pub fn begin(&self, manifest: &Manifest, sync: LogSync) {
        let run = self.store.run_after(0).expect("it is the first");
        self.store.begin_run(run);
        self.set_up_log(manifest, sync, RunStart { run, group: 0 }, VecDeque::new());
    }

    /// The log and the manifest of a run that begins, and the extents that are set aside for the log, which has some in use.
    pub fn set_up_log(
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

    /// Extents for what memtables hold twice over, one that is being filled, and one that is being
    /// released.
    pub(crate) fn extents_of_log(&self) -> usize {
        let memtables = self.limits.frozen as u32 + 1;
        let store = self.store.journal();
        // What fits in memtables is said by the other medium.
        let is_apart = self.store.has_journal_apart();
        let longest = if is_apart { u64::from(self.store.max_value_bytes()) } else { 0 };
        let pages = 2 * memtables * store.pages_of_memtable(self.limits.bytes + longest);
        store.extents_of(pages) + 2
    }

    /// Puts what the groups of the log from number `from` on hold in memtables, but for what is flushed. A group's pages go before
    /// the next is looked at. The number of the group that comes next.
    ///
    /// # Errors
    /// [`OpenError::DamagedJournal`].
    pub fn replay_log(
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

    /// Makes the log durable as far as the oldest frozen memtable is in it. An index that changes step
    /// by step has to wait for that: of writes that it has in part, the log has all.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`] if the log cannot be written.
    pub async fn log_oldest(&self) -> Result<(), EngineError> {
        let last = self.memtables.borrow().frozen.front().and_then(|m| m.borrow().last_group());
        let log = self.log.borrow().clone();
        let log = log.filter(|_| !self.store.planted.has(Fault::TableBeforeLog));
        match (log, last) {
            (Some(log), Some(group)) => log.make_durable(group).await,
            _ => Ok(()),
        }
    }

    /// What is flushed when the oldest frozen memtable is; `before` is what was.
    pub fn flushed_with_oldest(&self, before: Flushed) -> Flushed {
        let memtables = self.memtables.borrow();
        let oldest = memtables.frozen.front().expect("a memtable is being flushed").borrow();
        let log = self.log.borrow();
        let next = || log.as_ref().map_or(0, |log| log.next_group());
        let log_from = memtables.first_group_without_oldest().unwrap_or_else(next);
        // What was moved has old numbers, and groups may wait that are not needed any more.
        Flushed {
            sequence: oldest.last_sequence().max(before.sequence),
            log_from: log_from.max(before.log_from),
        }
    }

    /// Everything in use was moved out of an extent, into memtables: it may go when they are flushed.
    pub(crate) fn note_moved(&self, id: ExtentId) {
        let mut moved = self.store.moved.borrow_mut();
        assert!(moved.iter().all(|m| m.0 != id), "extent {} was emptied twice", id.0);
        moved.push((id, self.flushes_until_empty()));
    }

    /// The extents whose objects have been flushed where they were moved to.
    pub(crate) fn take_flushed_moved(&self) -> Vec<ExtentId> {
        let done = self.flushes.get();
        let ready = |moved: &mut (ExtentId, u64)| moved.1 <= done;
        self.store.moved.borrow_mut().extract_if(.., ready).map(|(id, _)| id).collect()
    }
}
