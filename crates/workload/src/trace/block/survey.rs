//! Survey of a whole trace, made before its replay, so that an error in the last line costs no run.

use std::io::BufRead;

use runtime::Nanos;

use super::{Action, BlockFormat, BlockOp, BlockReader, Kind, TraceError};

/// Summary of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockSurvey {
    /// Format.
    pub format: BlockFormat,
    /// The action that counts, of blkparse's output.
    pub action: Action,
    /// Lines.
    pub lines: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Trims.
    pub trims: u64,
    /// Flushes.
    pub flushes: u64,
    /// Lines of operations without effect: of zero bytes, or commands without an address.
    pub left_out: u64,
    /// Operations with an earlier recorded time than the previous one, whose time they get.
    pub out_of_order: u64,
    /// Files, devices or disks, at most 256.
    pub sources: u64,
    /// Time from the beginning to the last operation; `None` if the trace has no times.
    pub span: Option<Nanos>,
    /// End of the last byte that is read, written or trimmed.
    pub end: u64,
    /// Most bytes of a read or write.
    pub largest: u64,
}

impl BlockSurvey {
    /// Surveys a trace from its beginning to its end. Calls `open` once, or twice if `action` is
    /// `None` and a trace of blkparse has no queued operations.
    ///
    /// # Errors
    /// Returns [`TraceError`] for the first invalid line, or if the trace has no operations to
    /// replay.
    pub fn of<R: BufRead>(
        origin: &str,
        format: BlockFormat,
        action: Option<Action>,
        mut open: impl FnMut() -> Result<R, TraceError>,
    ) -> Result<Self, TraceError> {
        let (mut survey, issued) = Self::by(origin, format, action.unwrap_or_default(), open()?)?;
        if survey.operations() == 0 && issued > 0 && action.is_none() {
            (survey, _) = Self::by(origin, format, Action::Issued, open()?)?;
        }
        if survey.operations() == 0 {
            let what = format!("none of its {} lines is an operation on bytes", survey.lines);
            return Err(TraceError::Nothing { origin: origin.to_owned(), what });
        }
        Ok(survey)
    }

    /// Surveys by one action. Also returns the number of issued events, for a trace of blkparse.
    fn by(
        origin: &str,
        format: BlockFormat,
        action: Action,
        input: impl BufRead,
    ) -> Result<(Self, u64), TraceError> {
        let BlockReader(mut reader) = BlockReader::new(origin, format, action, input);
        let mut survey = Self {
            format,
            action,
            lines: 0,
            reads: 0,
            writes: 0,
            trims: 0,
            flushes: 0,
            left_out: 0,
            out_of_order: 0,
            sources: 0,
            span: None,
            end: 0,
            largest: 0,
        };
        for record in reader.by_ref() {
            let record = record?;
            *match record.op {
                BlockOp::Read => &mut survey.reads,
                BlockOp::Write => &mut survey.writes,
                BlockOp::Trim => &mut survey.trims,
                BlockOp::Flush => &mut survey.flushes,
            } += 1;
            survey.end = survey.end.max(record.offset + record.bytes);
            if matches!(record.op, BlockOp::Read | BlockOp::Write) {
                survey.largest = survey.largest.max(record.bytes);
            }
        }
        survey.lines = reader.lines();
        let parser = reader.parser();
        let counts = parser.counts();
        (survey.left_out, survey.sources) = (counts.left_out, counts.sources.count());
        survey.out_of_order = counts.clock.out_of_order();
        survey.span = parser.has_times().then(|| counts.clock.last());
        let issued = if let Kind::Blkparse(parser) = &parser.0 { parser.issued() } else { 0 };
        Ok((survey, issued))
    }

    /// Returns the number of operations.
    pub fn operations(&self) -> u64 {
        self.reads + self.writes + self.trims + self.flushes
    }
}
