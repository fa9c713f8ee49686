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

mod keys;
mod rocksdb;
mod spread;
mod survey;
mod twitter;

use std::collections::VecDeque;
use std::fmt;
use std::io::BufRead;

use runtime::Nanos;
use serde::Deserialize;

use super::{Clock, LineParser, Sources, TraceError, TraceReader, Wrong, block, detect};
use rocksdb::Rocksdb;
use spread::Spread;
use twitter::Twitter;

pub(crate) use keys::{KeyNumbers, Met};
pub use survey::KvSurvey;

/// Most bytes of a key, as for the longest keys of workloads.
const MOST_KEY_BYTES: u64 = 4096;
/// Most bytes of a value.
const MOST_VALUE_BYTES: u64 = 1 << 30;

/// A trace format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KvFormat {
    /// CSV of Twitter's caches: timestamp,key,key size,value size,client id,operation,TTL.
    Twitter,
    /// RocksDB's trace in the human-readable form of `trace_analyzer`: key, type, column family,
    /// value size, time.
    Rocksdb,
}

impl KvFormat {
    /// All formats with their names.
    pub const ALL: [(Self, &'static str); 2] =
        [(Self::Twitter, "twitter"), (Self::Rocksdb, "rocksdb")];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        let named = Self::ALL.into_iter().find(|(one, _)| *one == self);
        named.expect("all are listed").1
    }

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

    /// Detects the format of a trace by its beginning.
    ///
    /// # Errors
    /// Returns [`TraceError`] if the input cannot be read or the format is unknown.
    pub fn detect(origin: &str, input: impl BufRead) -> Result<Self, TraceError> {
        let elsewhere = |line: &str| {
            let format = block::BlockFormat::of(line)?;
            Some(format!("{format}, which levelhead device --replay takes"))
        };
        detect(origin, input, Self::of, &Self::ALL.map(|(_, name)| name), elsewhere)
    }
}

impl fmt::Display for KvFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The type of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KvOp {
    /// A get.
    Get,
    /// A put.
    Put,
    /// A get, and an unconditional put.
    Merge,
    /// A get, and a put if no value was found.
    PutIfAbsent,
    /// A get, and a put if a value was found.
    PutIfPresent,
    /// A delete.
    Delete,
}

impl KvOp {
    /// Returns whether it may put.
    pub fn may_put(self) -> bool {
        !matches!(self, Self::Get | Self::Delete)
    }
}

/// An operation of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KvRecord {
    /// Start, from the beginning of the trace.
    pub at: Nanos,
    /// Type.
    pub op: KvOp,
    /// The key as recorded.
    pub key: Box<[u8]>,
    /// The column family of the key.
    pub family: u32,
    /// Length of the original key, in bytes.
    pub key_bytes: u32,
    /// Length of the value that was put, or got if the trace records it, in bytes; else 0.
    pub value_bytes: u32,
}

impl KvRecord {
    /// Returns the length of the value that the key had before the trace, if this is the first
    /// operation on it and the key existed: a value was got, or was changed. RocksDB's traces do
    /// not record the results of gets: all of them are assumed to have found values of `otherwise`
    /// bytes.
    pub fn value_before(&self, format: KvFormat, otherwise: u32) -> Option<u32> {
        match self.op {
            KvOp::Get if format == KvFormat::Rocksdb => Some(otherwise),
            KvOp::Get | KvOp::PutIfPresent => Some(self.value_bytes).filter(|bytes| *bytes > 0),
            KvOp::Put | KvOp::Merge | KvOp::PutIfAbsent | KvOp::Delete => None,
        }
    }
}

/// Counters of a parser.
#[derive(Clone, Debug, Default)]
struct Counts {
    clock: Clock,
    /// Column families.
    families: Sources,
    largest_family: u32,
    /// Operations that are not replayed, by type.
    left_out: Vec<(&'static str, u64)>,
}

impl Counts {
    fn leave_out(&mut self, what: &'static str) {
        match self.left_out.iter_mut().find(|(name, _)| *name == what) {
            Some((_, count)) => *count += 1,
            None => self.left_out.push((what, 1)),
        }
    }
}

/// Returns the sizes of a key and a value, if they are valid.
fn sizes(key: u64, value: u64, text: &str) -> Result<(u32, u32), Wrong> {
    if key == 0 || key > MOST_KEY_BYTES {
        return Err(Wrong::new(text, "a key of 1 to 4096 bytes"));
    }
    if value > MOST_VALUE_BYTES {
        return Err(Wrong::new(text, "a value of up to 1 GiB"));
    }
    Ok((key as u32, value as u32))
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
