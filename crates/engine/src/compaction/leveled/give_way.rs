//! Preemption between two steps of a merge: compactions below L0 give way to those out of L0, and
//! to clients. The decisions are made in `super::preemption`.

use std::rc::Rc;

use runtime::{IoClass, Nanos};

use super::inputs::RunReader;
use super::picker::removed;
use super::preemption::{Standing, Turn, turn};
use super::{TableJob, Worker};
use crate::engine::Inner;
use crate::error::EngineError;
use crate::manifest::changes::Changes;
use crate::manifest::edit::Edit;
use crate::medium::Medium;
use crate::options::tables::Preemption;
use crate::planted::Fault;
use crate::space::apart::Apart;
use crate::version::open_table::Table;
use crate::version::tree::TreeEdit;

/// The interval at which a paused compaction checks whether clients still need the medium (SILK's
/// interval).
const PAUSE: Nanos = Nanos::from_millis(10);

/// The urgency of a compaction's reads and writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Urgency {
    /// The urgency of compactions out of L0.
    L0,
    Rest,
}

impl Urgency {
    pub(super) fn of_reads(self) -> IoClass {
        match self {
            Self::L0 => IoClass::L0CompactionRead,
            Self::Rest => IoClass::CompactionRead,
        }
    }

    pub(super) fn of_writes(self) -> IoClass {
        match self {
            Self::L0 => IoClass::L0CompactionWrite,
            Self::Rest => IoClass::CompactionWrite,
        }
    }
}

/// The state by which a job decides to give way.
pub(super) struct Courtesy {
    urgency: Urgency,
    /// The change counter of `Tables` at which the other fields were determined.
    seen: Option<u64>,
    blocks_l0: bool,
    l0_runs: bool,
}

impl Courtesy {
    pub(super) fn of(job: &TableJob) -> Self {
        let urgency = if job.from == 0 { Urgency::L0 } else { Urgency::Rest };
        Self { urgency, seen: None, blocks_l0: false, l0_runs: false }
    }
}

impl<M: Medium> Inner<M> {
    /// Whether a job may have to wait for other work. If space is short it may not, because then
    /// all other work waits for compaction.
    fn is_deferrable(&self, job: &TableJob) -> bool {
        job.from > 0 && job.frugal.is_none() && !self.is_squeezing.get()
    }

    fn is_paused(&self) -> bool {
        self.store.medium.pauses(IoClass::CompactionRead)
    }

    /// Whether a job of any level may begin now without having to give way at once.
    pub(super) fn may_begin(&self, job: &TableJob) -> bool {
        if job.is_move || !self.is_deferrable(job) {
            return true;
        }
        let tables = self.tables_of();
        let gives_way = || tables.l0_runs() || tables.blocks_l0(&self.store.shape, job);
        let is_preempted = tables.options.preemption != Preemption::None && gives_way();
        !is_preempted && !self.is_paused()
    }

    /// Waits until there may be work. The end of a pause is not notified, so it is polled.
    pub(super) async fn wait_for_work(&self, worker: Worker) {
        if worker != Worker::L0 && self.is_paused() {
            self.store.handle.sleep(PAUSE).await;
        } else {
            self.store.work.notified().await;
        }
    }

    /// Gives way to other work if required. Returns the urgency of the next step; `None` if the job
    /// must be discarded.
    pub(super) async fn give_way(
        &self,
        job: &TableJob,
        courtesy: &mut Courtesy,
    ) -> Option<Urgency> {
        let (store, mut has_waited) = (&self.store, None);
        loop {
            let next = self.turn_of(job, courtesy);
            if matches!(next, Turn::WaitForL0 | Turn::Pause) && has_waited.is_none() {
                has_waited = Some(store.handle.now());
                self.stats.borrow_mut().tables.yields += 1;
            }
            match next {
                Turn::WaitForL0 => store.work.notified().await,
                Turn::Pause => store.handle.sleep(PAUSE).await,
                Turn::GoOn | Turn::GoOnForL0 | Turn::Discard => {
                    let span = has_waited.map_or(0, |since| (store.handle.now() - since).0);
                    self.stats.borrow_mut().tables.yielded_ns += span;
                    let urgency =
                        if next == Turn::GoOnForL0 { Urgency::L0 } else { courtesy.urgency };
                    return (next != Turn::Discard).then_some(urgency);
                }
            }
        }
    }

    fn turn_of(&self, job: &TableJob, courtesy: &mut Courtesy) -> Turn {
        let tables = self.tables_of();
        let (preemption, is_paused) = (tables.options.preemption, self.is_paused());
        let may_wait = is_paused || preemption != Preemption::None;
        if !may_wait || !self.is_deferrable(job) || !self.store.is_healthy() {
            return Turn::GoOn;
        }
        if courtesy.seen.replace(tables.changes.get()) != Some(tables.changes.get()) {
            courtesy.blocks_l0 = tables.blocks_l0(&self.store.shape, job);
            courtesy.l0_runs = tables.l0_runs();
        }
        let Courtesy { blocks_l0, l0_runs, .. } = *courtesy;
        turn(Standing { preemption, blocks_l0, l0_runs, is_paused })
    }

    /// Discards a job. One edit marks the pages it wrote as live and dead, so that its extents are
    /// released like others, and their generations are known after a power cut. A power cut before
    /// that edit finds the same state as for any unfinished job.
    pub(super) fn discard(
        &self,
        job: &TableJob,
        readers: &[RunReader],
        added: Vec<(usize, Rc<Table>)>,
        apart: Apart<'_, M>,
    ) -> Result<(), EngineError> {
        if self.planted.has(Fault::DiscardedIsPublished) {
            drop(apart);
            let edit = TreeEdit { removed: removed(job), added };
            self.install(self.edit_of_tables(edit))?;
            return Ok(());
        }
        let mut pages = apart.abandon();
        let mut changes = Changes::default();
        for (_, table) in &added {
            pages.extend(table.meta.page_numbers(&self.store.shape));
        }
        for page in &pages {
            self.store.publish_page(&mut changes, *page);
            self.store.mark_page_dead(&mut changes, *page);
        }
        self.count_discarded(pages.len(), readers);
        self.install(Edit { changes, ..Edit::default() })?;
        Ok(())
    }

    fn count_discarded(&self, written: usize, readers: &[RunReader]) {
        let stats = &mut self.stats.borrow_mut().tables;
        stats.discarded_jobs += 1;
        stats.discarded_written_pages += written as u64;
        stats.discarded_read_pages += readers.iter().map(|reader| reader.read).sum::<u64>();
    }
}
