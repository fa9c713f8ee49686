//! Traces of block drives: fio's iologs of versions 2 and 3, the text output of blkparse, and the
//! CSV of MSR Cambridge.
//!
//! Of blkparse's output the actions Q count, as in fio: the requests before a scheduler merged them
//! and before the queue of the recorded drive delayed them. A trace without such actions, because
//! only issued requests were recorded, is replayed by its actions D. Writes with `FUA` are plain
//! writes; a flush before a write is a flush.

mod blkparse;
mod iolog;
mod msr;
mod record;
mod survey;

use std::collections::VecDeque;
use std::fmt;
use std::io::BufRead;

use serde::Deserialize;

use super::{LineParser, TraceError, TraceReader, Wrong};
use blkparse::Blkparse;
use iolog::Iolog;
use msr::Msr;
use record::Counts;

pub use blkparse::Action;
pub use record::{BlockOp, BlockRecord};
pub use survey::BlockSurvey;

/// A trace format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BlockFormat {
    /// fio's iolog, version 2 or 3.
    Iolog,
    /// The default text output of blkparse.
    Blkparse,
    /// CSV of MSR Cambridge: Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime.
    Msr,
}

impl BlockFormat {
    /// All formats with their names.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::Iolog, "iolog"), (Self::Blkparse, "blkparse"), (Self::Msr, "msr")];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        let named = Self::ALL.into_iter().find(|(one, _)| *one == self);
        named.expect("all are listed").1
    }

    /// Returns the format of a trace, by its first line.
    pub(super) fn of(line: &str) -> Option<Self> {
        if Iolog::is_header(line) {
            Some(Self::Iolog)
        } else if Blkparse::is_event(line) {
            Some(Self::Blkparse)
        } else if Msr::is_line(line) {
            Some(Self::Msr)
        } else {
            None
        }
    }
}

impl fmt::Display for BlockFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A parser of any of the formats.
#[derive(Debug)]
struct BlockParser(Kind);

#[derive(Debug)]
enum Kind {
    Iolog(Iolog),
    Blkparse(Blkparse),
    Msr(Msr),
}

impl BlockParser {
    fn new(format: BlockFormat, action: Action) -> Self {
        Self(match format {
            BlockFormat::Iolog => Kind::Iolog(Iolog::default()),
            BlockFormat::Blkparse => Kind::Blkparse(Blkparse::new(action)),
            BlockFormat::Msr => Kind::Msr(Msr::default()),
        })
    }

    fn counts(&self) -> &Counts {
        match &self.0 {
            Kind::Iolog(parser) => parser.counts(),
            Kind::Blkparse(parser) => parser.counts(),
            Kind::Msr(parser) => parser.counts(),
        }
    }

    /// Returns whether the trace has start times.
    fn has_times(&self) -> bool {
        match &self.0 {
            Kind::Iolog(parser) => parser.has_times(),
            Kind::Blkparse(_) | Kind::Msr(_) => true,
        }
    }
}

impl LineParser for BlockParser {
    type Record = BlockRecord;

    fn line(&mut self, text: &str, records: &mut VecDeque<BlockRecord>) -> Result<(), Wrong> {
        match &mut self.0 {
            Kind::Iolog(parser) => parser.line(text, records),
            Kind::Blkparse(parser) => parser.line(text, records),
            Kind::Msr(parser) => parser.line(text, records),
        }
    }
}

/// The operations of a trace, in order; ends after an error.
#[derive(Debug)]
pub struct BlockReader<R>(TraceReader<R, BlockParser>);

impl<R: BufRead> BlockReader<R> {
    /// Reads a trace named `origin`. Of blkparse's output the operations with `action` count.
    pub fn new(origin: &str, format: BlockFormat, action: Action, input: R) -> Self {
        Self(TraceReader::new(origin, input, BlockParser::new(format, action)))
    }
}

impl<R: BufRead> Iterator for BlockReader<R> {
    type Item = Result<BlockRecord, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

#[cfg(test)]
mod tests;
