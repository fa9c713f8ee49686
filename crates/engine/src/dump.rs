//! What every dump holds, whichever index it is of: memtables and extents.

use crate::Value;
use crate::format::codec::{Reader, Writer};
use crate::memtable::{Entry, Memtable, Memtables};
use crate::store::extents::{Extent, Extents, State};
use crate::store::medium::{PageNo, Shape, Stream};

pub(crate) fn write_memtables(out: &mut Writer, memtables: &Memtables, with_frozen: bool) {
    // Oldest first, so that reading them back one after the other leaves the newest on top.
    let frozen = memtables.frozen.iter().filter(|_| with_frozen);
    let all: Vec<_> = frozen.chain([&memtables.active]).map(|memtable| memtable.borrow()).collect();
    out.u64(all.iter().map(|memtable| memtable.len() as u64).sum());
    for (key, sequence, entry) in all.iter().flat_map(|memtable| memtable.iter()) {
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
}

pub(crate) fn read_memtable(input: &mut Reader<'_>) -> Option<Memtable> {
    let mut memtable = Memtable::default();
    for _ in 0..input.u64()? {
        let key = input.string()?;
        let sequence = input.u64()?;
        let entry: Entry = match input.u8()? {
            0 => None,
            1 => Some(Value::from_bytes(input.string()?)),
            2 => Some(Value::Synthetic { seed: input.u64()?, len: input.u32()? }),
            _ => return None,
        };
        memtable.insert(key, sequence, entry, None);
    }
    Some(memtable)
}

pub(crate) fn write_extents(out: &mut Writer, extents: &Extents) {
    out.u64(extents.opened());
    for (_, extent) in extents.iter() {
        out.u8(extent.state as u8);
        out.u8(extent.stream as u8);
        out.u32(extent.cursor);
        out.u32(extent.published);
        out.u32(extent.live);
        out.u64(extent.age);
        out.u64(extent.generation);
        out.u32(extent.holes.len() as u32);
        for page in &extent.holes {
            out.u32(page.0);
        }
    }
}

pub(crate) fn read_extents(input: &mut Reader<'_>, shape: Shape) -> Option<Extents> {
    let opened = input.u64()?;
    let extents =
        (0..shape.extents).map(|_| read_extent(input)).collect::<Option<Vec<Extent>>>()?;
    Some(Extents::restore(shape, extents, opened))
}

fn read_extent(input: &mut Reader<'_>) -> Option<Extent> {
    let state = *State::ALL.get(input.u8()? as usize)?;
    let stream = *Stream::ALL.get(input.u8()? as usize)?;
    let (cursor, published, live) = (input.u32()?, input.u32()?, input.u32()?);
    let (age, generation) = (input.u64()?, input.u64()?);
    let holes = (0..input.u32()?).map(|_| input.u32().map(PageNo)).collect::<Option<Vec<_>>>()?;
    let state = match state {
        State::Collecting => State::Closed,
        same => same,
    };
    Some(Extent { state, stream, cursor, published, live, holes, age, generation })
}
