//! The operations of a stream that replays a trace.
//!
//! At the recorded speed, each operation begins at its recorded time, multiplied by a factor and
//! counted from the start of the stream: an open loop. Otherwise the next operation begins when an
//! outstanding one has ended. Memory: a buffer of the file, and one operation.

use report::units::printable;
use runtime::Nanos;
use workload::trace::TraceError;
use workload::trace::block::{Action, BlockFormat, BlockOp, BlockReader, BlockRecord, BlockSurvey};

use crate::addresses::Addresses;
use crate::operation::{Direction, Operation};
use crate::traces;
use crate::traces::{TraceFile, TraceInput};

/// A block-drive trace with its survey.
pub type Trace = traces::Trace<BlockSurvey>;

impl Trace {
    /// Surveys a trace, from beginning to end. Detects the format if none is given. Of blktrace's
    /// actions Q counts by default, or D if the trace has no Q.
    ///
    /// # Errors
    /// Returns [`TraceError`] if the trace cannot be read, has an invalid line or has no
    /// operations.
    pub fn look(
        path: &str,
        format: Option<BlockFormat>,
        action: Option<Action>,
    ) -> Result<Self, TraceError> {
        let survey =
            |shown: &str, format| BlockSurvey::of(shown, format, action, || traces::open(path));
        Self::look_by(path, format, BlockFormat::detect, survey)
    }

    /// Returns the description of the trace among the inputs of a run.
    pub fn input(&self) -> TraceInput {
        let BlockSurvey { format, lines, .. } = self.survey;
        self.input_of(format.name(), lines, self.survey.operations())
    }
}

/// The replay of a trace on a drive.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct ReplayPlan {
    pub trace: Trace,
    pub addresses: Addresses,
    /// The factor on recorded times; `None` if operations follow each other as fast as possible.
    pub pace: Option<f64>,
}

/// Changes to operations that fit them to the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fitted {
    /// Operations that crossed the end of the part of the drive, or were beyond it.
    pub wrapped: u64,
    /// Operations that did not begin and end at block boundaries.
    pub widened: u64,
    /// Trims of no whole block, which were dropped.
    pub dropped: u64,
}

/// The operations of a trace, in order.
pub(super) struct Replay {
    reader: Result<BlockReader<TraceFile>, Option<TraceError>>,
    addresses: Addresses,
    pace: Option<f64>,
    fitted: Fitted,
}

impl Replay {
    /// Opens the trace. If that fails, [`Self::failure`] returns the error.
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

    /// Returns the error that ended the replay early, once.
    pub(super) fn failure(&mut self) -> Option<TraceError> {
        self.reader.as_mut().err().and_then(Option::take)
    }

    pub(super) fn fitted(&self) -> Fitted {
        self.fitted
    }

    /// Returns the next operation of a stream that began at `since`; `first` is the start of its
    /// part in each set.
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
