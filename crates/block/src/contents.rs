//! The contents of a logical block.
//!
//! A block is a byte range of a page and may share the page with other blocks. A device reads a
//! whole page at once and hands out its blocks without a copy.

use std::fmt;

use runtime::PageImage;

/// Size of a logical block, in bytes.
pub const BLOCK_BYTES: u32 = 4096;

/// The contents of one logical block. Clones share the bytes.
///
/// Trailing zeros are not stored in memory: a block that holds a short stand-in for its data costs
/// memory for the stand-in only. Time and space are charged for the whole block.
#[derive(Clone)]
pub struct Block {
    /// The image that holds the bytes and may hold other blocks; `None` for a block of zeros.
    image: Option<PageImage>,
    start: u32,
    /// Length up to and including the last non-zero byte.
    bytes: u16,
}

impl Block {
    /// A block of zeros, as an unwritten or discarded block reads.
    pub const ZERO: Self = Self { image: None, start: 0, bytes: 0 };

    /// Returns a block that holds a copy of `bytes`, padded with zeros.
    ///
    /// # Panics
    /// Panics if `bytes` is longer than [`BLOCK_BYTES`].
    pub fn new(bytes: &[u8]) -> Self {
        assert!(bytes.len() <= BLOCK_BYTES as usize, "a block has {BLOCK_BYTES} bytes");
        let bytes = without_zeros(bytes);
        if bytes.is_empty() {
            return Self::ZERO;
        }
        Self { image: Some(PageImage::new(bytes)), start: 0, bytes: bytes.len() as u16 }
    }

    /// Returns a block that holds the `bytes` bytes of `image` from offset `start` on, padded with
    /// zeros. The image is shared, not copied.
    ///
    /// # Panics
    /// Panics if the range exceeds the image, or if `bytes` is more than [`BLOCK_BYTES`].
    pub fn within(image: &PageImage, start: usize, bytes: usize) -> Self {
        assert!(bytes <= BLOCK_BYTES as usize, "a block has {BLOCK_BYTES} bytes");
        assert!(start + bytes <= image.bytes().len(), "the image ends before the block does");
        let bytes = without_zeros(&image.bytes()[start..start + bytes]).len();
        if bytes == 0 {
            return Self::ZERO;
        }
        let start = u32::try_from(start).expect("an image is less than 4 GiB long");
        Self { image: Some(image.clone()), start, bytes: bytes as u16 }
    }

    /// Returns the consecutive blocks of an image. The last block may be shorter than the others.
    pub fn all_of(image: &PageImage) -> impl Iterator<Item = Self> + '_ {
        let length = image.bytes().len();
        let starts = (0..length).step_by(BLOCK_BYTES as usize);
        starts.map(move |start| {
            Self::within(image, start, (length - start).min(BLOCK_BYTES as usize))
        })
    }

    /// Returns the bytes up to and including the last non-zero byte.
    pub fn bytes(&self) -> &[u8] {
        let start = self.start as usize;
        let range = start..start + usize::from(self.bytes);
        self.image.as_ref().map_or(&[], |image| &image.bytes()[range])
    }

    /// Returns the bytes of [`Self::bytes()`] as an image that shares them; `None` for a block of
    /// zeros.
    pub fn image(&self) -> Option<PageImage> {
        let start = self.start as usize;
        self.image.as_ref().map(|image| image.slice(start..start + usize::from(self.bytes)))
    }

    /// Returns all [`BLOCK_BYTES`] bytes of the block.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = self.bytes().to_vec();
        bytes.resize(BLOCK_BYTES as usize, 0);
        bytes
    }
}

/// Strips trailing zeros, 16 bytes at a time, because each page that is read from a file ends in
/// zeros.
fn without_zeros(bytes: &[u8]) -> &[u8] {
    let (_, words) = bytes.as_rchunks::<16>();
    let zeros = words.iter().rev().take_while(|word| u128::from_le_bytes(**word) == 0).count();
    let bytes = &bytes[..bytes.len() - zeros * 16];
    let length = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    &bytes[..length]
}

impl PartialEq for Block {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}
impl Eq for Block {}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Block({} bytes stored)", self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_at_the_end_are_not_stored() {
        let block = Block::new(&[1, 0, 2, 0, 0]);
        assert_eq!(block.bytes(), [1, 0, 2]);
        assert_eq!(block.to_vec().len(), BLOCK_BYTES as usize);
        assert_eq!(block, Block::new(&block.to_vec()));
        assert_eq!(block.image().expect("it has bytes").bytes(), block.bytes());
        assert!(Block::ZERO.image().is_none());
        assert_eq!(Block::new(&[0; 4096]), Block::ZERO);
    }

    #[test]
    fn zeros_at_the_end_are_found_wherever_they_begin() {
        for stored in 0..70 {
            for zeros in 0..70 {
                let mut bytes = vec![9; stored];
                bytes.resize(stored + zeros, 0);
                assert_eq!(without_zeros(&bytes), vec![9; stored], "{stored} and {zeros} zeros");
            }
        }
        assert_eq!(
            without_zeros(&[0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
            [0, 0, 3]
        );
    }

    #[test]
    fn blocks_of_a_large_image_share_it() {
        let block = BLOCK_BYTES as usize;
        let mut bytes = vec![7; 40 * block + 10];
        bytes[20 * block..21 * block].fill(0);
        bytes[30 * block + 5..31 * block].fill(0);
        let image = PageImage::new(&bytes);
        let blocks: Vec<_> = Block::all_of(&image).collect();
        assert_eq!(blocks.len(), 41);
        for (block, bytes) in blocks.iter().zip(bytes.chunks(block)) {
            assert_eq!(*block, Block::new(bytes));
            assert_eq!(block.to_vec()[..bytes.len()], *bytes);
        }
        assert_eq!(blocks[20], Block::ZERO);
        assert_eq!((blocks[30].bytes().len(), blocks[40].bytes().len()), (5, 10));
        assert!(std::ptr::eq(blocks[39].bytes(), &raw const image.bytes()[39 * block..40 * block]));
    }

    #[test]
    fn a_full_block_fits() {
        let full = Block::new(&[7; BLOCK_BYTES as usize]);
        assert_eq!(full.bytes().len(), BLOCK_BYTES as usize);
    }
}
