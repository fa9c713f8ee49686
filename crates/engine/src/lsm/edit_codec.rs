//! Edits as bytes, for the manifest.
//!
//! ```text
//! count, u32 | level edits: level u32, range u32 u32, count u32, segments
//! count, u32 | extents: number u32, stream u8, generation u64, age u64, published u32, dead u32,
//!              count u32, placed ranges u32 u32
//! flushed u8 (1: sequence u64, log from u64) | retired u8 (1: extent u32)
//! ```
//! Segments are written as in a dump. Replaying an edit does to what a checkpoint restored what
//! [`Inner::apply`](crate::lsm::Inner) did to the running store.

use crate::format::codec::{Reader, Writer};
use crate::journal::Flushed;
use crate::lsm::edit::Edit;
use crate::lsm::segment_codec::{Home, write_segment};
use crate::lsm::version::LevelEdit;
use crate::store::changes::{Changes, ExtentChange};
use crate::store::medium::{ExtentId, Stream};

pub(crate) fn encode(edit: &Edit) -> Vec<u8> {
    let mut out = Writer::default();
    out.u32(edit.levels.len() as u32);
    for level in &edit.levels {
        out.u32(level.level as u32);
        out.u32(level.range.start as u32);
        out.u32(level.range.end as u32);
        out.u32(level.new.len() as u32);
        for named in &level.new {
            write_segment(&mut out, &named.first_key, &named.segment, named.filter.as_ref());
        }
    }
    out.u32(edit.changes.extents.len() as u32);
    for (id, change) in &edit.changes.extents {
        write_change(&mut out, *id, change);
    }
    match edit.flushed {
        None => out.u8(0),
        Some(Flushed { sequence, log_from }) => {
            out.u8(1);
            out.u64(sequence);
            out.u64(log_from);
        }
    }
    match edit.retired {
        None => out.u8(0),
        Some(id) => {
            out.u8(1);
            out.u32(id.0);
        }
    }
    out.finish()
}

/// `None` if `bytes` are no edit.
pub(crate) fn decode(bytes: &[u8], home: &Home<'_>) -> Option<Edit> {
    let input = &mut Reader::new(bytes);
    let mut levels = Vec::new();
    for _ in 0..input.u32()? {
        let level = input.u32()? as usize;
        let range = input.u32()? as usize..input.u32()? as usize;
        let mut new = Vec::new();
        for _ in 0..input.u32()? {
            new.push(home.read_segment(input)?);
        }
        levels.push(LevelEdit { level, range, new });
    }
    let mut changes = Changes::default();
    for _ in 0..input.u32()? {
        let (id, change) = read_change(input)?;
        changes.extents.insert(id, change);
    }
    let flushed = match input.u8()? {
        0 => None,
        _ => Some(Flushed { sequence: input.counter()?, log_from: input.counter()? }),
    };
    let retired = match input.u8()? {
        0 => None,
        _ => Some(ExtentId(input.u32()?)),
    };
    input.is_at_end().then_some(Edit { levels, changes, flushed, retired })
}

fn write_change(out: &mut Writer, id: ExtentId, change: &ExtentChange) {
    let ExtentChange { stream, generation, age, placed, published, dead } = change;
    out.u32(id.0);
    out.u8(*stream as u8);
    out.u64(*generation);
    out.u64(*age);
    out.u32(*published);
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
    let (published, dead) = (input.u32()?, input.u32()?);
    let mut placed = Vec::new();
    for _ in 0..input.u32()? {
        placed.push(input.u32()?..input.u32()?);
    }
    Some((id, ExtentChange { stream, generation, age, placed, published, dead }))
}
