//! Sizes in job files: a number of bytes, a text such as `"64MiB"`, or a share of a set.

use std::fmt;

use block::BLOCK_BYTES;
use report::units::parse_bytes;
use serde::de;
use serde::de::{Deserialize, Deserializer, Visitor};

/// An offset in a set, or the length of a part of it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Extent {
    /// A number of bytes.
    Bytes(u64),
    /// A share of the set, from 0 to 1.
    Share(f64),
}

impl Extent {
    /// Converts the extent to blocks of `block_bytes` bytes in a set of `blocks` blocks, rounded
    /// down.
    pub(super) fn blocks(self, blocks: u64, block_bytes: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes / block_bytes,
            Self::Share(share) => (blocks as f64 * share) as u64,
        }
    }
}

impl<'de> Deserialize<'de> for Extent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ExtentVisitor)
    }
}

struct ExtentVisitor;

impl Visitor<'_> for ExtentVisitor {
    type Value = Extent;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes (4096 or \"64MiB\") or a share of the set (0.25 or \"25%\")")
    }

    fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<Extent, E> {
        Ok(Extent::Bytes(bytes))
    }

    fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<Extent, E> {
        let bytes = u64::try_from(bytes);
        bytes.map(Extent::Bytes).map_err(|_| E::custom("a size is not negative"))
    }

    fn visit_f64<E: de::Error>(self, share: f64) -> Result<Extent, E> {
        Ok(Extent::Share(share))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Extent, E> {
        if let Some(percent) = text.trim().strip_suffix('%') {
            let percent: f64 = percent.trim().parse().map_err(|_| {
                E::custom(format!("`{text}` is no share: write it as \"25%\" or as 0.25"))
            })?;
            return Ok(Extent::Share(percent / 100.0));
        }
        parse_bytes(text).map(Extent::Bytes).map_err(E::custom)
    }
}

/// Returns the default number of bytes of an operation.
pub(super) fn default_block_bytes() -> u64 {
    u64::from(BLOCK_BYTES)
}

/// Deserializes bytes in a job file: a number, or a text such as `"128KiB"`.
pub(super) fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    deserializer.deserialize_any(BytesVisitor)
}

/// Same as [`bytes`], for optional fields.
pub(super) fn some_bytes<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u64>, D::Error> {
    bytes(deserializer).map(Some)
}

struct BytesVisitor;

impl Visitor<'_> for BytesVisitor {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes: a whole number such as 4096, or a text such as \"128KiB\"")
    }

    fn visit_u64<E: de::Error>(self, bytes: u64) -> Result<u64, E> {
        Ok(bytes)
    }

    fn visit_i64<E: de::Error>(self, bytes: i64) -> Result<u64, E> {
        u64::try_from(bytes).map_err(|_| E::custom("a size is not negative"))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<u64, E> {
        parse_bytes(text).map_err(E::custom)
    }
}
