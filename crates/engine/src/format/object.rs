//! Objects: key, value and sequence number as stored in data pages.
//! ```text
//! 0..4   CRC-32C of bytes 4.. of the object as it is stored, value included
//! 4..12  sequence number
//! 12..16 full length of the value
//! 16..18 length of the key
//! 18     flags (1: the value is synthetic)
//! 19..   key | value
//! ```
//! With the *synthetic* flag the value is stored as its 8-byte seed (see [`Value`]); values shorter
//! than 8 bytes are stored as bytes. The page layout uses the full length in both cases. The
//! checksum protects objects that span several pages or are read in part, where no page checksum
//! covers the bytes.

use super::page::{u16_at, u32_at, u64_at};
use super::value::Value;

/// Maximum key length, in bytes (SNIA KV API; NVMe drives accept 16).
pub const MAX_KEY_BYTES: usize = 255;
/// Maximum value length, in bytes; the medium may allow less.
pub const MAX_VALUE_BYTES: u32 = 2 << 20;

/// The sequence number of a write: orders all writes of a store.
pub(crate) type Sequence = u64;

/// Bytes of an object before its key.
pub(crate) const OBJECT_HEADER_BYTES: usize = 19;
/// Length of the shortest object, in bytes: a key of one byte, no value.
pub(crate) const SHORTEST_OBJECT_BYTES: u64 = OBJECT_HEADER_BYTES as u64 + 1;

const SEQUENCE_AT: usize = 4;
const VALUE_LEN_AT: usize = 12;
const KEY_LEN_AT: usize = 16;
const FLAGS_AT: usize = 18;

const SYNTHETIC: u8 = 1;
const SEED_BYTES: usize = 8;

/// Returns the bytes of an object with its value in full.
pub(crate) fn full_len(key_len: usize, value_len: u32) -> usize {
    OBJECT_HEADER_BYTES + key_len + value_len as usize
}

/// Returns the bytes of an object as stored.
pub(crate) fn stored_len(key_len: usize, value: &Value) -> usize {
    let value_len = if seed_of(value).is_some() { SEED_BYTES } else { value.len() as usize };
    OBJECT_HEADER_BYTES + key_len + value_len
}

/// Returns the seed if the value is stored as its seed.
fn seed_of(value: &Value) -> Option<u64> {
    match value {
        Value::Synthetic { seed, len } if *len as usize >= SEED_BYTES => Some(*seed),
        Value::Synthetic { .. } | Value::Bytes(_) => None,
    }
}

/// Appends the encoded object to `to`.
pub(crate) fn encode(key: &[u8], sequence: Sequence, value: &Value, to: &mut Vec<u8>) {
    let start = to.len();
    let seed = seed_of(value);
    let flags = if seed.is_some() { SYNTHETIC } else { 0 };
    to.extend_from_slice(&[0; SEQUENCE_AT]);
    to.extend_from_slice(&sequence.to_le_bytes());
    to.extend_from_slice(&value.len().to_le_bytes());
    to.extend_from_slice(&(key.len() as u16).to_le_bytes());
    to.push(flags);
    to.extend_from_slice(key);
    match seed {
        Some(seed) => to.extend_from_slice(&seed.to_le_bytes()),
        None => to.extend_from_slice(&value.to_bytes()),
    }
    let crc = crc32c::crc32c(&to[start + SEQUENCE_AT..]);
    to[start..start + SEQUENCE_AT].copy_from_slice(&crc.to_le_bytes());
}

/// The header and key of a stored object.
#[derive(Clone, Copy)]
pub struct ObjectHead<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) sequence: Sequence,
    pub(crate) value_len: u32,
    pub(crate) is_synthetic: bool,
    /// All bytes from the header on.
    bytes: &'a [u8],
    /// The bytes after the key.
    body: &'a [u8],
}

impl<'a> ObjectHead<'a> {
    /// Parses the header at the start of `bytes`. Returns `None` if `bytes` ends before the end of
    /// the key.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (header, rest) = bytes.split_at_checked(OBJECT_HEADER_BYTES)?;
        let (key, body) = rest.split_at_checked(usize::from(u16_at(header, KEY_LEN_AT)))?;
        Some(Self {
            key,
            sequence: u64_at(header, SEQUENCE_AT),
            value_len: u32_at(header, VALUE_LEN_AT),
            is_synthetic: header[FLAGS_AT] & SYNTHETIC != 0,
            bytes,
            body,
        })
    }

    /// Returns the stored length of the value, in bytes.
    pub(crate) fn stored_value_len(&self) -> usize {
        if self.is_synthetic { SEED_BYTES } else { self.value_len as usize }
    }

    /// Returns the value, if all of it is in this page.
    pub(crate) fn value(&self) -> Option<Value> {
        let stored = self.body.get(..self.stored_value_len())?;
        Some(self.value_of(stored))
    }

    /// Decodes the value from its stored bytes.
    fn value_of(&self, stored: &[u8]) -> Value {
        if self.is_synthetic {
            Value::Synthetic { seed: u64_at(stored, 0), len: self.value_len }
        } else {
            Value::from_bytes(stored)
        }
    }

    /// Returns the value whose first part follows the key and whose further parts are `rest`.
    /// Returns `None` if the length or the checksum does not match. Cost: a copy and a checksum of
    /// the value.
    pub(crate) fn value_with(&self, rest: &[&[u8]]) -> Option<Value> {
        let mut stored = self.body.to_vec();
        for part in rest {
            stored.extend_from_slice(part);
        }
        let (front, _) = self.bytes.split_at(self.bytes.len() - self.body.len());
        let crc = crc32c::crc32c_append(crc32c::crc32c(&front[SEQUENCE_AT..]), &stored);
        let is_whole = stored.len() == self.stored_value_len() && crc == u32_at(front, 0);
        is_whole.then(|| self.value_of(&stored))
    }

    /// Returns the stored length of header, key and value, in bytes.
    pub(crate) fn stored_len(&self) -> usize {
        OBJECT_HEADER_BYTES + self.key.len() + self.stored_value_len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_in_parts_is_whole_or_none() {
        let value = Value::from_bytes(&(0..1000_u32).map(|i| (i % 251) as u8).collect::<Vec<u8>>());
        let mut bytes = Vec::new();
        encode(b"key", 9, &value, &mut bytes);
        assert_eq!(bytes.len(), full_len(3, 1000));
        let (front, rest) = bytes.split_at(200);
        let head = ObjectHead::parse(front).expect("header and key are there");
        assert_eq!((head.key, head.sequence, head.value_len), (&b"key"[..], 9, 1000));
        assert_eq!(head.value(), None, "most of it is elsewhere");
        let (second, third) = rest.split_at(333);
        assert_eq!(head.value_with(&[second, third]), Some(value));
        assert_eq!(head.value_with(&[third, second]), None);
        assert_eq!(head.value_with(&[second]), None);
        let mut other = third.to_vec();
        other[5] ^= 1;
        assert_eq!(head.value_with(&[second, &other]), None, "a part of another generation");
    }

    #[test]
    fn no_object_is_stored_in_more_than_its_full_length() {
        for len in 0..20 {
            let (value, mut bytes) = (Value::Synthetic { seed: 7, len }, Vec::new());
            encode(b"k", 1, &value, &mut bytes);
            assert!(bytes.len() <= full_len(1, len), "{len}: {} bytes", bytes.len());
            assert_eq!(bytes.len(), stored_len(1, &value));
            let found = ObjectHead::parse(&bytes).and_then(|head| head.value());
            assert_eq!(found.map(|found| found.to_bytes()), Some(value.to_bytes()));
        }
    }

    #[test]
    fn keys_may_be_longer_than_255_bytes() {
        let (key, mut bytes) = (vec![b'k'; 300], Vec::new());
        encode(&key, 1, &Value::Synthetic { seed: 5, len: 70_000 }, &mut bytes);
        let head = ObjectHead::parse(&bytes).expect("it is whole");
        assert_eq!(head.key, key);
        assert_eq!(head.value(), Some(Value::Synthetic { seed: 5, len: 70_000 }));
        assert_eq!(head.stored_len(), bytes.len());
    }
}
