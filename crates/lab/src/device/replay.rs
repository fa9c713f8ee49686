//! Operations of a stream that come from a trace.
//!
//! As recorded, each begins when it did, counted from the beginning of the stream and stretched by a factor: an open loop. Otherwise
//! the next begins whenever one of those outstanding has ended. Memory: a buffer of the file, and one operation.

use runtime::Nanos;
use workload::trace::TraceError;
use workload::trace::block::{Action, BlockFormat, BlockOp, BlockReader, BlockRecord, BlockSurvey};

use super::addresses::Addresses;
use super::report::Direction;
use super::source::Operation;
use crate::traces::{self, TraceFile, TraceInput};
use crate::units::printable;

/// A trace of a block drive that was looked at.
pub type Trace = traces::Trace<BlockSurvey>;

impl Trace {
    /// Reads a trace from its beginning to its end, and keeps what is in it as a whole. Its format is found out unless it is given, and
    /// of blktrace's actions Q counts, or D where there is no Q.
    ///
    /// # Errors
    /// [`TraceError`]: which line is not as it should be.
    pub fn look(
        path: &str,
        format: Option<BlockFormat>,
        action: Option<Action>,
    ) -> Result<Self, TraceError> {
        let survey =
            |shown: &str, format| BlockSurvey::of(shown, format, action, || traces::open(path));
        Self::look_by(path, format, BlockFormat::detect, survey)
    }

    /// What of it is named among all that went into a run.
    pub fn input(&self) -> TraceInput {
        let BlockSurvey { format, lines, .. } = self.survey;
        self.input_of(format.name(), lines, self.survey.operations())
    }
}

/// How a trace is replayed on a drive.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct ReplayPlan {
    pub trace: Trace,
    pub addresses: Addresses,
    /// What recorded times are multiplied by; nothing if operations follow each other as fast as they may.
    pub pace: Option<f64>,
}

/// What was done to operations to fit them on the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fitted {
    /// They lay beyond the part of the drive.
    pub wrapped: u64,
    /// They did not begin and end with blocks.
    pub widened: u64,
    /// Trims of no whole block, which were left out.
    pub dropped: u64,
}

/// The operations of a trace, one after the other.
pub(super) struct Replay {
    reader: Result<BlockReader<TraceFile>, Option<TraceError>>,
    addresses: Addresses,
    pace: Option<f64>,
    fitted: Fitted,
}

impl Replay {
    /// Opens the trace; that it cannot be opened is told by [`Self::failure`].
    pub(super) fn new(plan: &ReplayPlan) -> Self {
        let Trace { path, survey, .. } = &plan.trace;
        let reader = traces::open(path);
        let reader = reader
            .map(|file| BlockReader::new(&printable(path), survey.format, survey.action, file));
        Self {
            reader: reader.map_err(Some),
            addresses: plan.addresses,
            pace: plan.pace,
            fitted: Fitted::default(),
        }
    }

    /// What has ended it before its time, if anything has; told once.
    pub(super) fn failure(&mut self) -> Option<TraceError> {
        self.reader.as_mut().err().and_then(Option::take)
    }

    pub(super) fn fitted(&self) -> Fitted {
        self.fitted
    }

    /// The next operation of a stream that began at `since`, `first` being where its part of each set begins.
    pub(super) fn next(&mut self, since: Nanos, now: Nanos, first: u64) -> Option<Operation> {
        loop {
            let record = match self.reader.as_mut().ok()?.next()? {
                Ok(record) => record,
                Err(error) => {
                    self.reader = Err(Some(error));
                    return None;
                }
            };
            let at =
                self.pace.map_or(now, |pace| since + Nanos((record.at.0 as f64 * pace) as u64));
            if let Some(operation) = self.operation(&record, at, first) {
                return Some(operation);
            }
            self.fitted.dropped += 1;
        }
    }

    fn operation(&mut self, record: &BlockRecord, at: Nanos, first: u64) -> Option<Operation> {
        let direction = match record.op {
            BlockOp::Read => Direction::Read,
            BlockOp::Write => Direction::Write,
            BlockOp::Trim => Direction::Trim,
            BlockOp::Flush => {
                let direction = Direction::Flush;
                return Some(Operation {
                    at,
                    direction,
                    set: 0,
                    first,
                    blocks: 0,
                    is_written_after: false,
                });
            }
        };
        let stretch = self.addresses.of(record)?;
        self.fitted.wrapped += u64::from(stretch.is_wrapped);
        self.fitted.widened += u64::from(stretch.is_widened);
        Some(Operation {
            at,
            direction,
            set: stretch.set,
            first: first + stretch.first,
            blocks: stretch.blocks,
            is_written_after: false,
        })
    }
}
