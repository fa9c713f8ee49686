//! A bench result as tables for eyes.

use std::fmt::Write;

use comfy_table::{Cell, CellAlignment, Table, presets};

use workload::LatencySummary;

use crate::result::BenchResult;
use crate::units::{bytes_text, count_text, three_digits};

/// The whole result, as text of at most 100 columns.
pub fn render(result: &BenchResult) -> String {
    let mut text = String::new();
    let sections =
        [headline(result), latencies(result), reads(result), memory(result), work(result)];
    for section in sections {
        writeln!(text, "{section}\n").expect("a string takes any text");
    }
    text.push_str(&verdict(result));
    text
}

fn table(header: &[&str]) -> Table {
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

fn add(table: &mut Table, cells: impl IntoIterator<Item = String>) {
    table.add_row(cells.into_iter().enumerate().map(|(i, text)| align(i, text)));
}

fn headline(result: &BenchResult) -> String {
    format!(
        "{} on {}, workload {}: {} pairs of {} + {} bytes, {}, seed {}\n\
         throughput {} operations/s over {} s of virtual time (load: {} puts/s over {} s)",
        result.design,
        result.device,
        result.workload,
        count_text(result.records),
        result.key_bytes,
        result.value_bytes,
        result.clients,
        result.seed,
        count_text(result.throughput_ops_per_second.round() as u64),
        three_digits(result.virtual_seconds),
        count_text(result.load.throughput_ops_per_second.round() as u64),
        three_digits(result.load.virtual_seconds),
    )
}

fn latencies(result: &BenchResult) -> String {
    let mut table =
        table(&["latency, us", "count", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"]);
    let mut row = |name: &str, operation: &LatencySummary| {
        let o = operation;
        let numbers = [o.mean_us, o.p50_us, o.p90_us, o.p99_us, o.p999_us, o.p9999_us, o.max_us];
        let numbers = numbers.into_iter().map(three_digits);
        add(&mut table, [name.to_owned(), count_text(o.count)].into_iter().chain(numbers));
    };
    for (name, operation) in &result.operations {
        if operation.count > 0 {
            row(&name.replace('_', "-"), operation);
        }
    }
    row("put (load)", &result.load.put);
    table.to_string()
}

fn reads(result: &BenchResult) -> String {
    let total: u64 = result.flash_reads_per_get.iter().sum();
    if total == 0 {
        return "flash reads per get: no gets".to_owned();
    }
    let mut table = table(&["flash reads per get", "gets", "share"]);
    for (reads, count) in result.flash_reads_per_get.iter().enumerate() {
        let share = *count as f64 / total as f64 * 100.0;
        add(&mut table, [reads.to_string(), count_text(*count), format!("{share:.3} %")]);
    }
    let bound = result.flash_reads_bound;
    format!("{table}\nno get takes more than {bound} (asserted on every get)")
}

fn memory(result: &BenchResult) -> String {
    let memory = &result.memory_bytes;
    let mut table = table(&["memory of the device", "bytes", ""]);
    let rows = [
        ("level lists", memory.level_lists),
        ("prefixes", memory.prefixes),
        ("range pointers", memory.range_pointers),
        ("pinned segments", memory.pinned_segments),
        ("caches", memory.caches),
        ("index in all", memory.index),
        ("  budget", memory.index_budget),
        ("  peak", memory.index_peak),
        ("memtables (outside the budget)", memory.memtables),
        ("compaction buffers (outside)", memory.compaction_buffers),
    ];
    for (name, bytes) in rows {
        add(&mut table, [name.to_owned(), count_text(bytes), bytes_text(bytes)]);
    }
    let levels: Vec<String> = (1..)
        .zip(&result.levels)
        .map(|(n, level)| {
            let pinned = if level.is_pinned { " pinned" } else { "" };
            format!("L{n}{pinned} {}/{}", level.segments, level.capacity_segments)
        })
        .collect();
    format!("{table}\nlevels, meta segments of capacity: {}", levels.join(", "))
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
        let of = |counts: &std::collections::BTreeMap<&str, u64>| {
            counts.get(class).map_or("-".to_owned(), |count| count_text(*count))
        };
        let name = class.replace('_', " ");
        add(&mut table, [name, of(&flash.pages_read), of(&flash.pages_programmed)]);
    }
    let behind = &flash.client_reads_behind;
    let waits: Vec<String> =
        behind.iter().map(|(name, count)| format!("{name} {}", count_text(*count))).collect();
    format!(
        "{table}\nwrite amplification: load {}, run {}, both {}\n\
         dies busy {:.1} % of the time; client reads by what was in their way: {}; \
         {} shared another's read\n\
         {} flushes, compactions {:?}, {} extents collected, {} objects moved, {} blocks erased, \
         {} suspends\n{} writes waited for room, {} s in all",
        amplification(result.load.write_amplification),
        amplification(result.run_write_amplification),
        amplification(result.write_amplification),
        flash.die_utilisation * 100.0,
        waits.join(", "),
        count_text(flash.client_reads_shared),
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

fn verdict(result: &BenchResult) -> String {
    let verification = &result.verification;
    let mut text = match &verification.first_mismatch {
        None => format!(
            "verified: all {} gets returned what they must",
            count_text(verification.checked)
        ),
        Some(first) => {
            format!("WRONG DATA: {} gets; first: {first}", count_text(verification.mismatches))
        }
    };
    if let Some(error) = &verification.first_error {
        write!(text, "\nFAILED: {} operations; first: {error}", verification.errors)
            .expect("a string takes any text");
    }
    if let Some(host) = &result.host {
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
