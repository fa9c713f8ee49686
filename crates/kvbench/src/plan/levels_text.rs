//! A plan with levels of segments as text.

use engine::sizing::monkey;
use report::units::{bytes_text, count_text};

use super::collection;
use super::heading::heading;
use super::levels::LevelsPlan;

/// Returns the plan as text.
pub(super) fn render(plan: &LevelsPlan) -> String {
    let (input, levels) = (&plan.input, &plan.levels);
    let mut lines = Vec::new();
    if let Some(words) = plan.shortage() {
        lines.extend([format!("DOES NOT FIT: {words}"), String::new()]);
    }
    lines.extend(heading(input, plan.cache_bytes));
    for (n, segments) in (1..).zip(&levels.capacities) {
        let place = if n <= levels.pinned { "memory" } else { "flash" };
        let size = bytes_text(segments * input.segment_bytes);
        lines.push(format!(
            "L{n}  {:>14} meta segments  {size:>9}  in {place}",
            count_text(*segments)
        ));
    }
    lines.push(format!(
        "growth factor {:.2}, into the last level {:.2}",
        levels.factor, levels.last_factor
    ));
    lines.push(String::new());
    let memory = levels.memory;
    let rows = [
        ("level lists", memory.level_lists),
        ("prefixes", memory.prefixes),
        ("range pointers", memory.range_pointers),
        ("pinned segments", memory.pinned),
        ("filters", memory.filters),
        ("caches", plan.cache_bytes),
        ("in all", plan.index_bytes() + plan.cache_bytes),
        ("budget", input.dram_bytes + plan.cache_bytes),
    ];
    let has_caches = plan.cache_bytes > 0;
    for (name, bytes) in rows.into_iter().filter(|(name, _)| has_caches || *name != "caches") {
        lines.push(format!("{name:16} {:>9}", bytes_text(bytes)));
    }
    lines.push(String::new());
    lines.extend(filters(plan));
    lines.push(format!(
        "write amplification when full {:.1} (values {:.2}, index {:.2})",
        levels.amplification(input),
        input.value_amplification(),
        levels.index_amplification(input),
    ));
    lines.push(collection::words(plan));
    lines.extend(collection::empty(&plan.pair));
    lines.push(format!("a get takes at most {} flash reads", plan.worst_case_reads()));
    lines.join("\n")
}

/// Returns a line about the design's filters, if it has any.
fn filters(plan: &LevelsPlan) -> Option<String> {
    if !plan.input.has_filters {
        return None;
    }
    let pinned = plan.levels.pinned as usize;
    let bits = &plan.levels.filter_bits(&plan.input)[pinned..];
    let keys = &plan.levels.keys(&plan.input)[pinned..];
    let text: Vec<String> = bits.iter().map(|bits| format!("{bits:.1}")).collect();
    Some(format!(
        "bits per key in filters, level by level in flash: {}; meta segments read in vain on the \
         average: {:.4} a get of a key that is there, {:.4} of one that is not",
        text.join(", "),
        monkey::vain_reads_of_present_keys(keys, bits),
        monkey::expected_vain_reads(bits)
    ))
}
