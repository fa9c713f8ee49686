//! The first lines of a plan as text.

use engine::sizing::SizingInput;
use report::units::{bytes_text, count_text};

/// Returns the lines about the drive and its pairs.
pub(super) fn heading(input: &SizingInput, cache_bytes: u64) -> [String; 3] {
    [
        format!(
            "{} of flash, {} of memory, pairs of {} + {} bytes, pages of {} with {} entries",
            bytes_text(input.capacity_bytes),
            bytes_text(input.dram_bytes + cache_bytes),
            input.key_bytes,
            input.pair_bytes - input.key_bytes,
            bytes_text(input.segment_bytes),
            input.entries_per_segment,
        ),
        format!(
            "{} pairs when filled as laid out ({})",
            count_text(input.fill_bytes / input.pair_bytes),
            bytes_text(input.fill_bytes)
        ),
        String::new(),
    ]
}
