//! Objects: a key, its value and its sequence number, as they lie in data pages.
//!
//! ```text
//! key length u8 | flags u8 | sequence number u64 | value length u32 | key | value
//! ```
//! With the *synthetic* flag the value is stored as its 8-byte seed (see [`Value`]); the layout of
//! the page is computed for the full length either way.

use crate::Value;
use crate::format::page::{u32_at, u64_at};

/// Orders all writes of a store.
pub(crate) type Sequence = u64;

/// Bytes before the key.
pub(crate) const OBJECT_HEADER_BYTES: usize = 14;

const SYNTHETIC: u8 = 1;
const SEED_BYTES: usize = 8;

/// Bytes an object takes at full length.
pub(crate) fn full_len(key_len: usize, value_len: u32) -> usize {
    OBJECT_HEADER_BYTES + key_len + value_len as usize
}

/// Appends the header and the key.
pub(crate) fn encode_head(key: &[u8], sequence: Sequence, value: &Value, to: &mut Vec<u8>) {
    let flags = if matches!(value, Value::Synthetic { .. }) { SYNTHETIC } else { 0 };
    to.push(key.len() as u8);
    to.push(flags);
    to.extend_from_slice(&sequence.to_le_bytes());
    to.extend_from_slice(&value.len().to_le_bytes());
    to.extend_from_slice(key);
}

/// Appends the whole object.
pub(crate) fn encode(key: &[u8], sequence: Sequence, value: &Value, to: &mut Vec<u8>) {
    encode_head(key, sequence, value, to);
    match value {
        Value::Bytes(bytes) => to.extend_from_slice(bytes),
        Value::Synthetic { seed, .. } => to.extend_from_slice(&seed.to_le_bytes()),
    }
}

/// The header of an object and its key, as stored.
#[derive(Clone, Copy)]
pub(crate) struct ObjectHead<'a> {
    pub key: &'a [u8],
    pub sequence: Sequence,
    pub value_len: u32,
    pub is_synthetic: bool,
    body: &'a [u8],
}

impl<'a> ObjectHead<'a> {
    /// Reads the header at the start of `bytes`. `None` if it does not fit.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let key_len = *bytes.first()? as usize;
        let rest = bytes.get(OBJECT_HEADER_BYTES..)?;
        let (key, body) = rest.split_at_checked(key_len)?;
        Some(Self {
            key,
            sequence: u64_at(bytes, 2),
            value_len: u32_at(bytes, 10),
            is_synthetic: bytes[1] & SYNTHETIC != 0,
            body,
        })
    }

    /// Bytes that the value takes in the page as stored.
    pub(crate) fn stored_value_len(&self) -> usize {
        if self.is_synthetic { SEED_BYTES } else { self.value_len as usize }
    }

    /// The value, if all of it is in this page.
    pub(crate) fn value(&self) -> Option<Value> {
        let stored = self.body.get(..self.stored_value_len())?;
        Some(if self.is_synthetic {
            Value::Synthetic { seed: u64_at(stored, 0), len: self.value_len }
        } else {
            Value::from_bytes(stored)
        })
    }

    /// The part of the value that follows the key in this page.
    pub(crate) fn first_part(&self) -> &'a [u8] {
        self.body
    }

    /// Bytes of header, key and value as stored.
    pub(crate) fn stored_len(&self) -> usize {
        OBJECT_HEADER_BYTES + self.key.len() + self.stored_value_len()
    }
}
