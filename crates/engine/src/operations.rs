//! Requests and results of clients, common to all indexes.

use runtime::{Carrier, Nanos};

use crate::error::{EngineError, UsedUp};
use crate::format::object::MAX_KEY_BYTES;
use crate::format::value::Value;
use crate::wal::LogSync;

/// The result of a get, and its cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Lookup {
    /// The value, if the key has one.
    pub value: Option<Value>,
    /// The number of flash reads.
    pub flash_reads: u32,
    /// The time that it waited for the reads; `None` if the index does not measure it.
    pub reading: Option<Nanos>,
}

/// The reads of one look-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reads {
    /// The number of reads.
    pub count: u32,
    /// The time that the look-up waited for them.
    pub time: Nanos,
}

/// The options of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WriteOptions {
    /// The condition for the write.
    pub condition: Condition,
    /// When the write is acknowledged; `None` for the design's default. Where memory survives a
    /// power cut, every acknowledged write survives, whatever this is.
    pub sync: Option<LogSync>,
}

/// The options of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BatchOptions {
    /// See [`WriteOptions::sync`].
    pub sync: Option<LogSync>,
    /// Whether the batch deletes more than it puts, as declared by its writer. A full store accepts
    /// it like a delete, as long as there is room that puts leave for such batches
    /// ([`Options::leaves_room`](crate::Options::leaves_room)). If no room is
    /// reserved for them, the batch is treated as a put.
    pub makes_room: bool,
}

impl From<Condition> for WriteOptions {
    fn from(condition: Condition) -> Self {
        Self { condition, sync: None }
    }
}

/// The condition under which a write is executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Condition {
    /// Always.
    #[default]
    Always,
    /// Only if the key has a value.
    MustExist,
    /// Only if the key has no value.
    MustNotExist,
}

/// The effect of a client's write on the free space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Uses space.
    Put,
    /// Frees space.
    Delete,
    /// Uses space, and frees more ([`BatchOptions::makes_room`]).
    Exchange,
}

impl Kind {
    pub(crate) fn of(is_delete: bool) -> Self {
        if is_delete { Self::Delete } else { Self::Put }
    }
}

/// Whether clients may write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fullness {
    /// They may, or wait for collection to free space.
    Room,
    /// Only deletes: a resource is used up, and no garbage is left to collect.
    Full(UsedUp),
    /// Even deletes cannot be flushed.
    Stuck,
}

impl Fullness {
    /// Carries the state.
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

    /// Returns the resource that clients lack if their writes are refused.
    pub(crate) fn used_up(self) -> UsedUp {
        match self {
            Self::Full(used_up) => used_up,
            Self::Room | Self::Stuck => UsedUp::Space,
        }
    }

    /// Whether a write is refused. `has_room`: whether the memtables have room for it.
    pub(crate) fn refuses(self, kind: Kind, has_room: bool) -> bool {
        match self {
            Self::Room => false,
            // Deletes free space: they proceed as soon as the memtable accepts them.
            Self::Full(_) => kind == Kind::Put,
            Self::Stuck => kind != Kind::Delete || !has_room,
        }
    }
}

/// Checks the length of a key: 1 to 255 bytes, as in SNIA's KV API.
///
/// # Errors
/// Returns [`EngineError::KeyLength`] for any other length.
pub(crate) fn check_key(key: &[u8]) -> Result<(), EngineError> {
    if (1..=MAX_KEY_BYTES).contains(&key.len()) {
        Ok(())
    } else {
        Err(EngineError::KeyLength(key.len()))
    }
}
