//! The encoding of the part of edits that all indexes share.
//! ```text
//! count, u32 | extents: number u32, stream u8, generation u64, age u64, published u32,
//!              entered u32, dead u32, count u32, placed ranges u32 u32
//! flushed u8 (1: sequence u64, log from u64)
//! ```

use super::changes::{Changes, Counts, ExtentChange};
use crate::format::codec::{Reader, Writer};
use crate::medium::{ExtentId, Stream};
use crate::wal::Flushed;

/// Appends the extent changes of an edit, in the format of [`read_changes`].
pub(crate) fn write_changes(out: &mut Writer, changes: &Changes) {
    out.u32(changes.extents.len() as u32);
    for (id, change) in &changes.extents {
        write_change(out, *id, change);
    }
}

/// Reads the extent changes of an edit; `None` if the bytes are malformed.
pub(crate) fn read_changes(input: &mut Reader<'_>) -> Option<Changes> {
    let mut changes = Changes::default();
    for _ in 0..input.u32()? {
        let (id, change) = read_change(input)?;
        changes.extents.insert(id, change);
    }
    Some(changes)
}

/// Appends the journal contents that a flush made unnecessary, if any, in the format of
/// [`read_flushed`].
pub(crate) fn write_flushed(out: &mut Writer, flushed: Option<Flushed>) {
    match flushed {
        None => out.u8(0),
        Some(Flushed { sequence, log_from }) => {
            out.u8(1);
            out.u64(sequence);
            out.u64(log_from);
        }
    }
}

/// Reads the optional result of a flush; the outer `None` means that the bytes are malformed.
#[expect(
    clippy::option_option,
    reason = "outside: whether it can be read; inside: whether it is there"
)]
pub(crate) fn read_flushed(input: &mut Reader<'_>) -> Option<Option<Flushed>> {
    Some(match input.u8()? {
        0 => None,
        _ => Some(Flushed { sequence: input.counter()?, log_from: input.counter()? }),
    })
}

fn write_change(out: &mut Writer, id: ExtentId, change: &ExtentChange) {
    let ExtentChange { stream, generation, age, placed, counts } = change;
    let Counts { published, entered, dead } = counts;
    out.u32(id.0);
    out.u8(*stream as u8);
    out.u64(*generation);
    out.u64(*age);
    out.u32(*published);
    out.u32(*entered);
    out.u32(*dead);
    out.u32(placed.len() as u32);
    for range in placed {
        out.u32(range.start);
        out.u32(range.end);
    }
}

fn read_change(input: &mut Reader<'_>) -> Option<(ExtentId, ExtentChange)> {
    let id = ExtentId(input.u32()?);
    let stream = *Stream::ALL.get(input.u8()? as usize)?;
    let (generation, age) = (input.counter()?, input.counter()?);
    let (published, entered, dead) = (input.u32()?, input.u32()?, input.u32()?);
    let mut placed = Vec::new();
    for _ in 0..input.u32()? {
        placed.push(input.u32()?..input.u32()?);
    }
    let counts = Counts { published, entered, dead };
    Some((id, ExtentChange { stream, generation, age, placed, counts }))
}
