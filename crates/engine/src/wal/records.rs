//! The encoding of writes in dumps and in the log.

use bytes::Bytes;

use crate::format::codec::{Reader, Writer};
use crate::format::object::{MAX_KEY_BYTES, Sequence};
use crate::format::value::Value;
use crate::memtable::Entry;

/// A decoded write.
pub(crate) struct Record<'a> {
    pub key: &'a [u8],
    pub sequence: Sequence,
    pub entry: Entry,
}

/// Values of at least this many bytes are shared by [`Records`]; copying a shorter one uses less
/// memory.
const SHARED_FROM: usize = 128;

/// Writes that wait to be encoded. Their values are shared meanwhile: if the log is written more
/// slowly than clients write, as many bytes wait as the memtables hold.
#[derive(Default)]
pub(crate) struct Records {
    out: Writer,
    /// Values that are not in `out`, in order, each with the offset at which it belongs.
    shared: Vec<(usize, Bytes)>,
}

impl Records {
    pub(crate) fn push(&mut self, key: &[u8], sequence: Sequence, entry: &Entry) {
        match entry {
            Some(Value::Bytes(bytes)) if bytes.len() >= SHARED_FROM => {
                write_head(&mut self.out, key, sequence);
                self.out.u8(BYTES);
                self.out.u32(bytes.len() as u32);
                self.shared.push((self.out.len(), bytes.clone()));
            }
            _ => write_record(&mut self.out, key, sequence, entry),
        }
    }

    /// Returns all writes, encoded as by [`write_record`]. Cost: one copy.
    pub(crate) fn finish(self) -> Vec<u8> {
        let out = self.out.finish();
        if self.shared.is_empty() {
            return out;
        }
        let shared: usize = self.shared.iter().map(|(_, bytes)| bytes.len()).sum();
        let mut all = Vec::with_capacity(out.len() + shared);
        let mut from = 0;
        for (at, bytes) in &self.shared {
            all.extend_from_slice(&out[from..*at]);
            all.extend_from_slice(bytes);
            from = *at;
        }
        all.extend_from_slice(&out[from..]);
        all
    }
}

const DELETE: u8 = 0;
const BYTES: u8 = 1;
const SYNTHETIC: u8 = 2;

fn write_head(out: &mut Writer, key: &[u8], sequence: Sequence) {
    out.string(key);
    out.u64(sequence);
}

pub(crate) fn write_record(out: &mut Writer, key: &[u8], sequence: Sequence, entry: &Entry) {
    write_head(out, key, sequence);
    match entry {
        None => out.u8(DELETE),
        Some(Value::Bytes(bytes)) => {
            out.u8(BYTES);
            out.string(bytes);
        }
        Some(Value::Synthetic { seed, len }) => {
            out.u8(SYNTHETIC);
            out.u64(*seed);
            out.u32(*len);
        }
    }
}

/// Decodes the next write; `None` if the bytes are not a write, or its value has more than
/// `longest` bytes.
pub(crate) fn read_record<'a>(input: &mut Reader<'a>, longest: u32) -> Option<Record<'a>> {
    let key = input.string().filter(|key| (1..=MAX_KEY_BYTES).contains(&key.len()))?;
    let sequence = input.counter()?;
    let entry = match input.u8()? {
        DELETE => None,
        BYTES => Some(Value::from_bytes(input.string()?)),
        SYNTHETIC => Some(Value::Synthetic { seed: input.u64()?, len: input.u32()? }),
        _ => return None,
    };
    let has_length = entry.as_ref().is_none_or(|value| value.len() <= longest);
    has_length.then_some(Record { key, sequence, entry })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_that_share_their_values_are_the_same_bytes() {
        let bytes = |len: usize| Some(Value::from_bytes(&vec![len as u8; len]));
        let synthetic = Some(Value::Synthetic { seed: 7, len: 1000 });
        let entries = [bytes(127), bytes(128), None, bytes(5000), bytes(300), synthetic, bytes(0)];
        let (mut records, mut out) = (Records::default(), Writer::default());
        for (sequence, entry) in (1..).zip(&entries) {
            records.push(b"key", sequence, entry);
            write_record(&mut out, b"key", sequence, entry);
        }
        let shared: Vec<usize> = records.shared.iter().map(|(_, bytes)| bytes.len()).collect();
        assert_eq!(shared, [128, 5000, 300]);
        let Some(Value::Bytes(long)) = &entries[3] else { unreachable!("it has bytes") };
        assert_eq!(records.shared[1].1.as_ptr(), long.as_ptr(), "it is shared, not copied");
        assert_eq!(records.finish(), out.finish());
    }
}
