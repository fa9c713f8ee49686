//! The parts common to the dumps of all indexes: memtables and extents.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use crate::format::codec::{Reader, Writer};
use crate::format::object::Sequence;
use crate::medium::{ExtentId, PageNo, Shape, Stream};
use crate::memtable::{Memtable, Memtables};
use crate::space::extent::{Extent, FilledBy, State};
use crate::space::extents::Extents;
use crate::space::limits::max_value_bytes;
use crate::wal::records::{Record, read_record, write_record};

/// Writes the memtables separately, so that each has the same size when it is read back. A single
/// memtable with all their contents would exceed the space of any flush, and grow again after each
/// power cut.
pub(crate) fn write_memtables(out: &mut Writer, memtables: &Memtables, with_frozen: bool) {
    let frozen = memtables.frozen.iter().filter(|_| with_frozen);
    let all: Vec<_> = frozen.chain([&memtables.active]).map(|memtable| memtable.borrow()).collect();
    out.u32(all.len() as u32);
    for memtable in all {
        write_memtable(out, &memtable);
    }
}

fn write_memtable(out: &mut Writer, memtable: &Memtable) {
    out.u64(memtable.len() as u64);
    for (key, sequence, entry) in memtable.iter() {
        write_record(out, key, sequence, entry);
    }
}

/// Reads memtables; the last one becomes the active one. Returns `None` if a write in them is newer
/// than `newest`, or a value is too long for the medium.
pub(crate) fn read_memtables(
    input: &mut Reader<'_>,
    newest: Sequence,
    shape: Shape,
) -> Option<Memtables> {
    let count = input.u32()?;
    let mut all = (0..count)
        .map(|_| {
            Some(Rc::new(RefCell::new(read_memtable(input, newest, max_value_bytes(&shape))?)))
        })
        .collect::<Option<VecDeque<_>>>()?;
    Some(Memtables { active: all.pop_back()?, frozen: all })
}

fn read_memtable(input: &mut Reader<'_>, newest: Sequence, longest: u32) -> Option<Memtable> {
    let mut memtable = Memtable::default();
    let mut before: &[u8] = &[];
    for _ in 0..input.u64()? {
        let Record { key, sequence, entry } = read_record(input, longest)?;
        (before < key && sequence <= newest).then_some(())?;
        before = key;
        memtable.insert(key, sequence, entry, None);
    }
    Some(memtable)
}

/// Writes the states of all extents, as read by [`read_extents`].
pub(crate) fn write_extents(out: &mut Writer, extents: &Extents) {
    out.u64(extents.opened());
    for (_, extent) in extents.iter() {
        let has_runs = if extent.runs.is_empty() { 0 } else { HAS_RUNS };
        out.u8(extent.state as u8 | has_runs);
        out.u8(extent.stream as u8);
        out.u32(extent.cursor);
        out.u32(extent.published);
        out.u32(extent.live);
        out.u64(extent.age);
        out.u64(extent.generation);
        out.string(&bits_of(extents.shape(), &extent.holes));
        if !extent.runs.is_empty() {
            write_runs(out, &extent.runs);
        }
    }
}

/// A flag in the byte of an extent's state: the runs that filled the extent follow its other
/// fields.
const HAS_RUNS: u8 = 0x80;

fn write_runs(out: &mut Writer, runs: &[FilledBy]) {
    out.u32(runs.len() as u32);
    for filled in runs {
        out.u32(filled.from);
        out.u32(filled.run);
    }
}

/// Reads the runs that filled an extent up to `cursor`.
fn read_runs(input: &mut Reader<'_>, cursor: u32) -> Option<Vec<FilledBy>> {
    let mut all: Vec<FilledBy> = Vec::new();
    for _ in 0..input.u32()? {
        let next = FilledBy { from: input.u32()?, run: input.u32()? };
        let is_next = match all.last() {
            Some(last) => last.from < next.from && last.run < next.run,
            None => next.from == 0 && next.run > 0,
        };
        (is_next && next.from <= cursor).then_some(())?;
        all.push(next);
    }
    Some(all)
}

/// Reads the extents of a medium of this `shape`. The first `known` existed when the dump was
/// written; extents added by growth since are free. Returns `None` if the bytes are invalid.
pub(crate) fn read_extents(input: &mut Reader<'_>, shape: Shape, known: u32) -> Option<Extents> {
    (known <= shape.extents).then_some(())?;
    let opened = input.counter()?;
    let mut extents = (0..known)
        .map(|id| read_extent(input, shape, ExtentId(id)))
        .collect::<Option<Vec<Extent>>>()?;
    extents.resize(shape.extents as usize, Extent::blank());
    Some(Extents::restore(shape, extents, opened))
}

/// Returns one bit for each page of an extent, or nothing if no bit is set. Power cuts make holes
/// again and again, and the dump must not outgrow its space.
fn bits_of(shape: Shape, pages: &[PageNo]) -> Vec<u8> {
    let Some(_) = pages.first() else { return Vec::new() };
    let mut bits = vec![0; shape.pages_per_extent.div_ceil(8) as usize];
    for place in pages.iter().map(|page| page.0 % shape.pages_per_extent) {
        bits[place as usize / 8] |= 1 << (place % 8);
    }
    bits
}

fn pages_of(shape: Shape, id: ExtentId, bits: &[u8]) -> Option<Vec<PageNo>> {
    let is_set = |place: &u32| bits[*place as usize / 8] & (1 << (place % 8)) != 0;
    match bits.len() {
        0 => Some(Vec::new()),
        len if len == shape.pages_per_extent.div_ceil(8) as usize => {
            let places = (0..shape.pages_per_extent).filter(is_set);
            Some(places.map(|place| shape.page(id, place)).collect())
        }
        _ => None,
    }
}

fn read_extent(input: &mut Reader<'_>, shape: Shape, id: ExtentId) -> Option<Extent> {
    let state_and_more = input.u8()?;
    let state = *State::ALL.get((state_and_more & !HAS_RUNS) as usize)?;
    let stream = *Stream::ALL.get(input.u8()? as usize)?;
    let (cursor, published, live) = (input.u32()?, input.u32()?, input.u32()?);
    let (age, generation) = (input.counter()?, input.counter()?);
    let holes = pages_of(shape, id, input.string()?)?;
    let is_sound =
        cursor <= shape.pages_per_extent && holes.len() <= cursor as usize && live <= published;
    is_sound.then_some(())?;
    let has_runs = state_and_more & HAS_RUNS != 0;
    let runs = if has_runs { read_runs(input, cursor)? } else { Vec::new() };
    let state = match state {
        State::Collecting | State::Quarantined => State::Closed,
        same => same,
    };
    Some(Extent { state, stream, cursor, published, live, holes, runs, age, generation })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::value::Value;
    use crate::memtable::Entry;

    const SHAPE: Shape = Shape {
        payload_bytes: 1056,
        page_bytes: 1024,
        pages_per_extent: 32,
        extents: 1,
        grows_to: 0,
        append_unit: 1,
        parallelism: 1,
    };

    fn is_memtable(writes: &[(&[u8], u64, Entry)]) -> bool {
        let mut out = Writer::default();
        out.u32(1);
        out.u64(writes.len() as u64);
        for (key, sequence, entry) in writes {
            write_record(&mut out, key, *sequence, entry);
        }
        let bytes = out.finish();
        read_memtables(&mut Reader::new(&bytes), 9, SHAPE).is_some()
    }

    #[test]
    fn a_memtable_has_each_key_once_and_in_order_and_no_write_of_the_future() {
        let is_read = |writes: &[(&[u8], u64)]| {
            let all: Vec<_> = writes.iter().map(|(key, number)| (*key, *number, None)).collect();
            is_memtable(&all)
        };
        assert!(is_read(&[(b"a", 5), (b"b", 9)]));
        assert!(!is_read(&[(b"a", 5), (b"a", 6)]) && !is_read(&[(b"b", 5), (b"a", 6)]));
        assert!(!is_read(&[(b"a", 10)]), "newer than the newest");
        assert!(!is_read(&[(b"", 1)]) && !is_read(&[(&[7; 256], 1)]), "no keys");
    }

    #[test]
    fn a_memtable_has_no_value_that_the_medium_would_not_take() {
        let has = |len| is_memtable(&[(b"a", 1, Some(Value::Synthetic { seed: 1, len }))]);
        let most = max_value_bytes(&SHAPE);
        assert!(has(most) && !has(most + 1));
    }

    #[test]
    fn the_runs_that_filled_an_extent_come_back_in_order_and_in_what_was_filled() {
        let read = |runs: &[(u32, u32)]| {
            let runs = runs.iter().map(|&(from, run)| FilledBy { from, run }).collect();
            let extent = Extent { cursor: 8, runs, ..Extent::opened(Stream::Objects, 1, 1) };
            let mut out = Writer::default();
            write_extents(&mut out, &Extents::restore(SHAPE, vec![extent.clone()], 1));
            let extents = read_extents(&mut Reader::new(&out.finish()), SHAPE, SHAPE.extents)?;
            assert_eq!(*extents.get(ExtentId(0)), extent);
            let runs = (0..9).map(|place| extents.stamp(SHAPE.page(ExtentId(0), place)).1);
            Some(runs.collect::<Vec<u32>>())
        };
        assert_eq!(read(&[]), Some(vec![0; 9]));
        assert_eq!(read(&[(0, 2), (2, 5), (6, 7)]), Some(vec![2, 2, 5, 5, 5, 5, 7, 7, 7]));
        for wrong in [
            [(0, 2), (2, 5), (2, 7)],
            [(0, 2), (2, 5), (6, 5)],
            [(1, 2), (2, 5), (6, 7)],
            [(0, 0), (2, 5), (6, 7)],
            [(0, 2), (2, 5), (9, 7)],
        ] {
            assert_eq!(read(&wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn an_extent_has_no_more_pages_than_there_are_nor_more_alive_than_were() {
        let is_read = |cursor: u32, published: u32, live: u32| {
            let mut out = Writer::default();
            out.u64(1);
            out.u8(State::Closed as u8);
            out.u8(Stream::Index as u8);
            for number in [cursor, published, live] {
                out.u32(number);
            }
            out.u64(1);
            out.u64(1);
            out.string(&[]);
            read_extents(&mut Reader::new(&out.finish()), SHAPE, SHAPE.extents).is_some()
        };
        assert!(is_read(32, 4, 4));
        assert!(!is_read(33, 4, 4) && !is_read(32, 4, 5));
    }
}
