//! A logical block's contents.

use std::fmt;

use runtime::PageImage;

/// Bytes of a logical block.
pub const BLOCK_BYTES: u32 = 4096;

/// The contents of one logical block. Clones share them.
///
/// Zeros at the end are not stored: a block whose user stores a short form of what it stands for
/// costs memory for the short form only. Time and space are charged for the whole block.
#[derive(Clone)]
pub struct Block {
    /// The image that holds the bytes, perhaps among others; `None` for a block of zeros.
    image: Option<PageImage>,
    start: u16,
    bytes: u16,
}

impl Block {
    /// A block of zeros: what was never written, or was discarded.
    pub const ZERO: Self = Self { image: None, start: 0, bytes: 0 };

    /// A block that begins with `bytes` and goes on with zeros.
    ///
    /// # Panics
    /// If there are more than [`BLOCK_BYTES`].
    pub fn new(bytes: &[u8]) -> Self {
        assert!(bytes.len() <= BLOCK_BYTES as usize, "a block has {BLOCK_BYTES} bytes");
        let length = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        if length == 0 {
            return Self::ZERO;
        }
        let image = Some(PageImage::new(&bytes[..length]));
        Self { image, start: 0, bytes: length as u16 }
    }

    /// A part of a larger image.
    pub(crate) fn within(image: &PageImage, start: usize, bytes: usize) -> Self {
        if bytes == 0 {
            return Self::ZERO;
        }
        assert!(start + bytes <= image.bytes().len(), "the image ends before the block does");
        Self { image: Some(image.clone()), start: start as u16, bytes: bytes as u16 }
    }

    /// The bytes up to the last one that is not zero.
    pub fn bytes(&self) -> &[u8] {
        let range = usize::from(self.start)..usize::from(self.start) + usize::from(self.bytes);
        self.image.as_ref().map_or(&[], |image| &image.bytes()[range])
    }

    /// All [`BLOCK_BYTES`] bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = self.bytes().to_vec();
        bytes.resize(BLOCK_BYTES as usize, 0);
        bytes
    }
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
        assert_eq!(Block::new(&[0; 4096]), Block::ZERO);
    }

    #[test]
    fn a_full_block_fits() {
        let full = Block::new(&[7; BLOCK_BYTES as usize]);
        assert_eq!(full.bytes().len(), BLOCK_BYTES as usize);
    }
}
