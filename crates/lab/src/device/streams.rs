//! What the clients of a stream share while a job runs.

use std::cell::{Cell, RefCell};

use block::nvme::SetId;
use runtime::{Handle, Nanos, Notify};

use super::plan::StreamPlan;
use super::source::{Operation, Source};
use super::thinking::Thinking;

/// A stream and what its clients share.
pub(super) struct Stream<D> {
    pub plan: StreamPlan,
    pub jobs: Vec<OfJob<D>>,
    pub is_over: Cell<bool>,
    pub over: Notify,
}

/// What the clients of one of a stream's jobs share.
pub(super) struct OfJob<D> {
    /// The device by a submission queue of its own, as a job of fio has it.
    pub device: D,
    pub source: RefCell<Source>,
    /// Writes since the last flush began.
    writes: Cell<u64>,
    pub thinking: Option<Thinking>,
    /// How late its newest operation began, in an open loop.
    pub late: Cell<Nanos>,
}

/// Blocks of a set that an operation goes to.
pub(super) struct Place {
    pub set: SetId,
    /// Where the ledger of the set is in the list of them.
    pub ledger: usize,
    pub first: u64,
    pub blocks: u64,
}

impl Place {
    pub(super) fn of(plan: &StreamPlan, operation: &Operation) -> Self {
        let (set, ledger) = plan.sets[operation.set];
        Self { set, ledger, first: operation.first, blocks: operation.blocks }
    }

    /// Blocks to read or write.
    pub(super) fn data_blocks(&self) -> u32 {
        u32::try_from(self.blocks).expect("jobs read and write a few MiB at a time")
    }
}

impl<D> Stream<D> {
    pub(super) fn new(
        handle: &Handle,
        index: usize,
        plan: StreamPlan,
        queue: &mut impl FnMut() -> D,
    ) -> Self {
        let of_job = |job: usize| {
            let label = match job {
                0 => format!("stream {index}"),
                job => format!("stream {index} job {job}"),
            };
            OfJob {
                device: queue(),
                source: RefCell::new(Source::new(&plan, job, handle.rng(&label))),
                writes: Cell::new(0),
                thinking: plan.thinks.map(|(pause, every)| Thinking::new(pause, every)),
                late: Cell::default(),
            }
        };
        let jobs = (0..plan.parts.len()).map(of_job).collect();
        Self { jobs, plan, is_over: Cell::new(false), over: Notify::default() }
    }

    /// Nothing more begins.
    pub(super) fn stop(&self) {
        for job in &self.jobs {
            job.source.borrow_mut().stop();
        }
    }
}

impl<D> OfJob<D> {
    /// Counts a write. Whether a flush is due after so many.
    pub(super) fn flush_is_due(&self, every: Option<u64>) -> bool {
        let Some(every) = every else { return false };
        let writes = self.writes.get() + 1;
        self.writes.set(if writes == every { 0 } else { writes });
        writes == every
    }
}
