//! The buffer that one page of storage travels in.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use std::slice;

use crate::prefetch;

/// The bytes of one page. Clones share them.
///
/// In simulation the stored bytes may be shorter than the page: values may be synthetic (see
/// `engine::Value`), and nothing stores padding. Time and space are charged for the full page.
///
/// Simulations hold millions of pages and read them at random, so that each separate allocation
/// is a cache miss on every read: counts, flag and bytes are in one.
#[derive(Clone)]
pub struct PageImage {
    /// The first cell is the flag of [`Self::verify`]; the others are the bytes and never change.
    cells: Rc<[Cell<u8>]>,
}

impl PageImage {
    /// A page of these bytes.
    pub fn new(bytes: &[u8]) -> Self {
        let mut flag_and_bytes = Vec::with_capacity(bytes.len() + 1);
        flag_and_bytes.push(0);
        flag_and_bytes.extend_from_slice(bytes);
        let raw = Rc::into_raw(Rc::<[u8]>::from(flag_and_bytes)) as *const [Cell<u8>];
        // SAFETY: `Cell<u8>` is a transparent wrapper of `u8`: same size, same alignment, and the
        // same length; the count of this allocation has one owner, which moves into `cells`.
        Self { cells: unsafe { Rc::from_raw(raw) } }
    }

    /// The stored bytes.
    pub fn bytes(&self) -> &[u8] {
        let cells = &self.cells[1..];
        // SAFETY: `Cell<u8>` has the layout of `u8`. These cells are only reachable through this
        // type, which writes to the flag in front of them and never to them, so nothing changes
        // the bytes while they are borrowed. `Rc` keeps them on this thread.
        unsafe { slice::from_raw_parts(cells.as_ptr().cast::<u8>(), cells.len()) }
    }

    /// Hints that the beginning of the page will be read soon.
    pub fn prefetch(&self) {
        prefetch(&self.cells[0]);
    }

    /// Hints that the first `bytes` of the page will be read soon.
    pub fn prefetch_front(&self, bytes: usize) {
        const CACHE_LINE_BYTES: usize = 64;
        for cell in self.cells.iter().take(bytes).step_by(CACHE_LINE_BYTES) {
            prefetch(cell);
        }
    }

    /// Runs `check` on the bytes unless it held before for this very image.
    ///
    /// An image never changes (damage makes a new one), so a checksum that held once holds for
    /// ever; remembering that keeps a simulated read from costing a checksum of the whole page.
    pub fn verify(&self, check: impl FnOnce(&[u8]) -> bool) -> bool {
        let flag = &self.cells[0];
        if flag.get() == 0 && check(self.bytes()) {
            flag.set(1);
        }
        flag.get() == 1
    }
}

impl fmt::Debug for PageImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PageImage({} bytes stored)", self.bytes().len())
    }
}

#[cfg(test)]
mod tests {
    use super::PageImage;

    #[test]
    fn an_image_remembers_that_it_was_verified_and_keeps_its_bytes() {
        let image = PageImage::new(b"page");
        let clone = image.clone();
        assert!(!image.verify(|_| false));
        assert!(image.verify(|bytes| bytes == b"page"));
        assert!(clone.verify(|_| unreachable!("clones share the memory of it")));
        assert_eq!((image.bytes(), clone.bytes()), (&b"page"[..], &b"page"[..]));
        assert_eq!(PageImage::new(b"").bytes(), b"");
    }
}
