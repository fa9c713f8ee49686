//! The buffer that one page of storage travels in.

use std::cell::Cell;
use std::fmt;

/// The bytes of one page.
///
/// In simulation the stored bytes may be shorter than the page: values may be synthetic (see
/// `engine::Value`), and nothing stores padding. Time and space are charged for the full page.
pub struct PageImage {
    bytes: Box<[u8]>,
    is_verified: Cell<bool>,
}

impl PageImage {
    /// A page of these bytes.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes: bytes.into_boxed_slice(), is_verified: Cell::new(false) }
    }

    /// The stored bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Runs `check` on the bytes unless it held before for this very image.
    ///
    /// An image never changes (damage makes a new one), so a checksum that held once holds for
    /// ever; remembering that keeps a simulated read from costing a checksum of the whole page.
    pub fn verify(&self, check: impl FnOnce(&[u8]) -> bool) -> bool {
        if !self.is_verified.get() {
            self.is_verified.set(check(&self.bytes));
        }
        self.is_verified.get()
    }
}

impl Clone for PageImage {
    fn clone(&self) -> Self {
        Self { bytes: self.bytes.clone(), is_verified: self.is_verified.clone() }
    }
}

impl fmt::Debug for PageImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PageImage({} bytes stored)", self.bytes.len())
    }
}
