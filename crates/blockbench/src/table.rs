//! The result of a job as tables for a terminal.

use std::collections::BTreeSet;
use std::fmt::Write;

use report::late::fell_behind;
use report::resolution;
use report::text_table::{add, table};
use report::units::{bytes_text, count_text, rate_text, span_text, three_digits};
use workload::LatencySummary;

use crate::result::{DeviceResult, DirectionResult, SetResult, StreamResult};
use crate::sets::SetChoice;

/// Returns the whole result as text with at most 100 columns.
pub fn render(result: &DeviceResult) -> String {
    let sections = [
        headline(result),
        throughput(result),
        latencies(&result.streams),
        late(&result.streams),
        traces(&result.streams),
        windows(result),
        sets(result),
        full(&result.sets),
        verdict(result),
    ];
    let sections: Vec<_> = sections.into_iter().filter(|section| !section.is_empty()).collect();
    sections.join("\n\n")
}

fn headline(result: &DeviceResult) -> String {
    let interrupted = if result.interrupted {
        "INTERRUPTED: the numbers are of what was done until then\n"
    } else {
        ""
    };
    let mut text = format!(
        "{interrupted}{} on {}, seed {}: {} s of virtual time",
        result.job,
        result.profile,
        result.seed,
        span_text(result.virtual_seconds)
    );
    if !result.description.is_empty() {
        write!(text, "\n{}", result.description).expect("a string takes any text");
    }
    text
}

/// Returns each stream and direction, with a unique name.
fn rows(streams: &[StreamResult]) -> Vec<(String, &StreamResult, &DirectionResult)> {
    let mut rows = Vec::new();
    for stream in streams {
        for (direction, part) in &stream.directions {
            let name = match stream.directions.len() {
                1 => stream.name.clone(),
                _ => format!("{}: {direction}", stream.name),
            };
            rows.push((name, stream, part));
        }
    }
    rows
}

fn throughput(result: &DeviceResult) -> String {
    let of_set = |set: SetChoice| match result.sets.len() {
        sets @ 2.. if set != SetChoice::All => format!("{set} of {sets}"),
        _ => set.to_string(),
    };
    let header = ["stream", "set", "what", "load", "operations", "per second", "MB/s"];
    let mut table = table(&header);
    for (name, stream, part) in rows(&result.streams) {
        let cells = [
            name,
            of_set(stream.set),
            what(stream),
            load(stream),
            count_text(part.operations),
            rate_text(part.operations_per_second),
            three_digits(part.bytes_per_second / 1e6),
        ];
        add(&mut table, cells);
    }
    table.to_string()
}

fn what(stream: &StreamResult) -> String {
    if let Some(trace) = &stream.trace {
        return format!("replay {}, {} % reads", trace.file, percent(stream.read_share));
    }
    let one = match stream.block_bytes / 1024 {
        kib if kib >= 1024 && kib.is_multiple_of(1024) => format!("{} MiB", kib / 1024),
        kib => format!("{kib} KiB"),
    };
    let block = stream.block_sizes.clone().unwrap_or(one);
    let is_mixed = stream.read_share > 0.0 && stream.read_share < 1.0;
    let mix =
        if is_mixed { format!(", {} % reads", percent(stream.read_share)) } else { String::new() };
    let uniform = if stream.random_map == Some(false) { ", norandommap" } else { "" };
    let place = stream.random_distribution.as_ref();
    let place = place.map_or(uniform.to_owned(), |distribution| format!(", {distribution}"));
    format!("{} {block}{mix}{place}", stream.rw)
}

/// Formats a rate with at most two decimals, or with three significant digits below 0.1.
fn short(rate: f64) -> String {
    if rate < 0.1 { span_text(rate) } else { ((rate * 100.0).round() / 100.0).to_string() }
}

/// Returns a share in percent, with one decimal.
fn percent(share: f64) -> f64 {
    (share * 1000.0).round() / 10.0
}

fn load(stream: &StreamResult) -> String {
    let speed = stream.trace.as_ref().and_then(|trace| trace.speed_percent);
    if let Some(speed) = speed {
        let words = if (speed - 100.0).abs() < 1e-9 {
            "as recorded".to_owned()
        } else {
            format!("{speed} % speed")
        };
        return format!("{words}, {} deep", stream.depth);
    }
    let jobs = stream.numjobs.map_or(String::new(), |jobs| format!("{jobs} x "));
    match stream.rate {
        Some(rate) => format!("{jobs}{}/s, {} deep", short(rate), stream.depth),
        None => format!("{jobs}{} deep", stream.depth),
    }
}

fn latencies(streams: &[StreamResult]) -> String {
    let mut table = table(&["latency, us", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"]);
    let mut row = |name: String, l: &LatencySummary| {
        add(&mut table, [name].into_iter().chain(resolution::cells(l)));
    };
    let mut notes = BTreeSet::new();
    for (name, _, part) in rows(streams) {
        row(name, &part.latency);
        for (name, note, apart) in [
            ("  in DTWIN", Some(IN_DTWIN), &part.latency_in_dtwin),
            ("  left by the drive", Some(LEFT), &part.latency_after_drive_left),
            ("  outside it", None, &part.latency_outside_dtwin),
        ] {
            if let Some(latency) = apart {
                row(format!("{name}, {}", count_text(latency.count)), latency);
                notes.extend(note);
            }
        }
    }
    let mut text = resolution::explained(&table.to_string());
    for note in notes {
        write!(text, "\n{note}").expect("a string takes any text");
    }
    text
}

const IN_DTWIN: &str =
    "in DTWIN: after the host's DTWIN command, as long as neither host nor drive left the window";
const LEFT: &str =
    "left by the drive: after that command too, when the drive had left the window by itself";

/// Returns the open loops that fell behind, with their delays.
fn late(streams: &[StreamResult]) -> String {
    let late = streams.iter().filter_map(|stream| Some(fell_behind(&stream.name, stream.late_s?)));
    late.collect::<Vec<_>>().join("\n")
}

/// Returns the differences between traces and their replays.
fn traces(streams: &[StreamResult]) -> String {
    let of_trace = |stream: &StreamResult| {
        let trace = stream.trace.as_ref()?;
        let counts = [
            (trace.wrapped, "wrapped around (beyond the drive's part)"),
            (trace.widened, "widened to whole blocks"),
            (trace.dropped_trims, "trims of no whole block left out"),
            (trace.left_out, "without bytes or address left out"),
            (trace.out_of_order, "out of order begun with those before"),
        ];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0);
        let counts: Vec<String> =
            counts.map(|(count, what)| format!("\n  {} {what}", count_text(count))).collect();
        let action = trace.action.map_or(String::new(), |action| format!(", action {action}"));
        Some(format!(
            "{}: {} operations of {} ({}{action}){}",
            stream.name,
            count_text(trace.operations),
            trace.file,
            trace.format,
            counts.concat()
        ))
    };
    streams.iter().filter_map(of_trace).collect::<Vec<_>>().join("\n")
}

fn windows(result: &DeviceResult) -> String {
    if result.windows.is_empty() {
        return String::new();
    }
    let mut table =
        table(&["window command", "given at, s", "took, ms", "lockdown as estimated, ms"]);
    for window in &result.windows {
        let estimate = window.lockdown_estimate_ms.filter(|_| window.to == "DTWIN");
        let cells = [
            format!("set {} to {}", window.set, window.to),
            three_digits(window.asked_s),
            three_digits(window.took_ms),
            estimate.map_or("-".to_owned(), three_digits),
        ];
        add(&mut table, cells);
    }
    table.to_string()
}

/// The value of a row of counters for a set.
type Counter = fn(&SetResult) -> u64;

const COUNTERS: [(&str, Counter); 18] = [
    ("blocks read", |set| set.blocks_read),
    ("  found in the write buffer", |set| set.buffer_hits),
    ("  read ahead", |set| set.cache_hits),
    ("  their die busy with a read", |set| behind(set, "read")),
    ("  with a program", |set| behind(set, "program")),
    ("  with an erase", |set| behind(set, "erase")),
    ("blocks written", |set| set.blocks_written),
    ("  kept waiting by their pace", |set| set.blocks_paced),
    ("blocks moved", |set| set.slots_moved),
    ("superblocks collected", |set| set.collections),
    ("superblocks moved for wear", |set| set.wear_moves),
    ("blocks reclaimed after reads", |set| set.reclaims),
    ("waits of the buffer for collection", |set| set.starvations),
    ("programs and erases suspended", |set| set.suspends),
    ("blocks lost", |set| set.blocks_lost),
    ("trims ignored, with no room for them", |set| set.discards_ignored),
    ("deterministic windows", |set| set.windows_entered),
    ("  left by the drive", |set| set.windows_broken),
];

fn behind(set: &SetResult, blocker: &str) -> u64 {
    set.client_reads_behind.get(blocker).copied().unwrap_or(0)
}

/// Returns a column for each set with activity, and a row for each counter above 0.
fn sets(result: &DeviceResult) -> String {
    let has_worked = |set: &&SetResult| COUNTERS.iter().any(|(_, counter)| counter(set) > 0);
    let sets: Vec<&SetResult> = result.sets.iter().filter(has_worked).collect();
    if sets.is_empty() {
        return String::new();
    }
    let names: Vec<String> = sets.iter().map(|set| format!("set {}", set.set)).collect();
    let header = std::iter::once("drive").chain(names.iter().map(String::as_str));
    let mut table = table(&header.collect::<Vec<_>>());
    let mut row = |name: &str, cell: &dyn Fn(&SetResult) -> String| {
        add(&mut table, std::iter::once(name.to_owned()).chain(sets.iter().map(|set| cell(set))));
    };
    for (name, counter) in COUNTERS {
        if sets.iter().any(|set| counter(set) > 0) {
            row(name, &|set| count_text(counter(set)));
        }
        if name == "blocks written" && sets.iter().any(|set| set.write_amplification.is_some()) {
            let text = |set: &SetResult| set.write_amplification.map(three_digits);
            row("write amplification", &|set| text(set).unwrap_or("-".to_owned()));
        }
    }
    row("free superblocks", &|set| match (set.free_superblocks_before, set.free_superblocks) {
        (before, after) if before == after => format!("{after} of {}", set.superblocks),
        (before, after) => format!("{before} to {after} of {}", set.superblocks),
    });
    table.to_string()
}

/// From this share of valid blocks in the victims of garbage collection, a drive is reported as all
/// but full.
const ALL_BUT_FULL: f64 = 0.95;

/// Returns the sets where garbage collection moved almost all blocks of its victims for lack of
/// space.
fn full(sets: &[SetResult]) -> String {
    let lines = sets.iter().filter_map(|set| {
        let moved = set.slots_moved as f64;
        let in_use = moved / (moved + set.slots_flushed as f64);
        // For each window a drive frees space, even if little was written.
        let for_others = set.wear_moves > 0 || set.reclaims > 0 || set.windows_entered > 0;
        let for_room = set.collections > 0 && !for_others;
        (for_room && in_use >= ALL_BUT_FULL).then(|| {
            format!(
                "set {} is all but full: collection moved {} blocks for each that clients wrote (a smaller \
                 user_bytes leaves it room)",
                set.set,
                three_digits(moved / (set.slots_flushed as f64).max(1.0))
            )
        })
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn verdict(result: &DeviceResult) -> String {
    let checks = &result.verification;
    let mut text = match &checks.first_mismatch {
        Some(first) => {
            format!("WRONG DATA: {} reads; first: {first}", count_text(checks.mismatches))
        }
        None if !checks.enabled => "nothing was verified: the job says verify = false".to_owned(),
        None if checks.checked == 0 => "nothing was verified: the job reads nothing".to_owned(),
        None => format!("verified: all {} blocks read are right", count_text(checks.checked)),
    };
    let writes = result.sets.iter().any(|set| set.write_amplification.is_some());
    let at_random = result.streams.iter().any(|stream| stream.rw.starts_with("rand"));
    if writes && at_random && result.sets.iter().all(|set| set.collections == 0) {
        text.push_str("\nno superblock was collected: the drive had room for all that was written");
    }
    if let Some(error) = &checks.first_error {
        write!(text, "\nFAILED: {error}").expect("a string takes any text");
    }
    if let Some(host) = &result.host {
        write!(
            text,
            "\nthis machine: drive made in {:.3} s, job in {:.1} s, {} simulated operations/s, {} of \
             memory",
            host.setup_wall_seconds,
            host.wall_seconds,
            count_text(host.simulated_ops_per_wall_second.round() as u64),
            bytes_text(host.peak_rss_bytes)
        )
        .expect("a string takes any text");
    }
    text
}
