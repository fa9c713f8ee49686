//! The choice of NVM sets for a stream.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer, de};

/// The NVM sets of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetChoice {
    /// One set, by its number from 1.
    One(u16),
    /// All sets of the drive: random operations are spread evenly over them, operations in order
    /// visit them in turn.
    All,
}

const ALL: &str = "all";

impl SetChoice {
    /// Whether the choice includes the set with this number.
    pub(super) fn has(self, number: u16) -> bool {
        match self {
            Self::One(own) => own == number,
            Self::All => true,
        }
    }
}

impl fmt::Display for SetChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(number) => number.fmt(f),
            Self::All => f.write_str(ALL),
        }
    }
}

impl Serialize for SetChoice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::One(number) => serializer.serialize_u16(*number),
            Self::All => serializer.serialize_str(ALL),
        }
    }
}

impl<'de> Deserialize<'de> for SetChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SetVisitor)
    }
}

struct SetVisitor;

impl Visitor<'_> for SetVisitor {
    type Value = SetChoice;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the number of a set, from 1 to 65535, or \"all\"")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<SetChoice, E> {
        let wrong = |_| E::invalid_value(de::Unexpected::Unsigned(number), &self);
        u16::try_from(number).map(SetChoice::One).map_err(wrong)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<SetChoice, E> {
        let wrong = |_| E::invalid_value(de::Unexpected::Signed(number), &self);
        u16::try_from(number).map(SetChoice::One).map_err(wrong)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<SetChoice, E> {
        if text == ALL {
            return Ok(SetChoice::All);
        }
        Err(E::invalid_value(de::Unexpected::Str(text), &self))
    }
}
