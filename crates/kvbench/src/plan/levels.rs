//! Plans with levels of segments.

use engine::sizing::pair::Pair;
use engine::sizing::{LevelPlan, SizingInput};
use report::units::{bytes_text, count_text};

/// A plan with levels of segments.
#[derive(Clone, Debug)]
pub struct LevelsPlan {
    /// The input of the calculation.
    pub input: SizingInput,
    /// Level sizes and their memory.
    pub levels: LevelPlan,
    /// Flash reads for a value once its location is known; 0 if the value is inline.
    pub pages_per_value: u32,
    /// Memory of caches, which the index cannot use, in bytes.
    pub cache_bytes: u64,
    /// The lengths of a pair, and the layout of its value.
    pub pair: Pair,
    /// Garbage collection starts when the share of free extents falls below this value.
    pub gc_start: f64,
}

impl LevelsPlan {
    /// Returns the maximum number of flash reads of a Get.
    pub fn worst_case_reads(&self) -> u32 {
        let of_groups = u32::from(self.input.group_segments > 1);
        self.input.levels - self.levels.pinned + of_groups + self.pages_per_value
    }

    /// Whether the index fits in its memory.
    pub fn fits(&self) -> bool {
        self.index_bytes() <= self.input.dram_bytes
    }

    /// Returns the problem if the memory is too small.
    pub fn shortage(&self) -> Option<String> {
        let words = || {
            let input = &self.input;
            let (all, pinned) = (self.index_bytes(), self.levels.memory.pinned);
            let takes = format!(
                "what a full drive has to have in memory takes {}, and there are {}",
                bytes_text(all),
                bytes_text(input.dram_bytes)
            );
            if all - pinned <= input.dram_bytes {
                let pinned = bytes_text(pinned);
                return format!(
                    "{takes}: {pinned} of it are segments of pinned levels; pin fewer (pinned_levels), or give it more memory"
                );
            }
            let pairs = count_text(input.segments_in_memory() * input.entries_per_segment);
            format!(
                "{takes}: that is used up at about {pairs} pairs, if nothing is pinned; give it more memory, larger values or \
                 fewer pairs"
            )
        };
        (!self.fits()).then(words)
    }

    /// Returns the memory of the index, in bytes.
    pub(super) fn index_bytes(&self) -> u64 {
        self.levels.memory.total()
    }
}
