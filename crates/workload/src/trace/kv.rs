//! Traces of key-value stores: the CSV of Twitter's caches, and RocksDB's traces in the
//! human-readable form of `trace_analyzer`.
//!
//! | recorded | replayed as |
//! |---|---|
//! | `get`, `gets`; RocksDB's 0 and 8 | a get |
//! | `set`, `cas`; 1 | a put |
//! | `add` | a get, and a put if no value was found |
//! | `replace`, `append`, `prepend`, `incr`, `decr` | a get, and a put if a value was found |
//! | 5 (merge) | a get, and a put |
//! | `delete`; 2, 3 (single delete) | a delete |
//! | 4 (range delete), 6, 7 (seeks of iterators), 9 and up | left out |
//!
//! A put has the value size of its line. Nothing expires: the TTL of Twitter's traces is ignored.
//! Twitter's times are whole seconds; the operations of one second are spread evenly over it.

mod format;
mod keys;
mod record;
mod rocksdb;
mod spread;
mod survey;
mod twitter;

use std::collections::VecDeque;
use std::io::BufRead;

use super::{LineParser, TraceError, TraceReader, Wrong};
use record::Counts;
use rocksdb::Rocksdb;
use spread::Spread;
use twitter::Twitter;

pub use format::KvFormat;
pub(crate) use keys::{KeyNumbers, Met};
pub use record::{KvOp, KvRecord};
pub use survey::KvSurvey;

impl KvFormat {
    /// Returns the format of a trace, by its first line.
    pub(super) fn of(line: &str) -> Option<Self> {
        if Twitter::is_line(line) {
            Some(Self::Twitter)
        } else if Rocksdb::is_line(line) {
            Some(Self::Rocksdb)
        } else {
            None
        }
    }
}

/// A parser of any of the formats.
#[derive(Debug)]
enum KvParser {
    Twitter(Twitter),
    Rocksdb(Rocksdb),
}

impl KvParser {
    fn new(format: KvFormat) -> Self {
        match format {
            KvFormat::Twitter => Self::Twitter(Twitter::default()),
            KvFormat::Rocksdb => Self::Rocksdb(Rocksdb::default()),
        }
    }

    fn counts(&self) -> &Counts {
        match self {
            Self::Twitter(parser) => parser.counts(),
            Self::Rocksdb(parser) => parser.counts(),
        }
    }
}

impl LineParser for KvParser {
    type Record = KvRecord;

    fn line(&mut self, text: &str, records: &mut VecDeque<KvRecord>) -> Result<(), Wrong> {
        match self {
            Self::Twitter(parser) => parser.line(text, records),
            Self::Rocksdb(parser) => parser.line(text, records),
        }
    }
}

/// The operations of a trace, in order; ends after an error.
#[derive(Debug)]
pub struct KvReader<R>(Times<R>);

#[derive(Debug)]
enum Times<R> {
    Recorded(TraceReader<R, KvParser>),
    Spread(Spread<TraceReader<R, KvParser>>),
}

impl<R: BufRead> KvReader<R> {
    /// Reads a trace named `origin`.
    pub fn new(origin: &str, format: KvFormat, input: R) -> Self {
        let reader = TraceReader::new(origin, input, KvParser::new(format));
        Self(match format {
            KvFormat::Twitter => Times::Spread(Spread::new(reader, twitter::TICK)),
            KvFormat::Rocksdb => Times::Recorded(reader),
        })
    }
}

impl<R: BufRead> Iterator for KvReader<R> {
    type Item = Result<KvRecord, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Times::Recorded(reader) => reader.next(),
            Times::Spread(spread) => spread.next(),
        }
    }
}

#[cfg(test)]
mod tests;
