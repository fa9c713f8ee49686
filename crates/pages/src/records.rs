//! Writes as bytes: in dumps and in the log.

use crate::format::codec::{Reader, Writer};
use crate::format::object::MAX_KEY_BYTES;
use crate::format::object::Sequence;
use crate::format::value::Value;
use crate::memtable::Entry;

/// A write that was read back.
pub(crate) struct Record<'a> {
    pub key: &'a [u8],
    pub sequence: Sequence,
    pub entry: Entry,
}

pub(crate) fn write_record(out: &mut Writer, key: &[u8], sequence: Sequence, entry: &Entry) {
    out.string(key);
    out.u64(sequence);
    match entry {
        None => out.u8(0),
        Some(Value::Bytes(bytes)) => {
            out.u8(1);
            out.string(bytes);
        }
        Some(Value::Synthetic { seed, len }) => {
            out.u8(2);
            out.u64(*seed);
            out.u32(*len);
        }
    }
}

/// The next write; `None` if it is none, or its value has more than `longest` bytes.
pub(crate) fn read_record<'a>(input: &mut Reader<'a>, longest: u32) -> Option<Record<'a>> {
    let key = input.string().filter(|key| (1..=MAX_KEY_BYTES).contains(&key.len()))?;
    let sequence = input.counter()?;
    let entry = match input.u8()? {
        0 => None,
        1 => Some(Value::from_bytes(input.string()?)),
        2 => Some(Value::Synthetic { seed: input.u64()?, len: input.u32()? }),
        _ => return None,
    };
    let has_length = entry.as_ref().is_none_or(|value| value.len() <= longest);
    has_length.then_some(Record { key, sequence, entry })
}
