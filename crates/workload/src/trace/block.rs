//! Traces of block drives: fio's iologs of version 2 and 3, the text that blkparse prints, and the CSV of MSR Cambridge.
//!
//! Of what blkparse prints the actions Q count, as they do for fio: what was asked for, before a scheduler merged it and the queue
//! of the drive of that time held it back. A trace that has none of them, because only what was issued was recorded, is
//! taken by its actions D. Writes that are to be flushed behind (`FUA`) are writes; a flush in front of one is a flush.

mod blkparse;
mod iolog;
mod msr;
mod survey;

use std::collections::VecDeque;
use std::fmt;
use std::io::BufRead;

use runtime::Nanos;
use serde::Deserialize;

use super::{Clock, LineParser, Sources, TraceError, TraceReader, Wrong, detect, kv};
use blkparse::Blkparse;
use iolog::Iolog;
use msr::Msr;

pub use blkparse::Action;
pub use survey::BlockSurvey;

/// Most bytes of a read or write.
const MOST_DATA_BYTES: u64 = 1 << 30;

/// A format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BlockFormat {
    /// fio's iolog, version 2 or 3.
    Iolog,
    /// The text that blkparse prints by itself.
    Blkparse,
    /// CSV of MSR Cambridge: Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime.
    Msr,
}

impl BlockFormat {
    /// Each, with its name.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::Iolog, "iolog"), (Self::Blkparse, "blkparse"), (Self::Msr, "msr")];

    /// Its name.
    pub fn name(self) -> &'static str {
        let named = Self::ALL.into_iter().find(|(one, _)| *one == self);
        named.expect("all are listed").1
    }

    /// The format of a trace, by its first line.
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

    /// Finds the format of a trace out, by what it begins with.
    ///
    /// # Errors
    /// [`TraceError`].
    pub fn detect(origin: &str, input: impl BufRead) -> Result<Self, TraceError> {
        let elsewhere = |line: &str| {
            let format = kv::KvFormat::of(line)?;
            Some(format!("{format}, which levelhead bench --trace takes"))
        };
        detect(origin, input, Self::of, &Self::ALL.map(|(_, name)| name), elsewhere)
    }
}

impl fmt::Display for BlockFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What an operation does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockOp {
    /// It reads.
    Read,
    /// It writes.
    Write,
    /// It says that bytes are not needed any more.
    Trim,
    /// It makes durable what was written; no bytes are named.
    Flush,
}

/// An operation of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockRecord {
    /// When it was begun, from the beginning of the trace.
    pub at: Nanos,
    /// What it does.
    pub op: BlockOp,
    /// Its first byte.
    pub offset: u64,
    /// How many there are, above 0; 0 of a flush.
    pub bytes: u64,
}

impl BlockRecord {
    fn flush(at: Nanos) -> Self {
        Self { at, op: BlockOp::Flush, offset: 0, bytes: 0 }
    }

    /// One that goes to bytes. `text` is the line.
    fn of_bytes(
        at: Nanos,
        op: BlockOp,
        offset: u64,
        bytes: u64,
        text: &str,
    ) -> Result<Self, Wrong> {
        if op != BlockOp::Trim && bytes > MOST_DATA_BYTES {
            return Err(Wrong::new(text, "reads and writes of up to 1 GiB"));
        }
        if offset.checked_add(bytes).is_none() {
            return Err(Wrong::new(text, "an offset and a length that end within 16 EiB"));
        }
        Ok(Self { at, op, offset, bytes })
    }
}

/// What parsers count besides.
#[derive(Clone, Debug, Default)]
struct Counts {
    clock: Clock,
    /// Files, devices or disks.
    sources: Sources,
    /// Lines of operations that there is nothing to do for.
    left_out: u64,
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

    /// Whether the trace says when operations were begun.
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

/// The operations of a trace, one after the other; after an error nothing follows.
#[derive(Debug)]
pub struct BlockReader<R>(TraceReader<R, BlockParser>);

impl<R: BufRead> BlockReader<R> {
    /// Reads a trace of this name. Of what blkparse printed the operations with this action count.
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
