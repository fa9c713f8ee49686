//! Traces of key-value stores: the CSV of Twitter's caches, and RocksDB's traces as `trace_analyzer` writes them for people.
//!
//! | recorded | done |
//! |---|---|
//! | `get`, `gets`; RocksDB's 0 and 8 | a get |
//! | `set`, `cas`; 1 | a put |
//! | `add` | a get, and a put if there was nothing |
//! | `replace`, `append`, `prepend`, `incr`, `decr` | a get, and a put if there was something |
//! | 5 (merge) | a get, and a put |
//! | `delete`; 2, 3 (single delete) | a delete |
//! | 4 (range delete), 6, 7 (seeks of iterators), 9 and up | left out |
//!
//! A put has the value size of its line. Nothing expires: the TTL of Twitter's traces is not honoured. Twitter's times are whole
//! seconds; operations of one second are spread over it evenly.

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

/// Most bytes of a key: what the longest keys of workloads have.
const MOST_KEY_BYTES: u64 = 4096;
/// Most bytes of a value.
const MOST_VALUE_BYTES: u64 = 1 << 30;

/// A format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KvFormat {
    /// CSV of Twitter's caches: timestamp,key,key size,value size,client id,operation,TTL.
    Twitter,
    /// RocksDB's trace as `trace_analyzer` writes it for people: key, type, column family, value size, time.
    Rocksdb,
}

impl KvFormat {
    /// Each, with its name.
    pub const ALL: [(Self, &'static str); 2] =
        [(Self::Twitter, "twitter"), (Self::Rocksdb, "rocksdb")];

    /// Its name.
    pub fn name(self) -> &'static str {
        let named = Self::ALL.into_iter().find(|(one, _)| *one == self);
        named.expect("all are listed").1
    }

    /// The format of a trace, by its first line.
    pub(super) fn of(line: &str) -> Option<Self> {
        if Twitter::is_line(line) {
            Some(Self::Twitter)
        } else if Rocksdb::is_line(line) {
            Some(Self::Rocksdb)
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

/// What an operation does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KvOp {
    /// A get.
    Get,
    /// A put.
    Put,
    /// A get, and a put in any case.
    Merge,
    /// A get, and a put if there was nothing.
    PutIfAbsent,
    /// A get, and a put if there was something.
    PutIfPresent,
    /// A delete.
    Delete,
}

impl KvOp {
    /// Whether it may put.
    pub fn may_put(self) -> bool {
        !matches!(self, Self::Get | Self::Delete)
    }
}

/// An operation of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KvRecord {
    /// When it was begun, from the beginning of the trace.
    pub at: Nanos,
    /// What it does.
    pub op: KvOp,
    /// The key as it was recorded.
    pub key: Box<[u8]>,
    /// The column family that it is in.
    pub family: u32,
    /// Bytes that the key had.
    pub key_bytes: u32,
    /// Bytes of the value that was put, or got where the trace says so; 0 where it does not.
    pub value_bytes: u32,
}

impl KvRecord {
    /// Bytes of the value that its key had before the trace, if this is the first operation on it and the key was there: something
    /// was got, or was there to be changed. RocksDB's traces do not tell what gets have found: all of it was there, with values of
    /// `otherwise` bytes.
    pub fn value_before(&self, format: KvFormat, otherwise: u32) -> Option<u32> {
        match self.op {
            KvOp::Get if format == KvFormat::Rocksdb => Some(otherwise),
            KvOp::Get | KvOp::PutIfPresent => Some(self.value_bytes).filter(|bytes| *bytes > 0),
            KvOp::Put | KvOp::Merge | KvOp::PutIfAbsent | KvOp::Delete => None,
        }
    }
}

/// What parsers count besides.
#[derive(Clone, Debug, Default)]
struct Counts {
    clock: Clock,
    /// Column families.
    families: Sources,
    largest_family: u32,
    /// Operations that nothing is done for, by what they are.
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

/// Sizes of a key and a value, within what there can be.
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

/// The operations of a trace, one after the other; after an error nothing follows.
#[derive(Debug)]
pub struct KvReader<R>(Times<R>);

#[derive(Debug)]
enum Times<R> {
    Recorded(TraceReader<R, KvParser>),
    Spread(Spread<TraceReader<R, KvParser>>),
}

impl<R: BufRead> KvReader<R> {
    /// Reads a trace of this name.
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
