//! A bench result as tables for eyes.

mod ageing;
mod store;
mod trace;

use std::collections::BTreeMap;
use std::fmt::Write;

use comfy_table::{Cell, CellAlignment, Table, presets};

use pages::CacheStats;
use workload::{LatencySummary, OpKind};

use crate::result::{AcceleratorResult, BenchResult, HedgesResult, Interrupted, Verification};
use crate::units::{bytes_text, count_text, rate_text, span_text, three_digits};
pub(crate) use store::time;

/// The whole result, as text of at most 100 columns.
pub fn render(result: &BenchResult) -> String {
    let mut text = String::new();
    let sections = [
        headline(result),
        result.trace.as_ref().map_or(String::new(), trace::trace),
        ageing::ageing(result),
        latencies(&result.operations, &result.load.put),
        reads(result),
        memory(result),
        index(result),
        tables(result),
        block_drive(result),
        limiter(result),
        windows(result),
        result.caches.as_ref().map_or(String::new(), caches),
        result.store.as_ref().map_or_else(|| work(result), |store| store::work(result, store)),
    ];
    for section in sections.into_iter().filter(|section| !section.is_empty()) {
        writeln!(text, "{section}\n").expect("a string takes any text");
    }
    text.push_str(&verdict(result));
    text
}

/// An empty table.
pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header(header.iter().enumerate().map(|(i, title)| align(i, (*title).to_owned())));
    table
}

/// Names to the left, numbers to the right.
fn align(column: usize, text: String) -> Cell {
    let alignment = if column == 0 { CellAlignment::Left } else { CellAlignment::Right };
    Cell::new(text).set_alignment(alignment)
}

/// Adds a row.
pub(crate) fn add(table: &mut Table, cells: impl IntoIterator<Item = String>) {
    table.add_row(cells.into_iter().enumerate().map(|(i, text)| align(i, text)));
}

fn headline(result: &BenchResult) -> String {
    if let Some(trace) = &result.trace {
        return trace::headline(result, trace, &interrupted(result));
    }
    format!(
        "{}{}{} on {}, workload {}: {} pairs of {} + {} bytes, {}, seed {}\n\
         throughput {} operations/s over {} s of {} time (load: {} puts/s over {} s)",
        interrupted(result),
        result.configuration.as_ref().map_or(String::new(), |name| format!("{name}: ")),
        result.design,
        result.device,
        result.workload,
        count_text(result.records),
        result.key_bytes,
        value_lengths(result),
        result.clients,
        result.seed,
        rate_text(result.throughput_ops_per_second),
        span_text(result.virtual_seconds),
        time(result),
        rate_text(result.load.throughput_ops_per_second),
        span_text(result.load.virtual_seconds),
    )
}

/// That the run did not come to its end, if so.
fn interrupted(result: &BenchResult) -> String {
    let Some(Interrupted { done, planned }) = result.interrupted else { return String::new() };
    format!(
        "INTERRUPTED: the numbers are of the {} operations done, of {} planned\n",
        count_text(done),
        count_text(planned)
    )
}

/// Lengths of the values: one, unless they differ.
fn value_lengths(result: &BenchResult) -> String {
    if (result.mean_value_bytes - result.value_bytes as f64).abs() < 0.5 {
        return result.value_bytes.to_string();
    }
    format!("up to {} (mean {})", result.value_bytes, three_digits(result.mean_value_bytes))
}

fn latencies(operations: &BTreeMap<&'static str, LatencySummary>, load: &LatencySummary) -> String {
    let mut table =
        table(&["latency, us", "count", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"]);
    let mut row = |name: &str, operation: &LatencySummary| {
        let o = operation;
        let numbers = [o.mean_us, o.p50_us, o.p90_us, o.p99_us, o.p999_us, o.p9999_us, o.max_us];
        let numbers = numbers.into_iter().map(three_digits);
        add(&mut table, [name.to_owned(), count_text(o.count)].into_iter().chain(numbers));
    };
    for kind in OpKind::ALL {
        let operation = operations.get(kind.name());
        if let Some(operation) = operation.filter(|operation| operation.count > 0) {
            let part = if matches!(kind, OpKind::Seek | OpKind::Next) { "  " } else { "" };
            row(&format!("{part}{}", kind.name()), operation);
        }
    }
    if load.count > 0 {
        row("put (load)", load);
    }
    table.to_string()
}

fn reads(result: &BenchResult) -> String {
    let kind = if result.store.is_some() { "reads" } else { "flash reads" };
    let total: u64 = result.flash_reads_per_get.iter().sum();
    if total == 0 {
        return format!("{kind} per get: no gets");
    }
    let mut table = table(&[&format!("{kind} per get"), "gets", "share"]);
    for (reads, count) in result.flash_reads_per_get.iter().enumerate() {
        let share = *count as f64 / total as f64 * 100.0;
        add(&mut table, [reads.to_string(), count_text(*count), format!("{share:.3} %")]);
    }
    let most = result.flash_reads_per_get.iter().rposition(|count| *count > 0).unwrap_or(0) as u64;
    match result.flash_reads_bound.map(u64::from) {
        // Levels of tables have a bound that changes with them.
        Some(bound) if most > bound => {
            format!(
                "{table}\nno get took more than {most}; by the levels at the end of the run {bound}"
            )
        }
        Some(bound) => format!("{table}\nno get takes more than {bound} (asserted on every get)"),
        None => {
            format!("{table}\n{} a get on average; there is no bound", three_digits(mean(result)))
        }
    }
}

fn mean(result: &BenchResult) -> f64 {
    let counts = &result.flash_reads_per_get;
    let reads: u64 = counts.iter().zip(0..).map(|(count, reads)| count * reads).sum();
    reads as f64 / counts.iter().sum::<u64>() as f64
}

fn memory(result: &BenchResult) -> String {
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
    if result.levels.is_empty() {
        return table.to_string();
    }
    if result.tables.is_some() {
        return table.to_string();
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

/// What became of tables, if there are any.
fn tables(result: &BenchResult) -> String {
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

/// Background I/O that was limited.
fn limiter(result: &BenchResult) -> String {
    let Some(limiter) = &result.limiter else { return String::new() };
    let mut rows =
        table(&["limited I/O of the run", "bytes", "waits", "waited, s", "longest, load too, ms"]);
    for (name, of) in
        [("flushes", limiter.flush), ("compactions out of L0", limiter.l0), ("other", limiter.rest)]
    {
        let cells = [
            name.to_owned(),
            bytes_text(of.bytes),
            count_text(of.waits),
            three_digits(of.waited_ns as f64 / 1e9),
            three_digits(of.longest_wait_ns as f64 / 1e6),
        ];
        add(&mut rows, cells);
    }
    format!(
        "{rows}\nclients' own: {}; rate at the end {}/s, changed {} times; {} pauses of compactions below L0, {} s in all",
        bytes_text(limiter.client_bytes),
        bytes_text(limiter.bytes_per_second),
        count_text(limiter.rate_changes),
        count_text(limiter.pauses),
        three_digits(limiter.paused_ns as f64 / 1e9),
    )
}

/// What windows did, if the sets of the data are taken through them.
fn windows(result: &BenchResult) -> String {
    let Some(windows) = &result.windows else { return String::new() };
    let seconds = |of: f64| three_digits(of);
    format!(
        "windows {}: of {} pages for clients {} read in DTWIN, {} rebuilt ({} %), {} from plm_cache, {} from busy sets\n\
         {} slots, {} of them longer than the least, {} too short; UDT {} s, AND {} s, UND {} s, lockdown {} s\n\
         {} written in slots; plm_cache {} at most, {} of {} stripes waited for room, {} s; writes in DTWIN {}, windows lost {}",
        windows.policy,
        count_text(
            windows.cached_reads
                + windows.direct_reads
                + windows.rebuilt_reads
                + windows.busy_reads
        ),
        count_text(windows.direct_reads),
        count_text(windows.rebuilt_reads),
        three_digits(100.0 * windows.rebuilt_share),
        count_text(windows.cached_reads),
        count_text(windows.busy_reads),
        count_text(windows.slots),
        count_text(windows.long_slots),
        count_text(windows.unfinished_slots),
        seconds(windows.udt_seconds),
        seconds(windows.and_seconds),
        seconds(windows.und_seconds),
        seconds(windows.lockdown_seconds),
        bytes_text(windows.slot_bytes),
        bytes_text(windows.most_cached_bytes),
        count_text(windows.waits_for_room),
        count_text(windows.stripes),
        seconds(windows.waited_seconds),
        count_text(windows.writes_in_dtwin),
        count_text(windows.lost_windows),
    )
}

/// What a host's store did to its drive, if there is a host.
fn block_drive(result: &BenchResult) -> String {
    let Some(drive) = &result.block_drive else { return String::new() };
    let amplification = |value: Option<f64>| value.map_or("-".to_owned(), three_digits);
    format!(
        "host {}, layout {}{}: in the run {} blocks of 4 KiB read, {} written\n\
         bytes written to the drive per byte of pairs: load {}, run {}; flash programmed per byte \
         written to the drive: {}{}",
        drive.host,
        drive.layout,
        drive.journal.map_or(String::new(), |place| format!(", journal {place}")),
        count_text(drive.blocks_read),
        count_text(drive.blocks_written),
        amplification(drive.load_store_write_amplification),
        amplification(drive.run_store_write_amplification),
        three_digits(drive.drive_write_amplification),
        drive.hedges.map_or(String::new(), hedges),
    )
}

/// What hedged reads did.
fn hedges(hedges: HedgesResult) -> String {
    format!(
        "\nreads that had not come after {} us, and were begun a second time: {}; those that came from the other sets \
         first: {}",
        hedges.after_us,
        count_text(hedges.reads),
        count_text(hedges.won),
    )
}

/// What caches had for clients; a cache of which nothing was wanted is left out.
fn caches(stats: &CacheStats) -> String {
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

/// The hash table, if there is one.
fn index(result: &BenchResult) -> String {
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

fn work(result: &BenchResult) -> String {
    let flash = &result.flash;
    let amplification = |value: Option<f64>| value.map_or("-".to_owned(), three_digits);
    let mut table = table(&["flash work in the run", "pages read", "pages programmed"]);
    let mut classes: Vec<&str> = flash.pages_read.keys().copied().collect();
    classes.extend(flash.pages_programmed.keys().copied());
    classes.sort_unstable();
    classes.dedup();
    for class in classes {
        let of = |counts: &BTreeMap<&str, u64>| {
            counts.get(class).map_or("-".to_owned(), |count| count_text(*count))
        };
        let name = class.replace('_', " ");
        add(&mut table, [name, of(&flash.pages_read), of(&flash.pages_programmed)]);
    }
    let phases = [("load", &result.load.accelerator), ("run", &flash.accelerator)];
    let accelerators: String = phases
        .into_iter()
        .filter_map(|(phase, work)| work.as_ref().map(|work| accelerator(phase, work)))
        .collect();
    let behind = &flash.client_reads_behind;
    let waits = behind.iter().map(|(name, count)| match *name {
        "nothing" => format!("{} unobstructed", count_text(*count)),
        "erase" => format!("{} waited for an erase", count_text(*count)),
        other => format!("{} waited for a {other}", count_text(*count)),
    });
    let waits: Vec<String> = waits.collect();
    format!(
        "{table}\nwrite amplification: load {}, run {}, both {}\n\
         dies busy {:.1} % of the time; client reads: {}; \
         {} shared another's read; {} meta segments read in vain\n\
         {} flushes, compactions {:?}, {} extents collected, {} objects moved, {} blocks erased, \
         {} suspends\n{accelerators}{} writes waited for room, {} s in all",
        amplification(result.load.write_amplification),
        amplification(result.run_write_amplification),
        amplification(result.write_amplification),
        flash.die_utilisation * 100.0,
        waits.join(", "),
        count_text(flash.client_reads_shared),
        count_text(flash.vain_meta_reads),
        count_text(flash.flushes),
        flash.compactions,
        count_text(flash.extents_collected),
        count_text(flash.objects_moved),
        count_text(flash.blocks_erased),
        count_text(flash.suspends),
        count_text(flash.write_stalls),
        three_digits(flash.write_stall_seconds),
    )
}

fn accelerator(phase: &str, work: &AcceleratorResult) -> String {
    format!(
        "accelerator ({phase}): {} merges of {} in {} s, {} pages written for it alone, {} merges left \
         to the processor\n",
        count_text(work.merges),
        bytes_text(work.merged_bytes),
        three_digits(work.busy_seconds),
        count_text(work.pages_copied),
        count_text(work.left_to_processor),
    )
}

fn verdict(result: &BenchResult) -> String {
    let verification = &result.verification;
    let mut text = match &verification.first_mismatch {
        None => format!("verified: all {} returned what they must", answers(verification)),
        Some(first) => {
            format!("WRONG DATA: {} answers; first: {first}", count_text(verification.mismatches))
        }
    };
    if let Some(error) = &verification.first_error {
        write!(text, "\nFAILED: {} operations; first: {error}", verification.errors)
            .expect("a string takes any text");
    }
    if let Some(host) = result.host.as_ref().filter(|_| result.store.is_some()) {
        write!(text, "\nthis program: {} of memory at most", bytes_text(host.peak_rss_bytes))
            .expect("a string takes any text");
    } else if let Some(host) = &result.host {
        write!(
            text,
            "\nthis machine: {:.1} s wall (load {:.1} s, {} puts/s; run {:.1} s, {} simulated \
             operations/s), {} of memory",
            host.wall_seconds,
            host.load_wall_seconds,
            count_text(host.loaded_per_wall_second.round() as u64),
            host.run_wall_seconds,
            count_text(host.simulated_ops_per_wall_second.round() as u64),
            bytes_text(host.peak_rss_bytes)
        )
        .expect("a string takes any text");
    }
    text
}

/// What was checked: gets, unless there were scans only, and the pairs of scans.
fn answers(verification: &Verification) -> String {
    let gets = format!("{} gets", count_text(verification.checked));
    let pairs = format!("scans of {} pairs", count_text(verification.checked_pairs));
    match (verification.checked, verification.checked_pairs) {
        (_, 0) => gets,
        (0, _) => pairs,
        (_, _) => format!("{gets} and {pairs}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scans_have_rows_for_themselves_and_their_parts_when_there_are_any() {
        let names = |operations: &[(&'static str, u64)]| -> Vec<String> {
            let of = |count| LatencySummary { count, ..LatencySummary::default() };
            let all = OpKind::ALL.map(|kind| (kind.name(), of(0))).into_iter();
            let some = operations.iter().map(|(name, count)| (*name, of(*count)));
            let text = latencies(&all.chain(some).collect(), &of(7));
            let cells = text.lines().skip(2).filter_map(|line| line.split('|').nth(1));
            cells.map(|name| name.trim_end().strip_prefix(' ').unwrap_or(name).to_owned()).collect()
        };
        assert_eq!(names(&[("get", 1), ("put", 2)]), ["get", "put", "put (load)"]);
        let scans = [("put", 1), ("scan", 2), ("seek", 2), ("next", 30)];
        assert_eq!(names(&scans), ["put", "scan", "  seek", "  next", "put (load)"]);
    }

    #[test]
    fn caches_that_were_asked_have_rows() {
        let stats = CacheStats { page_hits: 30, page_misses: 10, ..CacheStats::default() };
        let text = caches(&stats);
        assert!(text.contains("| pages of the index |   30 |     10 |        75.0 % |"), "{text}");
        assert!(!text.contains("values"), "{text}");
    }

    #[test]
    fn the_verdict_says_what_was_checked() {
        let told = |checked, checked_pairs| {
            answers(&Verification {
                checked,
                checked_pairs,
                mismatches: 0,
                first_mismatch: None,
                errors: 0,
                first_error: None,
            })
        };
        assert_eq!(told(5000, 0), "5 000 gets");
        assert_eq!(told(0, 128), "scans of 128 pairs");
        assert_eq!(told(2, 30), "2 gets and scans of 30 pairs");
    }
}
