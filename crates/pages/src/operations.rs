//! Requests of clients and their results, the same for every index.

use crate::error::EngineError;
use crate::format::object::MAX_KEY_BYTES;
use crate::format::value::Value;
use crate::journal::LogSync;
use runtime::{Carrier, Nanos};

/// The result of a Get, and its cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Lookup {
    /// The value, if the key has one.
    pub value: Option<Value>,
    /// Flash reads of the Get.
    pub flash_reads: u32,
    /// Time spent waiting for the reads; `None` if the index does not measure it.
    pub reading: Option<Nanos>,
}

/// Reads of one lookup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// Number of reads.
    pub count: u32,
    /// Time spent waiting for the reads.
    pub time: Nanos,
}

/// Options of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WriteOptions {
    /// Condition under which the write takes effect.
    pub condition: Condition,
    /// When the write is acknowledged; `None` for the default of the design. If memory survives a
    /// power cut, every acknowledged write survives too, whatever this option is.
    pub sync: Option<LogSync>,
}

/// Options of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BatchOptions {
    /// See [`WriteOptions::sync`].
    pub sync: Option<LogSync>,
    /// Whether the caller expects the batch to delete more than it puts. A full store then admits
    /// it like a delete, as long as the memtable space lasts that puts leave for such batches
    /// ([`MemtableLimits::leaves_room`](crate::front::MemtableLimits::leaves_room)). Without such
    /// space the batch is treated as a put.
    pub makes_room: bool,
}

impl From<Condition> for WriteOptions {
    fn from(condition: Condition) -> Self {
        Self { condition, sync: None }
    }
}

/// Condition of a conditional write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Condition {
    /// The write always takes effect.
    #[default]
    Always,
    /// Only if the key has a value.
    MustExist,
    /// Only if the key has no value.
    MustNotExist,
}

/// The effect of a client's write on free space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Uses space.
    Put,
    /// Frees space.
    Delete,
    /// Uses space and frees more ([`BatchOptions::makes_room`]).
    Exchange,
}

impl Kind {
    pub(crate) fn of(is_delete: bool) -> Self {
        if is_delete { Self::Delete } else { Self::Put }
    }
}

/// Whether clients may write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fullness {
    /// Clients may write, or wait for garbage collection to free space.
    Room,
    /// Only deletes are accepted: a resource is used up and no garbage is left to collect.
    Full(UsedUp),
    /// Even deletes cannot be flushed.
    Stuck,
}

/// The resource that a full store has used up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UsedUp {
    /// Space on the medium.
    Space,
    /// Memory of the index; the number is its budget in bytes.
    IndexMemory(u64),
}

impl Fullness {
    pub(crate) fn carry(&mut self, by: &mut Carrier<'_>) -> Option<()> {
        let (mut kind, mut bytes) = match *self {
            Self::Room => (0, 0),
            Self::Full(UsedUp::Space) => (1, 0),
            Self::Full(UsedUp::IndexMemory(bytes)) => (2, bytes),
            Self::Stuck => (3, 0),
        };
        by.u8(&mut kind)?;
        by.u64(&mut bytes)?;
        *self = match kind {
            0 => Self::Room,
            1 => Self::Full(UsedUp::Space),
            2 => Self::Full(UsedUp::IndexMemory(bytes)),
            3 => Self::Stuck,
            _ => return None,
        };
        Some(())
    }

    /// Returns the resource to report to clients whose writes are refused.
    pub(crate) fn used_up(self) -> UsedUp {
        match self {
            Self::Full(used_up) => used_up,
            Self::Room | Self::Stuck => UsedUp::Space,
        }
    }

    /// Whether a write of this kind is refused. `has_room`: whether the memtables have room for it.
    pub(crate) fn refuses(self, kind: Kind, has_room: bool) -> bool {
        match self {
            Self::Room => false,
            // Deletes free space: they proceed as soon as the memtable has room for them.
            Self::Full(_) => kind == Kind::Put,
            Self::Stuck => kind != Kind::Delete || !has_room,
        }
    }
}

/// Checks that a key has 1 to 255 bytes, as SNIA's KV API requires.
///
/// # Errors
/// Returns [`EngineError::KeyLength`] if it has not.
pub fn check_key(key: &[u8]) -> Result<(), EngineError> {
    if (1..=MAX_KEY_BYTES).contains(&key.len()) {
        Ok(())
    } else {
        Err(EngineError::KeyLength(key.len()))
    }
}
