//! The buffer of one page of storage.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use triomphe::{Arc, HeaderSlice};

use crate::prefetch;

/// The bytes of one page, or of a part of one. Clones and slices share the bytes, on any thread.
///
/// In simulation the stored bytes may be shorter than the page: values may be synthetic (see
/// `engine::Value`), and padding is not stored. Time and space are charged for the full page.
///
/// Simulations hold millions of pages and read them at random, so each separate allocation is a
/// cache miss on every read. Therefore the reference count, the flag and the bytes share one
/// allocation, and the handle locates its bytes without reading that allocation.
#[derive(Clone)]
pub struct PageImage {
    buffer: Arc<HeaderSlice<Header, [u8]>>,
    start: u32,
    length: u32,
}

/// The state shared by all users of a buffer.
struct Header {
    /// The length of the image before it was sliced, in bytes.
    whole: u32,
    /// Whether [`PageImage::verify`] succeeded before.
    is_verified: AtomicBool,
}

impl Header {
    fn of(whole: u32) -> Self {
        Self { whole, is_verified: AtomicBool::new(false) }
    }
}

impl PageImage {
    /// Creates a page from a copy of these bytes, without alignment.
    pub fn new(bytes: &[u8]) -> Self {
        let length = length(bytes.len());
        let buffer = Arc::from_header_and_slice(Header::of(length), bytes);
        Self { buffer, start: 0, length }
    }

    /// Creates a page of `bytes` zeros whose address is a multiple of `alignment`, as direct I/O
    /// requires; see [`Self::bytes_mut`]. Wastes up to `alignment - 1` bytes.
    ///
    /// # Panics
    /// Panics if `alignment` is not a power of two.
    pub fn zeroed(bytes: usize, alignment: usize) -> Self {
        assert!(alignment.is_power_of_two(), "no alignment: {alignment}");
        let length = length(bytes);
        let buffer = zeros(Header::of(length), bytes + alignment - 1);
        let start =
            buffer.slice.as_ptr().addr().next_multiple_of(alignment) - buffer.slice.as_ptr().addr();
        Self { buffer, start: start as u32, length }
    }

    /// Creates a page from a copy of these bytes, aligned as in [`Self::zeroed`].
    pub fn aligned(bytes: &[u8], alignment: usize) -> Self {
        let mut page = Self::zeroed(bytes.len(), alignment);
        page.bytes_mut().expect("nobody shares a new page").copy_from_slice(bytes);
        page
    }

    /// Returns the stored bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer.slice[self.start as usize..][..self.length as usize]
    }

    /// Returns the bytes for writing, as for a read from a device, and resets the verified flag.
    /// Returns `None` if the bytes are shared.
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        let buffer = Arc::get_mut(&mut self.buffer)?;
        *buffer.header.is_verified.get_mut() = false;
        Some(&mut buffer.slice[self.start as usize..][..self.length as usize])
    }

    /// Returns a part of this image that shares its bytes. Copies nothing; the whole buffer lives
    /// as long as any part of it.
    ///
    /// # Panics
    /// Panics if `range` is not within the image.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        let length = self.bytes()[range.clone()].len() as u32;
        Self { buffer: Arc::clone(&self.buffer), start: self.start + range.start as u32, length }
    }

    /// Hints that the start of the page will be read soon.
    pub fn prefetch(&self) {
        self.prefetch_front(1);
    }

    /// Hints that the first `bytes` bytes of the page will be read soon.
    pub fn prefetch_front(&self, bytes: usize) {
        const CACHE_LINE_BYTES: usize = 64;
        prefetch(&self.buffer.header);
        for byte in self.bytes().iter().take(bytes).step_by(CACHE_LINE_BYTES) {
            prefetch(byte);
        }
    }

    /// Runs `check` on the bytes, unless it succeeded before for this image.
    ///
    /// An image never changes (damage creates a new one), so a checksum that was correct once stays
    /// correct. Remembering this saves a simulated read the checksum of the whole page. A slice is
    /// checked each time, because a correct slice says nothing about the rest.
    pub fn verify(&self, check: impl FnOnce(&[u8]) -> bool) -> bool {
        let Header { whole, is_verified } = &self.buffer.header;
        if self.length != *whole {
            return check(self.bytes());
        }
        // Relaxed, because the flag concerns bytes that its reader already has.
        if !is_verified.load(Ordering::Relaxed) && check(self.bytes()) {
            is_verified.store(true, Ordering::Relaxed);
        }
        is_verified.load(Ordering::Relaxed)
    }
}

/// Returns a buffer of `bytes` zeros. Each page read from a file starts with one; copying zeros
/// takes fewer instructions than an iterator.
fn zeros(header: Header, bytes: usize) -> Arc<HeaderSlice<Header, [u8]>> {
    static ZEROS: [u8; 16 << 10] = [0; 16 << 10];
    match ZEROS.get(..bytes) {
        Some(zeros) => Arc::from_header_and_slice(header, zeros),
        None => Arc::from_header_and_vec(header, vec![0; bytes]),
    }
}

fn length(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("a page has less than 4 GiB")
}

impl fmt::Debug for PageImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PageImage({} bytes stored)", self.length)
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

    #[test]
    fn a_slice_shares_bytes_and_is_verified_by_itself() {
        let image = PageImage::aligned(b"a page of text", 64);
        let word = image.slice(2..6);
        assert_eq!((word.bytes(), word.slice(1..3).bytes()), (&b"page"[..], &b"ag"[..]));
        assert_eq!(word.bytes().as_ptr(), image.bytes()[2..].as_ptr());
        assert!(image.verify(|_| true));
        assert!(!word.verify(|_| false) && word.verify(|_| true) && !word.verify(|_| false));
        assert!(image.slice(0..14).verify(|_| unreachable!("all of it is no part of it")));
        assert_eq!(image.slice(14..14).bytes(), b"");
    }

    #[test]
    fn an_aligned_image_lies_where_it_should_and_can_be_filled_by_its_one_owner() {
        for shift in 0..=12 {
            let mut image = PageImage::zeroed(100, 1 << shift);
            assert_eq!(image.bytes(), [0; 100]);
            assert!(image.bytes().as_ptr().addr().is_multiple_of(1 << shift));
            assert!(image.verify(|_| true));
            image.bytes_mut().expect("not shared").fill(7);
            assert_eq!((image.bytes(), image.bytes().len()), (&[7; 100][..], 100));
            assert!(!image.verify(|_| false), "new bytes are unverified");
            let clone = image.clone();
            assert!(image.bytes_mut().is_none() && clone.bytes() == [7; 100]);
        }
    }

    #[test]
    fn images_go_to_other_threads() {
        fn goes<T: Send + Sync>(_: &T) {}
        goes(&PageImage::new(b"page"));
        assert_eq!(size_of::<Option<PageImage>>(), 24, "flash holds millions of them");
    }
}
