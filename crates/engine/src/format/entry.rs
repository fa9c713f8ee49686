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

use pages::MAX_KEY_BYTES;
use pages::Value;
use pages::format::page::{HEADER_BYTES, u16_at, u64_at};
use pages::format::pointer::{Pointer, PointerFormat};

/// Where an entry begins in its page, stored in front of all entries.
pub(crate) const OFFSET_BYTES: usize = 2;
/// Length of the key, and flags.
const TAIL_END_BYTES: usize = 2;
const SEED_BYTES: usize = 8;
const SYNTHETIC: u8 = 1;
const SYNTHETIC_TAIL_BYTES: usize = SEED_BYTES + 2 + TAIL_END_BYTES;
/// Bytes of the longest pointer.
const MOST_POINTER_BYTES: usize = 7;

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
    key: Box<[u8]>,
    pointer: Pointer,
    tail: Box<[u8]>,
}

impl NewEntry {
    /// The value is elsewhere, or there is none.
    pub(crate) fn of_pointer(key: Box<[u8]>, pointer: Pointer) -> Self {
        Self { key, pointer, tail: Box::default() }
    }

    /// The value stands beside its key.
    pub(crate) fn inline(key: Box<[u8]>, value: &Value) -> Self {
        let tail = tail_of(key.len(), value).into();
        Self { key, pointer: Pointer::INLINE, tail }
    }

    pub(crate) fn as_ref(&self) -> IndexEntry<'_> {
        IndexEntry { key: &self.key, pointer: self.pointer, tail: &self.tail }
    }
}

/// What follows the key where the value stands beside it.
pub(crate) fn tail_of(key_len: usize, value: &Value) -> Vec<u8> {
    let mut tail = Vec::new();
    let flags = match value {
        Value::Bytes(bytes) => {
            tail.extend_from_slice(bytes);
            0
        }
        Value::Synthetic { seed, len } => {
            tail.extend_from_slice(&seed.to_le_bytes());
            tail.extend_from_slice(&(*len as u16).to_le_bytes());
            SYNTHETIC
        }
    };
    tail.extend_from_slice(&[key_len as u8, flags]);
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

/// Which values stand beside their keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inlining {
    /// The longest, in bytes; `None` if all are apart.
    up_to: Option<u32>,
    payload_bytes: u32,
}

impl Inlining {
    /// Values of up to `up_to` bytes; 0 is none. What does not fit in a page of `payload_bytes` bytes is
    /// apart however long values may be.
    pub(crate) fn new(up_to: u32, payload_bytes: u32) -> Self {
        Self { up_to: (up_to > 0).then_some(up_to), payload_bytes }
    }

    /// Whether a value stands beside its key.
    pub(crate) fn takes(&self, key_len: usize, value_len: u32) -> bool {
        let fits = || {
            let len = full_len(MOST_POINTER_BYTES, key_len, Some(value_len))
                .max(full_len(MOST_POINTER_BYTES, key_len, None) + SYNTHETIC_TAIL_BYTES);
            HEADER_BYTES + len <= self.payload_bytes as usize
        };
        self.up_to.is_some_and(|most| value_len <= most) && fits()
    }

    /// Bytes of the longest entry there can be, with its offset.
    fn longest_entry(&self) -> usize {
        let longest = full_len(MOST_POINTER_BYTES, MAX_KEY_BYTES, self.up_to);
        longest.min((self.payload_bytes as usize).saturating_sub(HEADER_BYTES))
    }

    /// Bytes that the entries of `bytes` of objects take at most, where there is one object more than
    /// fits.
    pub(crate) fn entry_bytes_of(&self, bytes: usize) -> usize {
        match self.up_to {
            None => bytes,
            // An entry with a short synthetic value takes 21 bytes besides the key, an object 19.
            Some(_) => bytes + bytes / 8 + self.longest_entry(),
        }
    }

    /// Pages that `bytes` of entries take at most: the end of each may be left empty for want of room
    /// for one more entry, and two that follow one another hold more than one page does.
    pub(crate) fn most_pages(&self, bytes: usize) -> u32 {
        let room = (self.payload_bytes as usize).saturating_sub(HEADER_BYTES).max(1);
        let filled = room.saturating_sub(self.longest_entry()).max(1);
        let by_pairs = if self.up_to.is_some() { (2 * bytes).div_ceil(room) } else { usize::MAX };
        bytes.div_ceil(filled).min(by_pairs) as u32 + 1
    }
}
