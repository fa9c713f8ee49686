//! Values by direction, as in fio: `8k,4k` is 8k for reads, and 4k for writes and trims; `8k,,4k`
//! keeps the default for writes.

use std::fmt;

use report::units::{parse_bytes, parse_count_in};
use serde::de;
use serde::de::{Deserializer, Visitor};

use crate::operation::Direction;
use crate::size::default_block_bytes;

/// A value for reads, one for writes and one for trims.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PerDirection<T> {
    /// The value for reads.
    pub read: T,
    /// The value for writes.
    pub write: T,
    /// The value for trims.
    pub trim: T,
}

impl<T: Clone> From<T> for PerDirection<T> {
    fn from(value: T) -> Self {
        Self { read: value.clone(), write: value.clone(), trim: value }
    }
}

impl<T> PerDirection<T> {
    /// Returns the value of a direction. Flushes have that of writes.
    pub fn of(&self, direction: Direction) -> &T {
        match direction {
            Direction::Read => &self.read,
            Direction::Write | Direction::Flush => &self.write,
            Direction::Trim => &self.trim,
        }
    }

    /// Returns all three values.
    pub(super) fn each(&self) -> [(Direction, &T); 3] {
        [
            (Direction::Read, &self.read),
            (Direction::Write, &self.write),
            (Direction::Trim, &self.trim),
        ]
    }

    /// Applies `change` to each value.
    pub(super) fn map<U>(&self, change: impl Fn(&T) -> U) -> PerDirection<U> {
        let Self { read, write, trim } = self;
        PerDirection { read: change(read), write: change(write), trim: change(trim) }
    }
}

impl<T: Clone> PerDirection<T> {
    /// Parses up to three values, separated by commas, as in fio. An empty value is `default`. A
    /// missing value at the end is equal to the one before it.
    ///
    /// # Errors
    /// Returns the problem of a value.
    pub(super) fn parse(
        text: &str,
        default: &T,
        value: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Self, String> {
        let one = |part: &str| match part.trim() {
            "" => Ok(default.clone()),
            part => value(part),
        };
        let parts: Vec<&str> = text.split(',').collect();
        match parts[..] {
            // For an empty text `value` reports the best error.
            [all] => value(all).map(Self::from),
            [read, write] => {
                let (read, write) = (one(read)?, one(write)?);
                Ok(Self { read, trim: write.clone(), write })
            }
            [read, write, trim] => {
                Ok(Self { read: one(read)?, write: one(write)?, trim: one(trim)? })
            }
            _ => Err(format!("`{text}`: allowed are up to three values: reads, writes, trims")),
        }
    }
}

impl<T: fmt::Display + PartialEq> fmt::Display for PerDirection<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { read, write, trim } = self;
        match (read == write, write == trim) {
            (true, true) => write!(f, "{read}"),
            (false, true) => write!(f, "{read},{write}"),
            (_, false) => write!(f, "{read},{write},{trim}"),
        }
    }
}

/// Deserializes bytes of an operation: a number, a text such as `"128KiB"`, or several values by
/// direction.
pub(super) fn sizes<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<PerDirection<u64>, D::Error> {
    deserializer
        .deserialize_any(Numbers {
            expected: "bytes: a whole number such as 4096, a text such as \"128KiB\", or \"8k,4k\" \
                   for reads and writes",
            whole: |bytes| Ok(bytes as f64),
            fraction: |_| None,
            text: |text| parse_bytes(text).map(|bytes| bytes as f64),
            default: default_block_bytes() as f64,
        })
        .map(|sizes| sizes.map(|bytes| *bytes as u64))
}

/// Deserializes operations per second: a number, a text such as `"20k"`, or several values by
/// direction.
pub(super) fn operation_rates<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<PerDirection<f64>>, D::Error> {
    let rates = deserializer.deserialize_any(Numbers {
        expected: "operations per second: 500, \"20k\", or \"500,100\" for reads and writes",
        whole: |rate| Ok(rate as f64),
        fraction: Some,
        text: operations_per_second,
        default: 0.0,
    });
    rates.map(Some)
}

fn operations_per_second(text: &str) -> Result<f64, String> {
    let rate = text.trim().parse::<f64>().ok();
    let rate = rate.or_else(|| parse_count_in(text, 0..=1 << 60).ok().map(|rate| rate as f64));
    rate.ok_or_else(|| format!("`{text}` is no rate: write operations per second, 500 or 20k"))
}

/// Deserializes bytes per second, with a unit. A number without a unit is refused: it meant
/// operations per second in earlier versions.
pub(super) fn byte_rates<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<PerDirection<f64>>, D::Error> {
    let rates = deserializer.deserialize_any(Numbers {
        expected: "bytes per second with a unit: \"10m\", \"4096b\", or \"10m,1m\" for reads and \
                   writes",
        whole: |rate| Err(without_unit(&rate.to_string())),
        fraction: |_| None,
        text: |text| match text.trim().parse::<f64>() {
            Ok(0.0) => Ok(0.0),
            Ok(_) => Err(without_unit(text)),
            Err(_) => parse_bytes(text).map(|rate| rate as f64),
        },
        default: 0.0,
    });
    rates.map(Some)
}

fn without_unit(rate: &str) -> String {
    format!(
        "rate = {rate}: rate is bytes per second, as in fio, and takes a unit ({rate}k, {rate}b); \
         for operations per second give rate_iops = {rate}"
    )
}

/// Deserializes numbers by direction from any type of TOML value.
struct Numbers {
    expected: &'static str,
    whole: fn(u64) -> Result<f64, String>,
    fraction: fn(f64) -> Option<f64>,
    text: fn(&str) -> Result<f64, String>,
    default: f64,
}

impl Visitor<'_> for Numbers {
    type Value = PerDirection<f64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
        (self.whole)(number).map(Into::into).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
        match u64::try_from(number) {
            Ok(number) => self.visit_u64(number),
            Err(_) => Err(E::invalid_value(de::Unexpected::Signed(number), &self)),
        }
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Self::Value, E> {
        let value = (self.fraction)(number);
        value.map(Into::into).ok_or_else(|| {
            if number.fract() == 0.0
                && number >= 0.0
                && let Err(words) = (self.whole)(number as u64)
            {
                return E::custom(words);
            }
            E::invalid_type(de::Unexpected::Float(number), &self)
        })
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        PerDirection::parse(text, &self.default, self.text).map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(text: &str) -> Result<[u64; 3], String> {
        let PerDirection { read, write, trim } = PerDirection::parse(text, &4_096, parse_bytes)?;
        Ok([read, write, trim])
    }

    #[test]
    fn values_are_those_of_fio() {
        for (text, values) in [
            ("8k", [8_192; 3]),
            ("8k,16k", [8_192, 16_384, 16_384]),
            ("8k,16k,32k", [8_192, 16_384, 32_768]),
            (",8k", [4_096, 8_192, 8_192]),
            ("8k,", [8_192, 4_096, 4_096]),
            (",8k,", [4_096, 8_192, 4_096]),
        ] {
            assert_eq!(sizes(text), Ok(values), "{text}");
        }
        for text in ["", "k", "8k,x", "1,2,3,4"] {
            assert!(sizes(text).is_err(), "{text}");
        }
        let text = |text| PerDirection::parse(text, &0, parse_bytes).expect("right").to_string();
        assert_eq!(
            (text("1"), text("1,2"), text("1,2,3")),
            ("1".into(), "1,2".into(), "1,2,3".into())
        );
    }
}
