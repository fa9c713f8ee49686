//! RocksDB's traces as written by `trace_analyzer` with `-convert_to_human_readable_trace`: `KEY
//! TYPE FAMILY VALUE_SIZE TIME`, the key in hexadecimal, the time in microseconds.

use std::collections::VecDeque;

use super::super::Wrong;
use super::super::fields::{small, whole};
use super::record::{Counts, KvOp, KvRecord, sizes};

const FIELDS: &str =
    "five fields: key in hexadecimal digits, type, column family, value size, time in us";
const NO_KEYS: &str = "a key first; without trace_analyzer's -no_key it writes them";
/// Upper bound of types, above all known ones.
const MOST_TYPE: u32 = 32;

/// The parser of RocksDB's traces.
#[derive(Debug, Default)]
pub(super) struct Rocksdb {
    counts: Counts,
}

impl Rocksdb {
    pub(super) fn is_line(line: &str) -> bool {
        let mut words = line.split_whitespace();
        // Without the hexadecimal prefix, a line of five numbers may be of any format.
        let key = words.next().filter(|word| word.starts_with("0x")).and_then(from_hex);
        let numbers: Vec<bool> = words.map(|word| whole(word, "").is_ok()).collect();
        key.is_some() && numbers == [true; 4]
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    pub(super) fn line(
        &mut self,
        text: &str,
        records: &mut VecDeque<KvRecord>,
    ) -> Result<(), Wrong> {
        let mut words = text.split_whitespace();
        let mut fields = [""; 5];
        for (i, field) in fields.iter_mut().enumerate() {
            let expected = if i == 4 { NO_KEYS } else { FIELDS };
            *field = words.next().ok_or_else(|| Wrong::new(text, expected))?;
        }
        if words.next().is_some() {
            return Err(Wrong::new(text, FIELDS));
        }
        let [key, kind, family, value_bytes, time] = fields;
        let number = small(kind, "the number of a type")?;
        let family = small(family, "the number of a column family")?;
        let value_bytes = whole(value_bytes, "the size of the value")?;
        let us = u128::from(whole(time, "a time in microseconds")?);
        let at = self.counts.clock.at(us * 1_000, time)?;
        let op = match number {
            0 | 8 => KvOp::Get,
            1 => KvOp::Put,
            2 | 3 => KvOp::Delete,
            5 => KvOp::Merge,
            4 | 6 | 7 | 9..=MOST_TYPE => {
                self.counts.leave_out(match number {
                    4 => "range delete",
                    6 | 7 => "seek",
                    _ => "other",
                });
                return Ok(());
            }
            _ => return Err(Wrong::new(kind, "the number of a type, 0 to 32")),
        };
        let key =
            from_hex(key).ok_or_else(|| Wrong::new(key, "a key in pairs of hexadecimal digits"))?;
        let (key_bytes, value_bytes) = sizes(key.len() as u64, value_bytes, text)?;
        self.counts.families.note(&family.to_string());
        self.counts.largest_family = self.counts.largest_family.max(family);
        records.push_back(KvRecord { at, op, key, family, key_bytes, value_bytes });
        Ok(())
    }
}

/// Decodes hexadecimal digits, with or without `0x`.
fn from_hex(text: &str) -> Option<Box<[u8]>> {
    let digits = text.strip_prefix("0x").unwrap_or(text).as_bytes();
    let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() || pairs.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(value(*high)? << 4 | value(*low)?)).collect()
}
