//! Data pages: objects packed end to end. Only objects larger than a page span several pages.
//!
//! ```text
//! Data       header (entries: objects) | full-length offset of each object, u16 | objects
//! LargeHead  header (28..32: pages of the object) | the object's first part
//! LargeTail  header (28..32: index of this page in the object) | the object's next part
//! Filler     header
//! Offsets are computed as if synthetic values were stored in full. The piece in a pointer is such
//! an offset divided by the piece size.

use super::object::{MAX_KEY_BYTES, MAX_VALUE_BYTES, OBJECT_HEADER_BYTES, ObjectHead, Sequence};
use super::page::{HEADER_BYTES, Page, PageKind, u16_at};
use super::pointer::PIECE_BYTES;
use super::value::Value;
use super::{object, page};
use crate::medium::Shape;

const DIRECTORY_ENTRY_BYTES: usize = 2;

/// Returns the length of a page with these objects in full, in bytes.
pub(crate) fn packed_len(objects: usize, object_bytes: usize) -> usize {
    HEADER_BYTES + objects * DIRECTORY_ENTRY_BYTES + object_bytes
}

/// Whether an object fits in one page.
pub(crate) fn fits_in_a_page(payload_bytes: u32, key_len: usize, value_len: u32) -> bool {
    packed_len(1, object::full_len(key_len, value_len)) <= payload_bytes as usize
}

/// Returns the number of pages of an object that is stored in pages of its own.
pub(crate) fn pages_of_large(payload_bytes: u32, key_len: usize, value_len: u32) -> u32 {
    let in_head = head_room(payload_bytes, key_len);
    let in_tail = payload_bytes - HEADER_BYTES as u32;
    1 + value_len.saturating_sub(in_head).div_ceil(in_tail)
}

/// Returns the number of flash reads that a value needs.
pub(crate) fn pages_of(payload_bytes: u32, key_len: usize, value_len: u32) -> u32 {
    if fits_in_a_page(payload_bytes, key_len, value_len) {
        1
    } else {
        pages_of_large(payload_bytes, key_len, value_len)
    }
}

/// Returns the bytes of pages per object, in pages of objects of this size.
pub(crate) fn bytes_of(payload_bytes: u32, key_len: usize, value_len: u32) -> f64 {
    let room = payload_bytes as usize - packed_len(0, 0);
    let shares_page_with =
        room / packed_len(1, object::full_len(key_len, value_len)).saturating_sub(packed_len(0, 0));
    match shares_page_with {
        0 => f64::from(pages_of_large(payload_bytes, key_len, value_len) * payload_bytes),
        objects => f64::from(payload_bytes) / objects as f64,
    }
}

/// Returns the pages of an object found in `piece` of a page; `None` if no valid object can be
/// there.
pub(crate) fn pages_if_placed(shape: &Shape, piece: u32, head: &ObjectHead<'_>) -> Option<u32> {
    let payload = shape.payload_bytes;
    let is_placed = head.key.len() <= MAX_KEY_BYTES
        && head.value_len <= MAX_VALUE_BYTES
        && piece < payload.div_ceil(PIECE_BYTES);
    is_placed.then_some(())?;
    let pages = pages_of(payload, head.key.len(), head.value_len);
    (pages <= shape.pages_per_extent).then_some(pages)
}

/// Returns the bytes of the value in the head page.
fn head_room(payload_bytes: u32, key_len: usize) -> u32 {
    payload_bytes - (HEADER_BYTES + OBJECT_HEADER_BYTES + key_len) as u32
}

/// An object to be written.
#[derive(Clone, Copy)]
pub(crate) struct Outgoing<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// Its sequence number.
    pub sequence: Sequence,
    /// Its value.
    pub value: &'a Value,
}

impl Outgoing<'_> {
    pub(crate) fn full_len(&self) -> usize {
        object::full_len(self.key.len(), self.value.len())
    }

    fn stored_len(&self) -> usize {
        object::stored_len(self.key.len(), self.value)
    }
}

/// Builds a page of whole objects. Returns it unsealed, with the piece in which each object begins.
pub(crate) fn build(objects: &[Outgoing<'_>]) -> (Vec<u8>, Vec<u32>) {
    // The buffer has the exact capacity, because a flush holds all its pages in memory at once.
    let stored = objects.iter().map(|object| object.stored_len() + DIRECTORY_ENTRY_BYTES).sum();
    let mut bytes = page::start(PageKind::Data, objects.len() as u16, 0, 0, stored);
    let mut offset = packed_len(objects.len(), 0);
    let mut pieces = Vec::with_capacity(objects.len());
    for object in objects {
        bytes.extend_from_slice(&(offset as u16).to_le_bytes());
        pieces.push(offset as u32 / PIECE_BYTES);
        offset += object.full_len();
    }
    for object in objects {
        object::encode(object.key, object.sequence, object.value, &mut bytes);
    }
    (bytes, pieces)
}

/// Builds the pages of one large object, unsealed, head first.
pub(crate) fn build_large(object: &Outgoing<'_>, payload_bytes: u32) -> Vec<Vec<u8>> {
    let count = pages_of_large(payload_bytes, object.key.len(), object.value.len());
    let mut stored = Vec::with_capacity(object.stored_len());
    object::encode(object.key, object.sequence, object.value, &mut stored);
    let mut parts = stored.chunks(payload_bytes as usize - HEADER_BYTES);
    let page = |number: u32| {
        let part = parts.next().unwrap_or_default();
        let (kind, entries, number) = match number {
            0 => (PageKind::LargeHead, 1, count),
            number => (PageKind::LargeTail, 0, number),
        };
        let mut bytes = page::start(kind, entries, 0, number, part.len());
        bytes.extend_from_slice(part);
        bytes
    };
    (0..count).map(page).collect()
}

/// Returns every object of a page, with the piece in which it begins; of a large object, only its
/// head. Returns `None` if the page cannot be parsed to its end.
pub(crate) fn objects(bytes: &[u8]) -> Option<Vec<(u32, ObjectHead<'_>)>> {
    let page = Page::parse(bytes)?;
    match page.kind {
        PageKind::Data => {
            let objects: Vec<_> = Objects::of(&page)?.collect();
            (objects.len() == usize::from(page.entries)).then_some(objects)
        }
        PageKind::LargeHead => Some(vec![(0, ObjectHead::parse(page.body())?)]),
        PageKind::LargeTail | PageKind::Filler => Some(Vec::new()),
        PageKind::Meta
        | PageKind::Bucket
        | PageKind::Log
        | PageKind::Manifest
        | PageKind::TableIndex
        | PageKind::GroupIndex
        | PageKind::FilterColumn
        | PageKind::KeyColumn
        | PageKind::AddressColumn => None,
    }
}

/// Iterates over the objects of a data page, up to the first that does not fit or is not at the
/// offset in the directory.
struct Objects<'a> {
    directory: std::slice::ChunksExact<'a, u8>,
    /// Offset of the next object, with all values in full.
    begins: usize,
    /// The bytes after the objects seen so far.
    rest: &'a [u8],
}

impl<'a> Objects<'a> {
    fn of(page: &Page<'a>) -> Option<Self> {
        let directory_bytes = usize::from(page.entries) * DIRECTORY_ENTRY_BYTES;
        let (directory, rest) = page.body().split_at_checked(directory_bytes)?;
        let begins = HEADER_BYTES + directory_bytes;
        Some(Self { directory: directory.chunks_exact(DIRECTORY_ENTRY_BYTES), begins, rest })
    }
}

impl<'a> Iterator for Objects<'a> {
    type Item = (u32, ObjectHead<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let offset = u16_at(self.directory.next()?, 0);
        (usize::from(offset) == self.begins).then_some(())?;
        let piece = u32::from(offset) / PIECE_BYTES;
        let head = ObjectHead::parse(self.rest)?;
        self.begins += object::full_len(head.key.len(), head.value_len);
        self.rest = self.rest.get(head.stored_len()..)?;
        Some((piece, head))
    }
}

/// The object that a pointer leads to.
pub(crate) enum Found<'a> {
    /// The whole value.
    Whole(Value),
    /// The head of an object that continues in the following pages, and its number of pages.
    Large(ObjectHead<'a>, u32),
}

/// Finds the object with `key` that begins in `piece`. Returns `None` if the page does not hold it,
/// that is, if it is not the page that the index expects.
pub(crate) fn find<'a>(bytes: &'a [u8], piece: u32, key: &[u8]) -> Option<Found<'a>> {
    let page = Page::parse(bytes)?;
    match page.kind {
        PageKind::Data => Objects::of(&page)?
            .find(|(begins, head)| *begins == piece && head.key == key)
            .and_then(|(_, head)| head.value())
            .map(Found::Whole),
        PageKind::LargeHead => {
            let head = ObjectHead::parse(page.body())?;
            (head.key == key).then_some(Found::Large(head, page.large))
        }
        _ => None,
    }
}

/// Returns the part of a large object in its page `number`; `None` if the page is a different one.
pub(crate) fn tail_part(bytes: &[u8], number: u32) -> Option<&[u8]> {
    let page = Page::parse(bytes)?;
    (page.kind == PageKind::LargeTail && page.large == number).then(|| page.body())
}

/// Builds a page without contents.
pub(crate) fn filler() -> Vec<u8> {
    page::start(PageKind::Filler, 0, 0, 0, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::page::finish;
    use crate::specimens::SHAPE;

    fn outgoing<'a>(key: &'a [u8], value: &'a Value) -> Outgoing<'a> {
        Outgoing { key, sequence: 1, value }
    }

    #[test]
    fn objects_are_found_by_piece_and_key() {
        let values: Vec<Value> = (0..9_u8).map(|i| Value::from_bytes(&[i; 300])).collect();
        let keys: Vec<[u8; 1]> = (0..9).map(|i| [i]).collect();
        let objects: Vec<_> = keys.iter().zip(&values).map(|(k, v)| outgoing(k, v)).collect();
        let (bytes, pieces) = build(&objects);
        assert_eq!(bytes.len(), bytes.capacity(), "a page takes the room that it needs");
        let mut bytes = finish(bytes);
        assert_eq!(bytes.len(), packed_len(9, 9 * object::full_len(1, 300)));
        // A medium may return the whole page.
        bytes.resize(4096, 0);
        for ((key, piece), value) in keys.iter().zip(&pieces).zip(&values) {
            let Some(Found::Whole(found)) = find(&bytes, *piece, key) else { panic!("not found") };
            assert_eq!(found, *value);
            assert!(find(&bytes, piece + 1, key).is_none());
        }
        assert_eq!(super::objects(&bytes).expect("whole").len(), 9);
    }

    #[test]
    fn a_large_object_lies_in_pages_of_its_own() {
        let value = Value::from_bytes(&(0..=255).cycle().take(9000).collect::<Vec<u8>>());
        let pages: Vec<_> =
            build_large(&outgoing(b"k", &value), 4096).into_iter().map(finish).collect();
        assert_eq!(pages.len(), 3);
        let Some(Found::Large(head, count)) = find(&pages[0], 0, b"k") else { panic!("no head") };
        assert_eq!(count, 3);
        let part = |number: u32| tail_part(&pages[number as usize], number).expect("a tail");
        assert_eq!(head.value_with(&[part(1), part(2)]), Some(value));
        assert!(tail_part(&pages[1], 2).is_none());
    }

    #[test]
    fn objects_lie_where_the_directory_says() {
        let value = Value::from_bytes(&[1; 300]);
        let (bytes, _) = build(&[outgoing(b"a", &value), outgoing(b"b", &value)]);
        for offset in [0_u16, 40, 60_000] {
            let mut bytes = bytes.clone();
            bytes[HEADER_BYTES + 2..HEADER_BYTES + 4].copy_from_slice(&offset.to_le_bytes());
            let page = finish(bytes);
            assert!(super::objects(&page).is_none() && find(&page, 0, b"b").is_none());
        }
    }

    #[test]
    fn no_object_is_longer_than_an_extent() {
        let pages = |len: u32| {
            let mut bytes = Vec::new();
            object::encode(b"k", 1, &Value::Synthetic { seed: 1, len }, &mut bytes);
            pages_if_placed(&SHAPE, 0, &ObjectHead::parse(&bytes).expect("it is whole"))
        };
        assert_eq!((pages(100), pages(3_000)), (Some(1), Some(3)));
        assert_eq!((pages(40_000), pages(u32::MAX)), (None, None));
    }

    #[test]
    fn a_page_that_ends_too_soon_has_no_objects() {
        let value = Value::from_bytes(&[1; 300]);
        let (bytes, _) = build(&[outgoing(b"a", &value), outgoing(b"b", &value)]);
        for len in HEADER_BYTES..bytes.len() {
            assert!(super::objects(&finish(bytes[..len].to_vec())).is_none());
        }
    }
}
