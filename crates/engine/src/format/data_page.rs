//! Data pages: objects packed end to end, none of which crosses into another page unless it is
//! larger than one.
//!
//! ```text
//! Data       header | full-length offset of each object, u16 | objects
//! LargeHead  header | object header, key, first part of the value
//! LargeTail  header (bytes 12..16: which tail) | next part of the value
//! ```
//! Offsets count the bytes an object would lie at if synthetic values were stored in full; the
//! piece of a pointer is such an offset divided by the piece size.

use crate::Value;
use crate::format::object::{self, OBJECT_HEADER_BYTES, ObjectHead, Sequence};
use crate::format::page::{self, HEADER_BYTES, PageKind, u16_at};
use crate::format::pointer::PIECE_BYTES;

const DIRECTORY_ENTRY_BYTES: usize = 2;

/// Bytes that a page with these objects takes at full length.
pub(crate) fn packed_len(objects: usize, object_bytes: usize) -> usize {
    HEADER_BYTES + objects * DIRECTORY_ENTRY_BYTES + object_bytes
}

/// Whether an object fits in one page at all.
pub(crate) fn fits_in_a_page(payload_bytes: u32, key_len: usize, value_len: u32) -> bool {
    packed_len(1, object::full_len(key_len, value_len)) <= payload_bytes as usize
}

/// Pages that an object takes when it has pages of its own.
pub(crate) fn pages_of_large(payload_bytes: u32, key_len: usize, value_len: u32) -> u32 {
    let in_head = head_room(payload_bytes, key_len);
    let in_tail = payload_bytes - HEADER_BYTES as u32;
    1 + value_len.saturating_sub(in_head).div_ceil(in_tail)
}

/// Flash reads that a value costs.
pub(crate) fn pages_of(payload_bytes: u32, key_len: usize, value_len: u32) -> u32 {
    if fits_in_a_page(payload_bytes, key_len, value_len) {
        1
    } else {
        pages_of_large(payload_bytes, key_len, value_len)
    }
}

/// Bytes of the value that lie in the head page.
fn head_room(payload_bytes: u32, key_len: usize) -> u32 {
    payload_bytes - (HEADER_BYTES + OBJECT_HEADER_BYTES + key_len) as u32
}

/// An object on its way into a page.
#[derive(Clone, Copy)]
pub(crate) struct Outgoing<'a> {
    pub key: &'a [u8],
    pub sequence: Sequence,
    pub value: &'a Value,
}

impl Outgoing<'_> {
    pub(crate) fn full_len(&self) -> usize {
        object::full_len(self.key.len(), self.value.len())
    }
}

/// Builds a page of whole objects. Returns it unsealed, with the piece each object begins in.
pub(crate) fn build(objects: &[Outgoing<'_>]) -> (Vec<u8>, Vec<u32>) {
    let mut bytes = page::start(PageKind::Data, objects.len() as u16, 64 * (objects.len() + 1));
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
    let mut head = page::start(PageKind::LargeHead, 1, 64);
    object::encode_head(object.key, object.sequence, object.value, &mut head);
    let (first, rest): (&[u8], &[u8]) = match object.value {
        Value::Bytes(bytes) => {
            bytes.split_at((head_room(payload_bytes, object.key.len()) as usize).min(bytes.len()))
        }
        Value::Synthetic { seed, .. } => (&seed.to_le_bytes()[..], &[]),
    };
    head.extend_from_slice(first);
    let mut pages = vec![head];
    let mut parts = rest.chunks(payload_bytes as usize - HEADER_BYTES);
    for number in 1..count {
        let mut tail = page::start(PageKind::LargeTail, 0, 64);
        tail[12..16].copy_from_slice(&number.to_le_bytes());
        tail.extend_from_slice(parts.next().unwrap_or_default());
        pages.push(tail);
    }
    pages
}

/// Every object of a page, with the piece it begins in; of a large object, only its head.
pub(crate) fn objects(bytes: &[u8]) -> Vec<(u32, ObjectHead<'_>)> {
    match page::kind(bytes) {
        Some(PageKind::Data) => Objects::new(bytes).collect(),
        Some(PageKind::LargeHead) => {
            ObjectHead::parse(&bytes[HEADER_BYTES..]).map(|head| (0, head)).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

struct Objects<'a> {
    bytes: &'a [u8],
    count: usize,
    next: usize,
    at: usize,
}

impl<'a> Objects<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        let count = page::entries(bytes) as usize;
        Self { bytes, count, next: 0, at: HEADER_BYTES + count * DIRECTORY_ENTRY_BYTES }
    }
}

impl<'a> Iterator for Objects<'a> {
    type Item = (u32, ObjectHead<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.count {
            return None;
        }
        let offset = u16_at(self.bytes, HEADER_BYTES + self.next * DIRECTORY_ENTRY_BYTES);
        let head = ObjectHead::parse(self.bytes.get(self.at..)?)?;
        self.at += head.stored_len();
        self.next += 1;
        Some((u32::from(offset) / PIECE_BYTES, head))
    }
}

/// What a pointer into a page leads to.
pub(crate) enum Found<'a> {
    Whole(Value),
    /// The value goes on in the following pages.
    Large(ObjectHead<'a>),
}

/// The object with `key` that begins in `piece`. `None` means that the page is not what the index
/// says it is.
pub(crate) fn find<'a>(bytes: &'a [u8], piece: u32, key: &[u8]) -> Option<Found<'a>> {
    match page::kind(bytes)? {
        PageKind::Data => Objects::new(bytes)
            .find(|(begins, head)| *begins == piece && head.key == key)
            .and_then(|(_, head)| head.value())
            .map(Found::Whole),
        PageKind::LargeHead => {
            let head = ObjectHead::parse(&bytes[HEADER_BYTES..])?;
            (head.key == key).then_some(Found::Large(head))
        }
        PageKind::Meta | PageKind::LargeTail | PageKind::Filler | PageKind::Bucket => None,
    }
}

/// The part of a large value in tail page `number`. `None` if the page is another.
pub(crate) fn tail_part(bytes: &[u8], number: u32) -> Option<&[u8]> {
    let is_tail = page::kind(bytes) == Some(PageKind::LargeTail);
    (is_tail && page::u32_at(bytes, 12) == number).then(|| &bytes[HEADER_BYTES..])
}

/// A page of nothing.
pub(crate) fn filler() -> Vec<u8> {
    page::start(PageKind::Filler, 0, HEADER_BYTES)
}
