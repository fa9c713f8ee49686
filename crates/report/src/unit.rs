//! Units of numbers.

use serde::{Serialize, Serializer};

/// Unit of the numbers of an axis. Serialized as its symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A plain number: a count, a factor, a parameter.
    Number,
    /// Microseconds. The page shows us, ms or s, depending on the value.
    Microseconds,
    /// Seconds.
    Seconds,
    /// Operations per second.
    OperationsPerSecond,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Percent; a share is 0 to 100.
    Percent,
    /// Another unit, as its symbol.
    Other(String),
}

impl Unit {
    /// Returns the symbol in files, which is empty for plain numbers.
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

    /// Returns the symbol on a page.
    pub(super) fn shown(&self) -> &str {
        match self {
            Self::Microseconds => "\u{b5}s",
            other => other.symbol(),
        }
    }

    /// Returns a column heading: the name, then the unit in parentheses.
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
