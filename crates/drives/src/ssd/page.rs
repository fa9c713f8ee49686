//! The format of the drive's flash pages.
//!
//! ```text
//! spare area: CRC-32C u32 of all that follows | kind u8 | 3 unused
//!             for each slot: block number u32 | start u16 | bytes u16 | sequence u64
//!             (a lost block has length 65535)
//! user bytes: the blocks; in a summary page, block number u32 and sequence u64 of each slot
//! ```
//! All numbers are little-endian. The spare area must have room for the header; the user bytes have
//! room for a full block per slot. Each block is stored in its short form, end to end.

use block::{BLOCK_BYTES, Block};
use runtime::PageImage;

const PREFIX_BYTES: usize = 8;
const SLOT_BYTES: usize = 16;
const SUMMARY_ENTRY_BYTES: usize = 12;

/// Stored in place of a length: the block was lost, or its data were dropped.
const LOST: u16 = u16::MAX;

const DATA: u8 = 1;
const SUMMARY: u8 = 2;

/// Sequence number of a block version: later writes have greater numbers. A copy keeps the number
/// of its original; otherwise a copy of an old version could outlive the new one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Sequence(pub u64);

/// Number of a logical block of a set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Lpn(pub u32);

impl Lpn {
    /// Marks a slot that holds no block.
    pub(crate) const NONE: Self = Self(u32::MAX);
}

/// One version of one block.
#[derive(Clone, Debug)]
pub(crate) struct Versioned {
    pub lpn: Lpn,
    pub sequence: Sequence,
    /// `None` if the flash lost it: a reader must get that error, not an older version.
    pub block: Option<Block>,
}

impl Versioned {
    /// Pads a unit.
    pub(crate) const FILLER: Self =
        Self { lpn: Lpn::NONE, sequence: Sequence(0), block: Some(Block::ZERO) };
}

/// Returns the bytes of the header in the spare area.
pub(crate) fn header_bytes(page_bytes: u32) -> u32 {
    PREFIX_BYTES as u32 + page_bytes / BLOCK_BYTES * SLOT_BYTES as u32
}

/// Returns the slots that one summary page describes.
pub(crate) fn summary_entries(page_bytes: u32) -> u32 {
    page_bytes / SUMMARY_ENTRY_BYTES as u32
}

/// Encodes a data page of `blocks`.
pub(crate) fn data(blocks: &[Versioned]) -> PageImage {
    let bytes_of = |one: &Versioned| one.block.as_ref().map_or(0, |block| block.bytes().len());
    let stored: usize = blocks.iter().map(bytes_of).sum();
    let mut bytes = Vec::with_capacity(PREFIX_BYTES + blocks.len() * SLOT_BYTES + stored);
    bytes.extend_from_slice(&[0, 0, 0, 0, DATA, 0, 0, 0]);
    let mut start = PREFIX_BYTES + blocks.len() * SLOT_BYTES;
    for one in blocks {
        let length = one.block.as_ref().map_or(LOST, |block| block.bytes().len() as u16);
        bytes.extend_from_slice(&one.lpn.0.to_le_bytes());
        bytes.extend_from_slice(&(start as u16).to_le_bytes());
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&one.sequence.0.to_le_bytes());
        start += bytes_of(one);
    }
    for block in blocks.iter().filter_map(|one| one.block.as_ref()) {
        bytes.extend_from_slice(block.bytes());
    }
    seal(bytes)
}

/// Drops the payload of a data page and keeps its slot headers: later reads of its blocks find them
/// lost. Other pages are returned unchanged.
pub(crate) fn headers_alone(image: &PageImage, slots: u32) -> PageImage {
    let header = |place| slot(image, place).map(|version| Versioned { block: None, ..version });
    let headers: Option<Vec<_>> = (0..slots).map(header).collect();
    headers.map_or_else(|| image.clone(), |headers| data(&headers))
}

/// Encodes a summary page: block number and sequence of each slot of a superblock, in order.
pub(crate) fn summary(slots: &[(Lpn, Sequence)]) -> PageImage {
    let mut bytes = Vec::with_capacity(PREFIX_BYTES + slots.len() * SUMMARY_ENTRY_BYTES);
    bytes.extend_from_slice(&[0, 0, 0, 0, SUMMARY, 0, 0, 0]);
    for (lpn, sequence) in slots {
        bytes.extend_from_slice(&lpn.0.to_le_bytes());
        bytes.extend_from_slice(&sequence.0.to_le_bytes());
    }
    seal(bytes)
}

fn seal(mut bytes: Vec<u8>) -> PageImage {
    let crc = crc32c::crc32c(&bytes[4..]);
    bytes[..4].copy_from_slice(&crc.to_le_bytes());
    PageImage::new(&bytes)
}

/// Returns whether the page is undamaged and of that kind.
fn is_whole(image: &PageImage, kind: u8) -> bool {
    let check = |bytes: &[u8]| {
        let stored = bytes.first_chunk().map(|crc| u32::from_le_bytes(*crc));
        bytes.len() >= PREFIX_BYTES && stored == Some(crc32c::crc32c(&bytes[4..]))
    };
    image.verify(check) && image.bytes()[4] == kind
}

/// Decodes slot `place` of a data page; `None` if the page is damaged or is not a data page.
pub(crate) fn slot(image: &PageImage, place: u32) -> Option<Versioned> {
    if !is_whole(image, DATA) {
        return None;
    }
    let at = PREFIX_BYTES + place as usize * SLOT_BYTES;
    let header: &[u8; SLOT_BYTES] = image.bytes().get(at..)?.first_chunk()?;
    let word = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    let (start, length) = (word(4), word(6));
    let lpn = Lpn(u32::from(word(0)) | u32::from(word(2)) << 16);
    let sequence = (0..4).map(|i| u64::from(word(8 + 2 * i)) << (16 * i)).sum();
    let block = if length == LOST {
        None
    } else {
        let end = usize::from(start) + usize::from(length);
        let is_block = u32::from(length) <= BLOCK_BYTES && end <= image.bytes().len();
        is_block.then_some(())?;
        Some(Block::within(image, start.into(), length.into()))
    };
    Some(Versioned { lpn, sequence: Sequence(sequence), block })
}

/// Decodes a summary page; `None` if the page is damaged or is not a summary.
pub(crate) fn read_summary(image: &PageImage) -> Option<Vec<(Lpn, Sequence)>> {
    if !is_whole(image, SUMMARY) {
        return None;
    }
    let (entries, rest) = image.bytes()[PREFIX_BYTES..].as_chunks::<SUMMARY_ENTRY_BYTES>();
    let entry = |bytes: &[u8; SUMMARY_ENTRY_BYTES]| {
        let (lpn, sequence) = bytes.split_first_chunk().expect("an entry has twelve bytes");
        let sequence = sequence.first_chunk().expect("eight are left");
        (Lpn(u32::from_le_bytes(*lpn)), Sequence(u64::from_le_bytes(*sequence)))
    };
    rest.is_empty().then(|| entries.iter().map(entry).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_its_blocks_a_page_says_what_it_held() {
        let block = |byte: u8| Some(Block::new(&[byte; 40]));
        let version =
            |n: u8| Versioned { lpn: Lpn(n.into()), sequence: Sequence(7), block: block(n) };
        let page = data(&[1, 2, 3, 4].map(version));
        let alone = headers_alone(&page, 4);
        assert!(alone.bytes().len() < page.bytes().len());
        for place in 0..4 {
            let (is, was) = (slot(&alone, place).unwrap(), slot(&page, place).unwrap());
            assert_eq!((is.lpn, is.sequence), (was.lpn, was.sequence));
            assert!(is.block.is_none(), "who asks for it learns that it is not there");
        }
        assert_eq!(headers_alone(&PageImage::new(b"noise"), 4).bytes(), b"noise");
    }

    fn blocks() -> Vec<Versioned> {
        let contents: [&[u8]; 4] = [b"one", b"", b"three", &[9; 4096]];
        let versioned = |(i, bytes): (usize, &&[u8])| Versioned {
            lpn: Lpn(0x1234_5670 + i as u32),
            sequence: Sequence(0x0102_0304_0506_0700 + i as u64),
            block: (i != 2).then(|| Block::new(bytes)),
        };
        contents.iter().enumerate().map(versioned).collect()
    }

    #[test]
    fn slots_read_back_as_they_were_written() {
        let image = data(&blocks());
        for (place, written) in blocks().into_iter().enumerate() {
            let read = slot(&image, place as u32).expect("the page is whole");
            assert_eq!((read.lpn, read.sequence), (written.lpn, written.sequence));
            assert_eq!(read.block, written.block);
        }
        assert!(read_summary(&image).is_none(), "a data page is no summary");
    }

    #[test]
    fn the_header_fits_the_spare_area_of_the_profiles() {
        assert_eq!(header_bytes(16_384), 72);
    }

    #[test]
    fn a_slot_that_is_longer_than_a_block_holds_none() {
        let mut bytes = data(&blocks()).bytes().to_vec();
        bytes.resize(6_000, 1);
        bytes[14..16].copy_from_slice(&4_097_u16.to_le_bytes());
        assert!(slot(&seal(bytes.clone()), 0).is_none());
        assert!(slot(&seal(bytes), 1).is_some());
    }

    #[test]
    fn a_summary_reads_back_and_damage_is_found() {
        let entries: Vec<_> =
            (0..100).map(|i| (Lpn(i * 7), Sequence(u64::from(i) << 33))).collect();
        let image = summary(&entries);
        assert_eq!(read_summary(&image), Some(entries));
        for at in [0, 4, 8, 500] {
            let mut bytes = image.bytes().to_vec();
            bytes[at] ^= 1;
            assert!(read_summary(&PageImage::new(&bytes)).is_none(), "byte {at}");
        }
        assert!(slot(&PageImage::new(&[]), 0).is_none());
    }
}
