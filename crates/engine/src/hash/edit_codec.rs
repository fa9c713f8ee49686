//! The encoding of edits in the manifest.
//!
//! ```text
//! keys u64 | longest search u32
//! count, u32 | slots: number u64, page u32, index u32, signature u8 (0: deleted), else length u32,
//!              pointer
//! count, u32 | pages: number u32, changes u64, address u32
//! changes of extents | flushed | count, u32 | retired extents u32
//! ```

use super::bucket::Slot;
use super::edit::{Edit, PageWrite, SlotChange, Totals};
use super::table::SlotNo;
use crate::format::codec::{Reader, Writer};
use crate::format::pointer::PointerFormat;
use crate::manifest::fields::{read_changes, read_flushed, write_changes, write_flushed};
use crate::medium::{ExtentId, PageNo};

pub(crate) fn encode(edit: &Edit, totals: Totals, format: PointerFormat) -> Vec<u8> {
    let mut out = Writer::default();
    out.u64(totals.keys);
    out.u32(totals.longest_search);
    out.u32(edit.slots.len() as u32);
    for change in &edit.slots {
        write_slot(&mut out, change, format);
    }
    out.u32(edit.pages.len() as u32);
    for PageWrite { page, changes, at } in &edit.pages {
        out.u32(*page);
        out.u64(*changes);
        out.u32(at.0);
    }
    write_changes(&mut out, &edit.changes);
    write_flushed(&mut out, edit.flushed);
    out.u32(edit.retired.len() as u32);
    for id in &edit.retired {
        out.u32(id.0);
    }
    out.finish()
}

/// Decodes an edit; `None` if `bytes` are malformed.
pub(crate) fn decode(bytes: &[u8], format: PointerFormat) -> Option<(Edit, Totals)> {
    let input = &mut Reader::new(bytes);
    let totals = Totals { keys: input.counter()?, longest_search: input.u32()? };
    let mut edit = Edit::default();
    for _ in 0..input.u32()? {
        edit.slots.push(read_slot(input, format)?);
    }
    for _ in 0..input.u32()? {
        let (page, changes) = (input.u32()?, input.counter()?);
        edit.pages.push(PageWrite { page, changes, at: PageNo(input.u32()?) });
    }
    edit.changes = read_changes(input)?;
    edit.flushed = read_flushed(input)?;
    for _ in 0..input.u32()? {
        edit.retired.push(ExtentId(input.u32()?));
    }
    input.is_at_end().then_some((edit, totals))
}

/// Bytes of a written page in an edit.
pub(crate) const PAGE_BYTES: usize = 4 + 8 + 4;

/// Returns the number of bytes of a slot with a key in an edit.
pub(crate) fn slot_bytes(format: PointerFormat) -> usize {
    8 + 4 + 4 + 1 + 4 + format.bytes
}

fn write_slot(out: &mut Writer, change: &SlotChange, format: PointerFormat) {
    out.u64(change.number);
    out.u32(change.at.page);
    out.u32(change.at.index);
    match change.slot {
        Slot::Empty | Slot::LeadsNowhere => unreachable!("no slot changes to {:?}", change.slot),
        Slot::Deleted => out.u8(0),
        Slot::Held { signature, pointer } => {
            out.u8(signature);
            let mut stored = Vec::with_capacity(format.bytes);
            format.encode(pointer, &mut stored);
            out.string(&stored);
        }
    }
}

fn read_slot(input: &mut Reader<'_>, format: PointerFormat) -> Option<SlotChange> {
    let number = input.counter()?;
    let at = SlotNo { page: input.u32()?, index: input.u32()? };
    let slot = match input.u8()? {
        0 => Slot::Deleted,
        signature => {
            let stored = input.string().filter(|stored| stored.len() == format.bytes)?;
            let pointer = format.decode(stored);
            (!pointer.is_tombstone()).then_some(Slot::Held { signature, pointer })?
        }
    };
    Some(SlotChange { number, at, slot })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::changes::{Counts, ExtentChange};
    use crate::medium::Stream;
    use crate::wal::Flushed;

    #[test]
    fn edits_come_back_and_pieces_of_them_do_not() {
        let format = crate::specimens::pointers();
        let pointer = format.pointer(PageNo(700), 1, 1, 1);
        let at = SlotNo { page: 2, index: 9 };
        let mut edit = Edit {
            slots: vec![
                SlotChange { number: 7, at, slot: Slot::Held { signature: 3, pointer } },
                SlotChange { number: 8, at, slot: Slot::Deleted },
            ],
            pages: vec![PageWrite { page: 2, changes: 7, at: PageNo(44) }],
            flushed: Some(Flushed { sequence: 5, log_from: 6 }),
            retired: vec![ExtentId(3)],
            ..Edit::default()
        };
        let change = ExtentChange {
            stream: Stream::Objects,
            generation: 3,
            age: 4,
            placed: vec![1..3, 5..6],
            counts: Counts { published: 9, entered: 4, dead: 2 },
        };
        edit.changes.extents.insert(ExtentId(21), change);
        let totals = Totals { keys: 12, longest_search: 4 };
        let bytes = encode(&edit, totals, format);
        assert_eq!(decode(&bytes, format), Some((edit, totals)));
        assert!((0..bytes.len()).all(|end| decode(&bytes[..end], format).is_none()));
    }
}
