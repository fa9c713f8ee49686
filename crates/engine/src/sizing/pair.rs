//! The size of a pair in a segment and in the value log.

use crate::format::inlining::Inlining;
use crate::format::{data_page, meta_segment};

/// The lengths of a pair, and the page size of its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Bytes of the key.
    pub key_bytes: u32,
    /// Bytes of the value.
    pub value_bytes: u32,
    /// The longest inline value, in bytes.
    pub inline_up_to: u32,
}

impl Pair {
    fn is_inline(&self) -> bool {
        let inlining = Inlining::new(self.inline_up_to, self.page_bytes);
        inlining.takes(self.key_bytes as usize, self.value_bytes)
    }

    /// Returns the bytes of key and value.
    pub fn bytes(&self) -> u64 {
        u64::from(self.key_bytes) + u64::from(self.value_bytes)
    }

    /// Returns the entries in a meta segment of one page, with pointers of `pointer_bytes` bytes.
    pub fn entries_per_segment(&self, pointer_bytes: usize) -> u32 {
        let inline = self.is_inline().then_some(self.value_bytes);
        let Self { page_bytes, key_bytes, .. } = *self;
        meta_segment::entries_per_page(page_bytes, pointer_bytes, key_bytes, inline).max(1)
    }

    /// Returns the flash reads for the value once its location is known: 0 if it is inline.
    pub fn pages_of_value(&self) -> u32 {
        if self.is_inline() {
            return 0;
        }
        data_page::pages_of(self.page_bytes, self.key_bytes as usize, self.value_bytes)
    }

    /// Returns the bytes written to the value log for the value, among others of its length: 0 if
    /// it is inline.
    pub fn bytes_in_value_log(&self) -> f64 {
        if self.is_inline() {
            return 0.0;
        }
        data_page::bytes_of(self.page_bytes, self.key_bytes as usize, self.value_bytes)
    }
}
