//! What clients of an index ask for and are told, whichever index it is.

use crate::error::EngineError;
use crate::format::object::MAX_KEY_BYTES;
use crate::format::value::Value;
use crate::journal::LogSync;
use runtime::{Carrier, Nanos};

/// What a Get found, and what it took.
#[derive(Clone, Debug, PartialEq)]
pub struct Lookup {
    /// The value, if the key has one.
    pub value: Option<Value>,
    /// Flash reads it took.
    pub flash_reads: u32,
    /// Time that it waited for them; absent where an index does not tell.
    pub reading: Option<Nanos>,
}

/// Reads of one look-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reads {
    /// How many.
    pub count: u32,
    /// Time that it waited for them.
    pub time: Nanos,
}

/// How a write is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WriteOptions {
    /// When it goes ahead at all.
    pub condition: Condition,
    /// When it is acknowledged, if not as the design has it. Where memory survives a power cut, every
    /// acknowledged write does, whatever this says.
    pub sync: Option<LogSync>,
}

/// How a batch is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BatchOptions {
    /// See [`WriteOptions::sync`].
    pub sync: Option<LogSync>,
    /// The batch deletes more than it puts, its writer says: a full store takes it as it takes deletes, as long as the room lasts that
    /// puts leave for such batches ([`MemtableLimits::leaves_room`](crate::front::MemtableLimits::leaves_room)). Where none is left for them it is a put.
    pub makes_room: bool,
}

impl From<Condition> for WriteOptions {
    fn from(condition: Condition) -> Self {
        Self { condition, sync: None }
    }
}

/// When a conditional write goes ahead.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Condition {
    /// Whatever is there.
    #[default]
    Always,
    /// Only over an existing value.
    MustExist,
    /// Only where there is no value.
    MustNotExist,
}

/// What a client's write does to the room that there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// It takes some.
    Put,
    /// It makes some.
    Delete,
    /// It takes some, and makes more ([`BatchOptions::makes_room`]).
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
    /// They may, or wait for collection to make room.
    Room,
    /// Only deletes: something is used up, and there is no garbage left to collect.
    Full(UsedUp),
    /// Not even deletes can be flushed.
    Stuck,
}

/// What a full store has no more of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UsedUp {
    /// Space on the medium.
    Space,
    /// The memory that its index may take, of so many bytes.
    IndexMemory(u64),
}

impl Fullness {
    /// Carries it.
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

    /// What clients lack whose writes are refused.
    pub(crate) fn used_up(self) -> UsedUp {
        match self {
            Self::Full(used_up) => used_up,
            Self::Room | Self::Stuck => UsedUp::Space,
        }
    }

    /// Whether a write is refused, where memtables have room for it or not.
    pub(crate) fn refuses(self, kind: Kind, has_room: bool) -> bool {
        match self {
            Self::Room => false,
            // Deletes make room: they go ahead as soon as the memtable takes them.
            Self::Full(_) => kind == Kind::Put,
            Self::Stuck => kind != Kind::Delete || !has_room,
        }
    }
}

/// A key has 1 to 255 bytes, as SNIA's API has it.
///
/// # Errors
/// [`EngineError::KeyLength`].
pub fn check_key(key: &[u8]) -> Result<(), EngineError> {
    if (1..=MAX_KEY_BYTES).contains(&key.len()) {
        Ok(())
    } else {
        Err(EngineError::KeyLength(key.len()))
    }
}
