//! The state that the clients of a stream share during a job.

use std::cell::{Cell, RefCell};

use block::nvme::SetId;
use runtime::{Handle, Nanos, Notify};

use crate::operation::Operation;
use crate::plan::StreamPlan;
use crate::source::Source;
use crate::thinking::Thinking;

/// A stream and the state that its clients share.
pub(super) struct Stream<D> {
    pub plan: StreamPlan,
    pub jobs: Vec<OfJob<D>>,
    pub is_over: Cell<bool>,
    pub over: Notify,
}

/// The state that the clients of one job of a stream share.
pub(super) struct OfJob<D> {
    /// The device, by a submission queue of its own, as in fio.
    pub device: D,
    pub source: RefCell<Source>,
    /// Writes since the start of the last flush.
    writes: Cell<u64>,
    pub thinking: Option<Thinking>,
    /// The time from the intended to the actual start of the newest operation, in an open loop.
    pub late: Cell<Nanos>,
}

/// The blocks of an operation in a set.
pub(super) struct Place {
    pub set: SetId,
    /// The index of the set's ledger.
    pub ledger: usize,
    pub first: u64,
    pub blocks: u64,
}

impl Place {
    pub(super) fn of(plan: &StreamPlan, operation: &Operation) -> Self {
        let (set, ledger) = plan.sets[operation.set];
        Self { set, ledger, first: operation.first, blocks: operation.blocks }
    }

    /// Returns the number of blocks to read or write.
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

    /// Prevents further operations.
    pub(super) fn stop(&self) {
        for job in &self.jobs {
            job.source.borrow_mut().stop();
        }
    }
}

impl<D> OfJob<D> {
    /// Counts a write. Returns whether a flush is due, once per `every` writes.
    pub(super) fn flush_is_due(&self, every: Option<u64>) -> bool {
        let Some(every) = every else { return false };
        let writes = self.writes.get() + 1;
        self.writes.set(if writes == every { 0 } else { writes });
        writes == every
    }
}
