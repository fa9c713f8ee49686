//! Plans with levels of tables.

use engine::sizing::SizingInput;
use engine::sizing::tables::TablePlan;
use report::units::{bytes_text, count_text};

use super::heading::heading;

/// A plan with levels of tables.
#[derive(Clone, Debug)]
pub struct TablesPlan {
    /// The input of the calculation.
    pub input: SizingInput,
    /// Level sizes and their memory.
    pub tables: TablePlan,
    /// Flash reads for a value once its location is known; 0 if the value is inline.
    pub pages_per_value: u32,
    /// Memory of caches, which the index cannot use, in bytes.
    pub cache_bytes: u64,
}

impl TablesPlan {
    /// Returns the problem if the memory is too small.
    pub(super) fn shortage(&self) -> Option<String> {
        let Self { input, tables: plan, .. } = self;
        let needed = plan.index_bytes + plan.filter_bytes;
        (needed > input.dram_bytes).then(|| {
        format!(
            "indexes and filters of the tables of a full store take {}, and there are {}: writes end when that \
             is used up; give it more memory, larger pages or fewer pairs",
            bytes_text(needed),
            bytes_text(input.dram_bytes)
        )
    })
    }

    /// Returns the plan as text.
    pub(super) fn render(&self) -> String {
        let Self { input, tables: plan, pages_per_value, cache_bytes } = self;
        let mut lines = Vec::new();
        if let Some(words) = self.shortage() {
            lines.extend([format!("DOES NOT FIT: {words}"), String::new()]);
        }
        lines.extend(heading(input, *cache_bytes));
        for (n, bytes) in plan.level_bytes.iter().enumerate() {
            let pages = count_text(bytes / input.segment_bytes);
            lines.push(format!("L{n}  {pages:>14} pages of tables  {:>9}", bytes_text(*bytes)));
        }
        lines.push(String::new());
        let rows = [
            ("table indexes", plan.index_bytes),
            ("filters", plan.filter_bytes),
            ("caches", *cache_bytes),
            ("in all", plan.index_bytes + plan.filter_bytes + cache_bytes),
            ("budget", input.dram_bytes + cache_bytes),
        ];
        for (name, bytes) in rows {
            lines.push(format!("{name:16} {:>9}", bytes_text(bytes)));
        }
        lines.push(String::new());
        lines.push(format!(
        "flushes and compactions write at most about {:.1} bytes a byte of pairs; what compactions meet is mostly \
         less, and the log comes on top",
        plan.most_amplification
    ));
        let filters =
            if plan.filter_bytes > 0 { ", most of which its filters spare it" } else { "" };
        lines.push(format!(
        "a get takes at most {} reads{filters}; {} while compaction is so far behind that writes stop",
        plan.reads + pages_per_value, plan.most_reads + pages_per_value
    ));
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use engine::{Filters, Options};

    use crate::plan::{PlanSpec, plan, render};

    fn spec(design: Options) -> PlanSpec {
        PlanSpec {
            capacity_bytes: 16 << 30,
            dram_bytes: 1 << 30,
            key_bytes: 16,
            value_bytes: 400,
            page_bytes: 8192,
            design,
        }
    }

    #[test]
    fn tables_are_planned_with_what_writes_and_gets_cost() {
        let text = render(&plan(&spec(Options::rocksdb())).expect("the numbers make sense"));
        assert!(text.contains("L0") && text.contains("L6"), "{text}");
        assert!(text.contains("at most 7 reads; 39 while"), "{text}");
        let filtered = Options { filters: Filters::Bits(10), ..Options::rocksdb() };
        let text = render(&plan(&spec(filtered.clone())).expect("the numbers make sense"));
        assert!(text.contains("most of which its filters spare it"), "{text}");
        let small = PlanSpec { dram_bytes: 9 << 20, ..spec(filtered) };
        let plan = plan(&small).expect("the numbers make sense");
        assert!(plan.shortage().is_some_and(|words| words.contains("writes end when")), "{plan:?}");
    }
}
