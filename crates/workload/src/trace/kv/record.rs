//! Operations of a key-value trace, and counters of its parsers.

use runtime::Nanos;

use super::super::{Clock, Sources, Wrong};
use super::format::KvFormat;

/// Most bytes of a key, as for the longest keys of workloads.
const MOST_KEY_BYTES: u64 = 4096;
/// Most bytes of a value.
const MOST_VALUE_BYTES: u64 = 1 << 30;

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
pub(super) struct Counts {
    pub(super) clock: Clock,
    /// Column families.
    pub(super) families: Sources,
    pub(super) largest_family: u32,
    /// Operations that are not replayed, by type.
    pub(super) left_out: Vec<(&'static str, u64)>,
}

impl Counts {
    pub(super) fn leave_out(&mut self, what: &'static str) {
        match self.left_out.iter_mut().find(|(name, _)| *name == what) {
            Some((_, count)) => *count += 1,
            None => self.left_out.push((what, 1)),
        }
    }
}

/// Returns the sizes of a key and a value, if they are valid.
pub(super) fn sizes(key: u64, value: u64, text: &str) -> Result<(u32, u32), Wrong> {
    if key == 0 || key > MOST_KEY_BYTES {
        return Err(Wrong::new(text, "a key of 1 to 4096 bytes"));
    }
    if value > MOST_VALUE_BYTES {
        return Err(Wrong::new(text, "a value of up to 1 GiB"));
    }
    Ok((key as u32, value as u32))
}
