//! What numbers are counted in.

use serde::{Serialize, Serializer};

/// What the numbers of an axis are counted in. Serialised as its symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A plain number: a count, a factor, a parameter.
    Number,
    /// Microseconds; the page shows them as us, ms or s, whichever reads best.
    Microseconds,
    /// Seconds.
    Seconds,
    /// Operations per second.
    OperationsPerSecond,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Percent: 0 to 100 for a share.
    Percent,
    /// Another, by its symbol.
    Other(String),
}

impl Unit {
    /// The symbol in files; empty for plain numbers.
    pub fn symbol(&self) -> &str {
        match self {
            Self::Number => "",
            Self::Microseconds => "us",
            Self::Seconds => "s",
            Self::OperationsPerSecond => "operations/s",
            Self::Bytes => "B",
            Self::BytesPerSecond => "B/s",
            Self::Percent => "%",
            Self::Other(symbol) => symbol,
        }
    }

    /// The symbol on a page.
    pub(super) fn shown(&self) -> &str {
        match self {
            Self::Microseconds => "\u{b5}s",
            other => other.symbol(),
        }
    }

    /// A name with the unit behind it, as a column is headed.
    pub(super) fn heading(&self, name: &str) -> String {
        match self.symbol() {
            "" => name.to_owned(),
            symbol => format!("{name} ({symbol})"),
        }
    }
}

impl Serialize for Unit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.symbol())
    }
}
