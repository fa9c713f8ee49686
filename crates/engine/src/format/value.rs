//! Values: bytes, or a seed from which the bytes are computed.

use std::fmt;

use bytes::Bytes;
use runtime::mix64;

/// The value of a key.
///
/// A simulated store of 44 million values of 1 KiB would need 45 GB of host memory for bytes that
/// no test reads. A *synthetic* value is a seed and a length instead: pages store the short form,
/// every layer charges time and space for the full length, and the reader checks the seed. Stores
/// on real media always write [`Value::to_bytes`].
#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    /// The bytes; clones share them.
    Bytes(Bytes),
    /// `len` pseudo-random bytes that `seed` determines.
    Synthetic {
        /// The seed of all bytes.
        seed: u64,
        /// Length in bytes.
        len: u32,
    },
}

impl Value {
    /// Creates a value from a copy of `bytes`.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self::Bytes(Bytes::copy_from_slice(bytes))
    }

    /// Returns the full length in bytes, for both forms. Lengths above `u32::MAX` are returned as
    /// `u32::MAX`, which no store accepts.
    pub fn len(&self) -> u32 {
        match self {
            Self::Bytes(bytes) => u32::try_from(bytes.len()).unwrap_or(u32::MAX),
            Self::Synthetic { len, .. } => *len,
        }
    }

    /// Whether the value has no bytes. An empty value is legal and differs from an absent one.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes; those of a synthetic value are computed. Cost: one hash per 8 bytes.
    pub fn to_bytes(&self) -> Bytes {
        self.clone().into_bytes()
    }

    /// Returns the bytes as [`Self::to_bytes`] does, but consumes the value.
    pub fn into_bytes(self) -> Bytes {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Synthetic { seed, len } => {
                let words = (0..u64::from(len.div_ceil(8))).map(|i| mix64(seed ^ mix64(i)));
                words.flat_map(u64::to_le_bytes).take(len as usize).collect()
            }
        }
    }
}

impl From<Value> for Vec<u8> {
    /// Converts to bytes. Copies them only if they are shared.
    fn from(value: Value) -> Self {
        value.into_bytes().into()
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Self {
        Self::from_bytes(bytes)
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) if bytes.len() <= 16 => write!(f, "{:?}", bytes.escape_ascii()),
            Self::Bytes(bytes) => {
                write!(f, "\"{}..\" ({} bytes)", bytes[..16].escape_ascii(), bytes.len())
            }
            Self::Synthetic { seed, len } => write!(f, "synthetic({seed:#x}, {len} bytes)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_longer_than_can_be_said_does_not_look_short() {
        // Untouched zero pages use no memory.
        let long = Value::Bytes(Bytes::from(vec![0; (1 << 32) + 5]));
        assert_eq!(long.len(), u32::MAX);
        assert!(!Value::Bytes(Bytes::from(vec![0; 1 << 32])).is_empty());
    }
}
