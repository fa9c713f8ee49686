//! Size limits of values and batches.

use super::PageStore;
use super::priority::with_waste;
use crate::error::EngineError;
use crate::format::data_page;
use crate::format::object::MAX_VALUE_BYTES;
use crate::format::value::Value;
use crate::medium::{Medium, Shape};

/// Returns the longest value that a store on a medium of this shape accepts, in bytes.
pub fn max_value_bytes(shape: &Shape) -> u32 {
    let pages = (shape.pages_per_extent / 4).max(1);
    // Space next to the longest key and the headers. The smallest pages have less room than that.
    let in_page = shape.payload_bytes.saturating_sub(512).max(shape.payload_bytes / 4);
    let in_pages = u64::from(in_page) * u64::from(pages);
    MAX_VALUE_BYTES.min(u32::try_from(in_pages).unwrap_or(u32::MAX))
}

impl<M: Medium> PageStore<M> {
    /// Returns the longest value that fits, in bytes. A large value is stored in consecutive pages
    /// of one extent, and small drives have small extents.
    pub fn max_value_bytes(&self) -> u32 {
        max_value_bytes(&self.shape)
    }

    /// Checks whether the store accepts a value of this length under this key.
    ///
    /// # Errors
    /// Returns [`EngineError::ValueTooLarge`] if it does not.
    pub fn check_value(&self, key: &[u8], value: &Value) -> Result<(), EngineError> {
        let max = self.max_value_bytes();
        let pages = data_page::pages_of(self.shape.payload_bytes, key.len(), value.len());
        if value.len() <= max && pages <= self.shape.pages_per_extent {
            return Ok(());
        }
        Err(EngineError::ValueTooLarge { len: value.len(), max })
    }

    /// Returns an estimate of the most pages that the flush of a memtable of `bytes` bytes takes.
    /// The last value may have made the memtable longer than its limit.
    pub(crate) fn pages_of_memtable(&self, bytes: u64) -> u32 {
        let shape = &self.shape;
        let longest = u64::from(self.max_value_bytes());
        let pages = |bytes: u64| bytes.div_ceil(u64::from(shape.payload_bytes)) as u32;
        let (all, longest) = (pages(bytes + longest), pages(longest));
        with_waste(all, longest, shape.append_unit, shape.pages_per_extent)
    }
}
