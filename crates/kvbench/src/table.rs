//! A bench result as tables for people.

mod ageing;
mod host;
mod index;
mod store;
mod trace;
mod verdict;

use std::collections::BTreeMap;
use std::fmt::Write;

use report::late::fell_behind;
use report::resolution;
use report::text_table::{add, table};
use report::units::{bytes_text, count_text, rate_text, span_text, three_digits};
use workload::{LatencySummary, OpKind};

use crate::result::{AcceleratorResult, BenchResult, Interrupted};

pub(crate) use store::time;

/// Returns the whole result as text.
pub fn render(result: &BenchResult) -> String {
    let mut text = String::new();
    let sections = [
        headline(result),
        result.trace.as_ref().map_or(String::new(), trace::trace),
        ageing::ageing(result),
        latencies(&result.operations, &result.load.put),
        late(result),
        reads(result),
        index::memory(result),
        index::index(result),
        index::tables(result),
        host::block_drive(result),
        host::limiter(result),
        host::windows(result),
        result.caches.as_ref().map_or(String::new(), index::caches),
        result.store.as_ref().map_or_else(|| work(result), |store| store::work(result, store)),
    ];
    for section in sections.into_iter().filter(|section| !section.is_empty()) {
        writeln!(text, "{section}\n").expect("a string takes any text");
    }
    text.push_str(&verdict::verdict(result));
    text
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

/// Returns a line about the interruption, if the run was interrupted.
fn interrupted(result: &BenchResult) -> String {
    let Some(Interrupted { done, planned }) = result.interrupted else { return String::new() };
    format!(
        "INTERRUPTED: the numbers are of the {} operations done, of {} planned\n",
        count_text(done),
        count_text(planned)
    )
}

/// Returns the length of the values, or the longest and the mean if lengths differ.
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
        let name = [name.to_owned(), count_text(operation.count)].into_iter();
        add(&mut table, name.chain(resolution::cells(operation)));
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
    resolution::explained(&table.to_string())
}

/// Returns a line if the run fell behind its offered rate.
fn late(result: &BenchResult) -> String {
    let name = if result.trace.is_some() { "the replay" } else { "the open loop" };
    result.late_s.map_or(String::new(), |seconds| fell_behind(name, seconds))
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
    let most = result.flash_reads_per_get.iter().rposition(|count| *count > 0).unwrap_or(0);
    match result.flash_reads_bound {
        Some(bound) => format!("{table}\n{}", promise(most, result.flash_reads_bound_least, bound)),
        None => {
            format!("{table}\n{} a get on average; there is no bound", three_digits(mean(result)))
        }
    }
}

/// Returns a line about the bound on flash reads of a Get. `most` is the maximum that occurred.
/// `least` is the smallest value of the bound, if the bound changed with the levels.
fn promise(most: usize, least: Option<u32>, bound: u32) -> String {
    match least {
        None => format!("no get takes more than {bound} (asserted on every get)"),
        Some(least) => format!(
            "no get took more than {most}; the bound changed with the levels, from {least} to {bound}"
        ),
    }
}

fn mean(result: &BenchResult) -> f64 {
    let counts = &result.flash_reads_per_get;
    let reads: u64 = counts.iter().zip(0..).map(|(count, reads)| count * reads).sum();
    reads as f64 / counts.iter().sum::<u64>() as f64
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_that_changes_is_told_as_one_that_did() {
        let line = promise(6, Some(3), 10);
        assert_eq!(
            line,
            "no get took more than 6; the bound changed with the levels, from 3 to 10"
        );
    }

    #[test]
    fn a_bound_that_holds_all_the_time_is_a_promise() {
        assert_eq!(promise(1, None, 2), "no get takes more than 2 (asserted on every get)");
    }

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
}
