//! A logical block's contents.
//!
//! A block is a range of bytes of a page that it may share with others: what a device reads at once
//! is one page, and the blocks of it are handed on without a copy.

use std::fmt;

use runtime::PageImage;

/// Bytes of a logical block.
pub const BLOCK_BYTES: u32 = 4096;

/// The contents of one logical block. Clones share them.
///
/// Zeros at the end do not count as stored: a block whose user stores a short form of what it stands
/// for costs memory for the short form only. Time and space are charged for the whole block.
#[derive(Clone)]
pub struct Block {
    /// The image that holds the bytes, perhaps among others; `None` for a block of zeros.
    image: Option<PageImage>,
    start: u32,
    /// Up to the last byte that is not zero.
    bytes: u16,
}

impl Block {
    /// A block of zeros: what was never written, or was discarded.
    pub const ZERO: Self = Self { image: None, start: 0, bytes: 0 };

    /// A block that begins with a copy of `bytes` and goes on with zeros.
    ///
    /// # Panics
    /// If there are more than [`BLOCK_BYTES`].
    pub fn new(bytes: &[u8]) -> Self {
        assert!(bytes.len() <= BLOCK_BYTES as usize, "a block has {BLOCK_BYTES} bytes");
        let bytes = without_zeros(bytes);
        if bytes.is_empty() {
            return Self::ZERO;
        }
        Self { image: Some(PageImage::new(bytes)), start: 0, bytes: bytes.len() as u16 }
    }

    /// A block that begins with the `bytes` bytes of `image` from `start` on, and goes on with zeros.
    /// The image is shared, not copied.
    ///
    /// # Panics
    /// If the image ends before, or `bytes` is more than [`BLOCK_BYTES`].
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

    /// The blocks that lie end to end in an image. The last one may be shorter.
    pub fn all_of(image: &PageImage) -> impl Iterator<Item = Self> + '_ {
        let length = image.bytes().len();
        let starts = (0..length).step_by(BLOCK_BYTES as usize);
        starts.map(move |start| {
            Self::within(image, start, (length - start).min(BLOCK_BYTES as usize))
        })
    }

    /// The bytes up to the last one that is not zero.
    pub fn bytes(&self) -> &[u8] {
        let start = self.start as usize;
        let range = start..start + usize::from(self.bytes);
        self.image.as_ref().map_or(&[], |image| &image.bytes()[range])
    }

    /// The same bytes as an image that shares them; `None` if there are none.
    pub fn image(&self) -> Option<PageImage> {
        let start = self.start as usize;
        self.image.as_ref().map(|image| image.slice(start..start + usize::from(self.bytes)))
    }

    /// All [`BLOCK_BYTES`] bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = self.bytes().to_vec();
        bytes.resize(BLOCK_BYTES as usize, 0);
        bytes
    }
}

/// Words at a time, because each page that is read from a file ends in zeros.
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
