//! The memory of the index, and its lookups.

use engine::CacheStats;
use report::text_table::{add, table};
use report::units::{bytes_text, count_text};

use crate::result::BenchResult;

pub(super) fn memory(result: &BenchResult) -> String {
    let memory = &result.memory_bytes;
    let whose = if result.store.is_some() { "store" } else { "device" };
    let mut table = table(&[&format!("memory of the {whose}"), "bytes", ""]);
    let mut rows = if result.index.is_some() {
        vec![
            ("directory of bucket pages", memory.directory),
            ("cached bucket pages", memory.caches),
        ]
    } else {
        vec![
            ("level lists", memory.level_lists),
            ("prefixes", memory.prefixes),
            ("range pointers", memory.range_pointers),
            ("pinned segments", memory.pinned_segments),
            ("filters", memory.filters),
            ("caches", memory.caches),
        ]
    };
    rows.extend([
        ("index in all", memory.index),
        ("  budget", memory.index_budget),
        ("  peak", memory.index_peak),
        ("memtables (outside the budget)", memory.memtables),
    ]);
    if result.index.is_none() {
        rows.push(("compaction buffers (outside)", memory.compaction_buffers));
    }
    for (name, bytes) in rows {
        add(&mut table, [name.to_owned(), count_text(bytes), bytes_text(bytes)]);
    }
    let peak = if result.index.is_none() { memory.index_peak } else { 0 };
    let table = format!("{table}{}", excess(memory.index_budget, peak));
    if result.levels.is_empty() {
        return table;
    }
    if result.tables.is_some() {
        return table;
    }
    let levels: Vec<String> = (result.first_level..)
        .zip(&result.levels)
        .map(|(n, level)| {
            let pinned = if level.is_pinned { " pinned" } else { "" };
            format!("L{n}{pinned} {}/{}", level.segments, level.capacity_segments)
        })
        .collect();
    format!("{table}\nlevels, meta segments of capacity: {}", levels.join(", "))
}

/// Returns a line about a peak above the budget.
fn excess(budget: u64, peak: u64) -> String {
    if peak <= budget {
        return String::new();
    }
    format!(
        "\nfor a while {} above the budget: a flush brings all entries of a memtable (memtable_bytes) into the index at \
         once; puts waited until compactions had made room",
        bytes_text(peak - budget)
    )
}

/// Returns lines about tables, if the design has them.
pub(super) fn tables(result: &BenchResult) -> String {
    let Some(tables) = &result.tables else { return String::new() };
    let levels: Vec<String> = (result.first_level..)
        .zip(&result.levels)
        .map(|(n, level)| format!("L{n} {}", count_text(level.segments)))
        .collect();
    let count = count_text;
    format!(
        "pages of tables by level: {}\n\
         in the run flushes wrote {} of them; compactions read {} and wrote {}, {} within L0; {} tables \
         moved as they are; at most {} in L0 at a time",
        levels.join(", "),
        count(tables.flushed_pages),
        count(tables.read_pages),
        count(tables.written_pages),
        count(tables.intra_l0),
        count(tables.moves),
        tables.most_in_l0,
    )
}

/// Returns a table of the hits and misses of caches for clients. Omits caches without either.
pub(super) fn caches(stats: &CacheStats) -> String {
    let mut table = table(&["cache", "hits", "misses", "share of hits"]);
    let rows = [
        ("pages of the index", stats.page_hits, stats.page_misses),
        ("values", stats.value_hits, stats.value_misses),
    ];
    for (name, hits, misses) in rows.into_iter().filter(|(_, hits, misses)| hits + misses > 0) {
        let share = hits as f64 / (hits + misses) as f64 * 100.0;
        let share = format!("{share:.1} %");
        add(&mut table, [name.to_owned(), count_text(hits), count_text(misses), share]);
    }
    table.to_string()
}

/// Returns a table of lookups in the hash table, if the design is one.
pub(super) fn index(result: &BenchResult) -> String {
    let Some(index) = &result.index else { return String::new() };
    let mut table = table(&["slots looked at per lookup in the table", "lookups", "share"]);
    let counts = &index.slots_per_lookup;
    let total = counts.iter().sum::<u64>().max(1);
    let mut row = |name: String, count: u64| {
        let share = count as f64 / total as f64 * 100.0;
        add(&mut table, [name, count_text(count), format!("{share:.3} %")]);
    };
    for (slots, count) in counts.iter().enumerate().take(5).skip(1) {
        row(slots.to_string(), *count);
    }
    row("5 or more".to_owned(), counts.iter().skip(5).sum());
    let looks = (index.bucket_hits + index.bucket_misses).max(1);
    let count = |number: u64| count_text(number);
    format!(
        "{table}\nat most {} slots; {} objects read in vain (same signature, other key)\n\
         hash table: {} of {} slots in use ({:.1} %), {} bucket pages, {} cached, {} of them dirty\n\
         bucket pages of clients: {} in memory ({:.1} %), {} read; of flushes and collections: {}, \
         {} read\n{} dirty pages written to make room, {} of them while a client's read waited",
        index.longest_search,
        count(index.false_matches),
        count(index.keys),
        count(index.slots),
        index.keys as f64 / index.slots as f64 * 100.0,
        count(index.bucket_pages.into()),
        count(index.cached_pages),
        count(index.dirty_pages),
        count(index.bucket_hits),
        index.bucket_hits as f64 / looks as f64 * 100.0,
        count(index.bucket_misses),
        count(index.background_hits),
        count(index.background_misses),
        count(index.dirty_evictions),
        count(index.dirty_evictions_in_reads),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_above_the_budget_is_told() {
        assert_eq!(excess(1 << 20, 1 << 20), "");
        let told = excess(1 << 20, (1 << 20) + 2_048);
        assert!(told.starts_with("\nfor a while 2.00 KiB above the budget"), "{told}");
    }

    #[test]
    fn caches_that_were_asked_have_rows() {
        let stats = CacheStats { page_hits: 30, page_misses: 10, ..CacheStats::default() };
        let text = caches(&stats);
        assert!(text.contains("| pages of the index |   30 |     10 |        75.0 % |"), "{text}");
        assert!(!text.contains("values"), "{text}");
    }
}
