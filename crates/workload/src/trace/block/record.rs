//! Operations of a block trace, and counters of its parsers.

use runtime::Nanos;

use super::super::{Clock, Sources, Wrong};

/// Most bytes of a read or write.
const MOST_DATA_BYTES: u64 = 1 << 30;

/// The type of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockOp {
    /// Reads bytes.
    Read,
    /// Writes bytes.
    Write,
    /// Marks bytes as unused.
    Trim,
    /// Makes earlier writes durable; has no bytes.
    Flush,
}

/// An operation of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockRecord {
    /// Start, from the beginning of the trace.
    pub at: Nanos,
    /// Type.
    pub op: BlockOp,
    /// Offset of the first byte.
    pub offset: u64,
    /// Number of bytes, above 0; 0 for a flush.
    pub bytes: u64,
}

impl BlockRecord {
    pub(super) fn flush(at: Nanos) -> Self {
        Self { at, op: BlockOp::Flush, offset: 0, bytes: 0 }
    }

    /// Creates an operation on bytes. `text` is the line.
    pub(super) fn of_bytes(
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

/// Counters of a parser.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) clock: Clock,
    /// Files, devices or disks.
    pub(super) sources: Sources,
    /// Lines of operations without effect.
    pub(super) left_out: u64,
}
