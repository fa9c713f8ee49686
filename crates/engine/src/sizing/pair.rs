//! What a pair takes: in a segment, and in the value log.

use pages::format::data_page;

use crate::format::inlining::Inlining;
use crate::format::meta_segment;

/// A pair of some lengths, in a store of some pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Bytes of the key.
    pub key_bytes: u32,
    /// Bytes of the value.
    pub value_bytes: u32,
    /// The longest value that stands beside its key, in bytes.
    pub inline_up_to: u32,
}

impl Pair {
    fn is_inline(&self) -> bool {
        let inlining = Inlining::new(self.inline_up_to, self.page_bytes);
        inlining.takes(self.key_bytes as usize, self.value_bytes)
    }

    /// Bytes of key and value.
    pub fn bytes(&self) -> u64 {
        u64::from(self.key_bytes) + u64::from(self.value_bytes)
    }

    /// Entries in a meta segment of one page, with pointers of so many bytes.
    pub fn entries_per_segment(&self, pointer_bytes: usize) -> u32 {
        let inline = self.is_inline().then_some(self.value_bytes);
        let Self { page_bytes, key_bytes, .. } = *self;
        meta_segment::entries_per_page(page_bytes, pointer_bytes, key_bytes, inline).max(1)
    }

    /// Flash reads that the value takes when it is known where it is: none beside its key.
    pub fn pages_of_value(&self) -> u32 {
        if self.is_inline() {
            return 0;
        }
        data_page::pages_of(self.page_bytes, self.key_bytes as usize, self.value_bytes)
    }

    /// Bytes that are written to the value log for the value, among others of its length: none if it
    /// stands beside its key.
    pub fn bytes_in_value_log(&self) -> f64 {
        if self.is_inline() {
            return 0.0;
        }
        data_page::bytes_of(self.page_bytes, self.key_bytes as usize, self.value_bytes)
    }
}
