//! What all pages have in common: a header with a checksum and the page's own number.
//!
//! ```text
//! 0..4   CRC-32C of bytes 4..
//! 4..8   the page's own number (finds misdirected reads and writes)
//! 8      kind
//! 9      kind-specific
//! 10..12 number of entries
//! 12..16 kind-specific
//! ```
//! All numbers are little-endian.

use runtime::PageImage;

use crate::store::medium::PageNo;

/// Bytes of the common header.
pub(crate) const HEADER_BYTES: usize = 16;

/// What a page holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum PageKind {
    /// Sorted keys and pointers.
    Meta = 1,
    /// Whole objects.
    Data = 2,
    /// The first page of an object that is larger than a page.
    LargeHead = 3,
    /// A further page of such an object.
    LargeTail = 4,
    /// Nothing: fills up an append unit.
    Filler = 5,
    /// Slots of a hash table.
    Bucket = 6,
}

impl PageKind {
    fn from_byte(byte: u8) -> Option<Self> {
        [Self::Meta, Self::Data, Self::LargeHead, Self::LargeTail, Self::Filler, Self::Bucket]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
    }
}

/// A fresh page: the header, with everything but kind and entry count still to be filled in.
pub(crate) fn start(kind: PageKind, entries: u16, capacity: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(capacity);
    bytes.resize(HEADER_BYTES, 0);
    bytes[8] = kind as u8;
    bytes[10..12].copy_from_slice(&entries.to_le_bytes());
    bytes
}

/// Writes the page's number and the checksum: the page is ready for the medium.
pub(crate) fn seal(mut bytes: Vec<u8>, page: PageNo) -> PageImage {
    bytes[4..8].copy_from_slice(&page.0.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[4..]);
    bytes[0..4].copy_from_slice(&crc.to_le_bytes());
    PageImage::new(&bytes)
}

/// Whether a page that was read from `page` is what was once written there. The checksum is
/// computed once per image; see [`PageImage::verify`].
pub(crate) fn is_intact(image: &PageImage, page: PageNo) -> bool {
    let bytes = image.bytes();
    bytes.len() >= HEADER_BYTES
        && image.verify(|bytes| u32_at(bytes, 0) == crc32c::crc32c(&bytes[4..]))
        && u32_at(bytes, 4) == page.0
}

/// The kind of an intact page.
pub(crate) fn kind(bytes: &[u8]) -> Option<PageKind> {
    PageKind::from_byte(bytes[8])
}

/// The number of entries in the header.
pub(crate) fn entries(bytes: &[u8]) -> u16 {
    u16_at(bytes, 10)
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
