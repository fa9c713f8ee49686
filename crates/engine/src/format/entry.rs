//! Entries of meta segments: a key and its mapping.
//!
//! ```text
//! pointer | key                  the value is an object in the value log, or the key is deleted
//! INLINE  | key | tail           the value is stored here
//! tail: value | key length u8 | 0
//!       seed u64 | length u16 | key length u8 | 1      a synthetic value (see `Value`)
//! ```
//! Like objects, entries with synthetic values take the room of the full value, or of the stored
//! form if that is longer.

use super::page::{u16_at, u64_at};
use super::pointer::{Pointer, PointerFormat};
use super::value::Value;
use crate::memtable::SharedKey;

/// Bytes of an entry's offset in its page. Offsets are stored before all entries.
pub(crate) const OFFSET_BYTES: usize = 2;
/// Length of the key, and flags.
const TAIL_END_BYTES: usize = 2;
const SEED_BYTES: usize = 8;
const SYNTHETIC: u8 = 1;
/// Bytes after the key of a synthetic value; it takes at least that much room.
const SYNTHETIC_TAIL_BYTES: usize = SEED_BYTES + 2 + TAIL_END_BYTES;

/// The index's information about a key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Mapping {
    /// The value itself.
    Value(Value),
    /// The location of the value.
    At(Pointer),
    /// The key is deleted.
    Deleted,
}

impl Mapping {
    /// Returns the mapping of a pointer without an inline value.
    pub(crate) fn of(pointer: Pointer) -> Self {
        if pointer.is_tombstone() { Self::Deleted } else { Self::At(pointer) }
    }
}

/// An entry in its stored form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct IndexEntry<'a> {
    pub key: &'a [u8],
    pub pointer: Pointer,
    /// The inline value and its trailer; empty without an inline value.
    pub tail: &'a [u8],
}

impl IndexEntry<'_> {
    /// Returns the bytes that the entry takes in a page, without its offset.
    #[inline]
    pub(crate) fn full_len(&self, format: PointerFormat) -> usize {
        let tail = if self.tail.is_empty() { 0 } else { full_tail_len(self.tail) };
        format.bytes + self.key.len() + tail
    }

    pub(crate) fn is_tombstone(&self) -> bool {
        self.pointer.is_tombstone()
    }

    /// Returns the mapping of the entry's key.
    pub(crate) fn mapping(&self) -> Mapping {
        match self.pointer {
            Pointer::INLINE => {
                Mapping::Value(value_of(self.tail).expect("checked when it was read"))
            }
            pointer => Mapping::of(pointer),
        }
    }
}

/// An entry of a flush.
#[derive(Clone, Debug)]
pub(crate) struct NewEntry {
    key: SharedKey,
    pointer: Pointer,
    tail: Box<[u8]>,
}

impl NewEntry {
    /// Creates an entry whose value is in the value log, or a tombstone.
    pub(crate) fn of_pointer(key: SharedKey, pointer: Pointer) -> Self {
        Self { key, pointer, tail: Box::default() }
    }

    /// Creates an entry with an inline value.
    pub(crate) fn inline(key: SharedKey, value: &Value) -> Self {
        let tail = tail_of(key.len(), value).into();
        Self { key, pointer: Pointer::INLINE, tail }
    }

    pub(crate) fn as_ref(&self) -> IndexEntry<'_> {
        IndexEntry { key: &self.key, pointer: self.pointer, tail: &self.tail }
    }
}

/// Returns the bytes after the key of an entry with an inline value.
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

/// Returns the length of the key of an entry that ends with `bytes`; `None` if it is too short.
pub(crate) fn key_len_before(bytes: &[u8]) -> Option<usize> {
    let (_, [key_len, _]) = bytes.split_last_chunk()?;
    Some(usize::from(*key_len))
}

/// Decodes the value of a tail; `None` if it is invalid.
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

/// Returns the bytes that a tail takes in a page.
#[inline(never)]
fn full_tail_len(tail: &[u8]) -> usize {
    match tail.split_last_chunk() {
        Some((stored, [_, SYNTHETIC])) if tail.len() == SYNTHETIC_TAIL_BYTES => {
            tail.len().max(usize::from(u16_at(stored, SEED_BYTES)) + TAIL_END_BYTES)
        }
        _ => tail.len(),
    }
}

/// Returns the bytes of an entry with its offset, at full length, with its value if that is inline.
pub(crate) fn full_len(pointer_bytes: usize, key_len: usize, value_len: Option<u32>) -> usize {
    let tail = value_len.map_or(0, |len| len as usize + TAIL_END_BYTES);
    OFFSET_BYTES + pointer_bytes + key_len + tail
}

/// Like [`full_len`], for the longest form in which the value may be stored.
pub(crate) fn most_len(pointer_bytes: usize, key_len: usize, value_len: u32) -> usize {
    let tail = (value_len as usize + TAIL_END_BYTES).max(SYNTHETIC_TAIL_BYTES);
    OFFSET_BYTES + pointer_bytes + key_len + tail
}
