//! Where a value is: the page and the 512-byte piece of it in which the object begins.
//!
//! A pointer addresses pieces, as `PinK`'s 32-bit addresses do, but objects are packed end to end
//! and not rounded up to pieces: two small objects may begin in one piece, and the reader tells
//! them apart by key (docs/decisions/0003).

use crate::medium::{PageNo, Shape};

/// Bytes of an addressable piece of a page.
pub(crate) const PIECE_BYTES: u32 = 512;

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
    /// Bytes of a stored pointer: 4 as published, more where 32 bits do not reach.
    pub bytes: usize,
}

impl PointerFormat {
    pub(crate) fn new(shape: &Shape) -> Self {
        let pieces_per_page = u64::from(shape.payload_bytes.div_ceil(PIECE_BYTES));
        let pieces = u64::from(shape.extents) * u64::from(shape.pages_per_extent) * pieces_per_page;
        // The highest number is the tombstone's.
        let bytes = (4..8).find(|bytes| pieces < 1 << (8 * bytes)).unwrap_or(8);
        Self { pieces_per_page, bytes }
    }

    pub(crate) fn pointer(&self, page: PageNo, piece: u32) -> Pointer {
        debug_assert!(u64::from(piece) < self.pieces_per_page);
        Pointer(u64::from(page.0) * self.pieces_per_page + u64::from(piece))
    }

    pub(crate) fn locate(&self, pointer: Pointer) -> (PageNo, u32) {
        assert!(!pointer.is_tombstone(), "a tombstone points nowhere");
        let page = PageNo((pointer.0 / self.pieces_per_page) as u32);
        (page, (pointer.0 % self.pieces_per_page) as u32)
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
