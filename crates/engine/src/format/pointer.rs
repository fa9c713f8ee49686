//! Where a value is: the page and the 512-byte piece of it in which the object begins.
//!
//! A pointer addresses pieces, as `PinK`'s 32-bit addresses do, but objects are packed end to end
//! and not rounded up to pieces: two small objects may begin in one piece, and the reader tells
//! them apart by key (docs/decisions/0003).
//!
//! The numbers that are left over count an extent's generations. Garbage collection leaves entries
//! behind in lower levels that point into an extent which is then used again; when such an entry is
//! dropped, its generation tells that nothing of the extent's new contents has died.

use crate::store::medium::{PageNo, Shape};

/// Bytes of an addressable piece of a page.
pub(crate) const PIECE_BYTES: u32 = 512;

/// Generations that can be told apart, at least.
const MIN_GENERATIONS: u64 = 8;

/// Where an object begins, or that its key is deleted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub(crate) struct Pointer(u64);

impl Pointer {
    /// The key is deleted.
    pub(crate) const TOMBSTONE: Self = Self(u64::MAX);

    pub(crate) fn is_tombstone(self) -> bool {
        self == Self::TOMBSTONE
    }
}

/// How pointers are cut up and stored on one medium.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PointerFormat {
    pieces_per_page: u64,
    /// Pieces of the medium.
    pieces: u64,
    /// Generations of an extent that pointers tell apart.
    generations: u64,
    /// Bytes of a stored pointer: 4 as published, more where 32 bits do not reach.
    pub bytes: usize,
}

impl PointerFormat {
    pub(crate) fn new(shape: &Shape) -> Self {
        let pieces_per_page = u64::from(shape.payload_bytes.div_ceil(PIECE_BYTES));
        let pieces = u64::from(shape.extents) * u64::from(shape.pages_per_extent) * pieces_per_page;
        // The highest number is the tombstone's.
        let numbers = |bytes: usize| (1_u64 << (8 * bytes)) - 1;
        let bytes = (4..8).find(|bytes| pieces * MIN_GENERATIONS <= numbers(*bytes));
        let bytes = bytes.expect("a medium of 2^32 pages needs no more than 7 bytes");
        Self { pieces_per_page, pieces, generations: numbers(bytes) / pieces, bytes }
    }

    /// A pointer to `piece` of `page`, whose extent is in its `generation`.
    pub(crate) fn pointer(&self, page: PageNo, piece: u32, generation: u64) -> Pointer {
        debug_assert!(u64::from(piece) < self.pieces_per_page);
        let place = u64::from(page.0) * self.pieces_per_page + u64::from(piece);
        Pointer(generation % self.generations * self.pieces + place)
    }

    pub(crate) fn locate(&self, pointer: Pointer) -> (PageNo, u32) {
        assert!(!pointer.is_tombstone(), "a tombstone points nowhere");
        let place = pointer.0 % self.pieces;
        let page = PageNo((place / self.pieces_per_page) as u32);
        (page, (place % self.pieces_per_page) as u32)
    }

    /// Whether `pointer` was made in `generation` of its extent.
    pub(crate) fn is_of(&self, pointer: Pointer, generation: u64) -> bool {
        pointer.0 / self.pieces == generation % self.generations
    }

    /// Whether no two generations up to this one look alike.
    pub(crate) fn tells_apart(&self, generation: u64) -> bool {
        generation < self.generations
    }

    pub(crate) fn encode(&self, pointer: Pointer, to: &mut Vec<u8>) {
        to.extend_from_slice(&pointer.0.to_le_bytes()[..self.bytes]);
    }

    pub(crate) fn decode(&self, from: &[u8]) -> Pointer {
        let mut word = [0; 8];
        word[..self.bytes].copy_from_slice(&from[..self.bytes]);
        let number = u64::from_le_bytes(word);
        let highest = u64::MAX >> (64 - 8 * self.bytes);
        if number == highest { Pointer::TOMBSTONE } else { Pointer(number) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(extents: u32, pages_per_extent: u32, payload_bytes: u32) -> PointerFormat {
        PointerFormat::new(&Shape {
            payload_bytes,
            page_bytes: payload_bytes,
            pages_per_extent,
            extents,
            append_unit: 1,
            parallelism: 1,
        })
    }

    #[test]
    fn four_bytes_serve_the_paper_s_drive_and_five_a_terabyte() {
        assert_eq!(format(512, 16_384, 8_224).bytes, 4);
        assert_eq!(format(1_400, 98_304, 16_512).bytes, 5);
    }

    #[test]
    fn pointers_survive_storage_and_know_their_generation() {
        let format = format(512, 16_384, 8_224);
        for generation in [0, 1, 29, 30, 31, 1_000] {
            let pointer = format.pointer(PageNo(8_388_607), 16, generation);
            let mut stored = Vec::new();
            format.encode(pointer, &mut stored);
            assert_eq!(format.decode(&stored), pointer);
            assert_eq!(format.locate(pointer), (PageNo(8_388_607), 16));
            assert!(format.is_of(pointer, generation));
            assert!(!format.is_of(pointer, generation + 1));
        }
        let mut stored = Vec::new();
        format.encode(Pointer::TOMBSTONE, &mut stored);
        assert!(format.decode(&stored).is_tombstone());
    }
}
