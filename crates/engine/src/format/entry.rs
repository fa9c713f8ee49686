//! Entries of meta segments: a key, and what it maps to.
//!
//! ```text
//! pointer | key                  the value is an object in the value log, or the key is deleted
//! INLINE  | key | tail           the value stands here
//! tail: value | key length u8 | 0
//!       seed u64 | length u16 | key length u8 | 1      a synthetic value (see `Value`)
//! ```
//! As objects do, entries with synthetic values take the room of the full value, or of what is stored where
//! that is more.

use pages::Value;
use pages::format::page::{u16_at, u64_at};
use pages::format::pointer::{Pointer, PointerFormat};
use pages::memtable::SharedKey;

/// Where an entry begins in its page, stored in front of all entries.
pub(crate) const OFFSET_BYTES: usize = 2;
/// Length of the key, and flags.
const TAIL_END_BYTES: usize = 2;
const SEED_BYTES: usize = 8;
const SYNTHETIC: u8 = 1;
/// Bytes behind the key of a synthetic value, which takes no less.
const SYNTHETIC_TAIL_BYTES: usize = SEED_BYTES + 2 + TAIL_END_BYTES;

/// What an index says of a key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Mapping {
    /// The value.
    Value(Value),
    /// Where the value is.
    At(Pointer),
    /// The key is deleted.
    Deleted,
}

impl Mapping {
    /// What a pointer says that stands for no value beside its key.
    pub(crate) fn of(pointer: Pointer) -> Self {
        if pointer.is_tombstone() { Self::Deleted } else { Self::At(pointer) }
    }
}

/// An entry as it is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct IndexEntry<'a> {
    pub key: &'a [u8],
    pub pointer: Pointer,
    /// The value and what belongs to it, if it stands here; else nothing.
    pub tail: &'a [u8],
}

impl IndexEntry<'_> {
    /// Bytes that it takes in a page besides its offset.
    #[inline]
    pub(crate) fn full_len(&self, format: PointerFormat) -> usize {
        let tail = if self.tail.is_empty() { 0 } else { full_tail_len(self.tail) };
        format.bytes + self.key.len() + tail
    }

    pub(crate) fn is_tombstone(&self) -> bool {
        self.pointer.is_tombstone()
    }

    /// What it says of its key.
    pub(crate) fn mapping(&self) -> Mapping {
        match self.pointer {
            Pointer::INLINE => {
                Mapping::Value(value_of(self.tail).expect("checked when it was read"))
            }
            pointer => Mapping::of(pointer),
        }
    }
}

/// An entry that a flush brings.
#[derive(Clone, Debug)]
pub(crate) struct NewEntry {
    key: SharedKey,
    pointer: Pointer,
    tail: Box<[u8]>,
}

impl NewEntry {
    /// The value is elsewhere, or there is none.
    pub(crate) fn of_pointer(key: SharedKey, pointer: Pointer) -> Self {
        Self { key, pointer, tail: Box::default() }
    }

    /// The value stands beside its key.
    pub(crate) fn inline(key: SharedKey, value: &Value) -> Self {
        let tail = tail_of(key.len(), value).into();
        Self { key, pointer: Pointer::INLINE, tail }
    }

    pub(crate) fn as_ref(&self) -> IndexEntry<'_> {
        IndexEntry { key: &self.key, pointer: self.pointer, tail: &self.tail }
    }
}

/// What follows the key where the value stands beside it.
fn tail_of(key_len: usize, value: &Value) -> Vec<u8> {
    let mut tail = Vec::new();
    let flags = match value {
        Value::Bytes(bytes) => {
            tail.extend_from_slice(bytes);
            0
        }
        Value::Synthetic { seed, len } => {
            tail.extend_from_slice(&seed.to_le_bytes());
            let len = u16::try_from(*len).expect("a value beside its key is shorter than a page");
            tail.extend_from_slice(&len.to_le_bytes());
            SYNTHETIC
        }
    };
    let key_len = u8::try_from(key_len).expect("keys have 255 bytes at most");
    tail.extend_from_slice(&[key_len, flags]);
    tail
}

/// The length of the key of an entry that ends with `bytes`; `None` if no entry ends so.
pub(crate) fn key_len_before(bytes: &[u8]) -> Option<usize> {
    let (_, [key_len, _]) = bytes.split_last_chunk()?;
    Some(usize::from(*key_len))
}

/// The value in a tail. `None` if it is none.
pub(crate) fn value_of(tail: &[u8]) -> Option<Value> {
    let (stored, [_, flags]) = tail.split_last_chunk()?;
    match *flags {
        0 => Some(Value::from_bytes(stored)),
        SYNTHETIC if tail.len() == SYNTHETIC_TAIL_BYTES => {
            let len = u32::from(u16_at(stored, SEED_BYTES));
            Some(Value::Synthetic { seed: u64_at(stored, 0), len })
        }
        _ => None,
    }
}

/// Bytes that a tail takes in a page.
#[inline(never)]
fn full_tail_len(tail: &[u8]) -> usize {
    match tail.split_last_chunk() {
        Some((stored, [_, SYNTHETIC])) if tail.len() == SYNTHETIC_TAIL_BYTES => {
            tail.len().max(usize::from(u16_at(stored, SEED_BYTES)) + TAIL_END_BYTES)
        }
        _ => tail.len(),
    }
}

/// Bytes of an entry with its offset, at full length, whose value stands in it if there is one.
pub(crate) fn full_len(pointer_bytes: usize, key_len: usize, value_len: Option<u32>) -> usize {
    let tail = value_len.map_or(0, |len| len as usize + TAIL_END_BYTES);
    OFFSET_BYTES + pointer_bytes + key_len + tail
}

/// The same of the longest form that the value may be stored in.
pub(crate) fn most_len(pointer_bytes: usize, key_len: usize, value_len: u32) -> usize {
    let tail = (value_len as usize + TAIL_END_BYTES).max(SYNTHETIC_TAIL_BYTES);
    OFFSET_BYTES + pointer_bytes + key_len + tail
}
