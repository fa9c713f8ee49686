//! Results of host commands, as text.

use std::fmt::{Display, Write as _};

use block::nvme::{Event, Events, GetLogPage, PerSetLog, SetId, WindowStatus};
use drives::ssd::SetReport;
use runtime::{IoClass, Nanos};

use super::step::Blocks;

pub(super) fn of_blocks(of: &Blocks) -> String {
    let last = of.first + u64::from(of.count) - 1;
    let mut words = match of.count {
        1 => format!("block {}", of.first),
        _ => format!("blocks {} to {last}", of.first),
    };
    if of.times * of.clients > 1 {
        write!(words, " and so on {} times", of.times * of.clients).expect("memory");
    }
    if of.clients > 1 {
        write!(words, " by {} clients", of.clients).expect("memory");
    }
    words
}

/// Returns an empty text for one command: the line already has its time.
pub(super) fn latencies(all: &[Nanos]) -> String {
    let [_, _, ..] = all else { return String::new() };
    let shortest = all.iter().min().copied().unwrap_or_default();
    let longest = all.iter().max().copied().unwrap_or_default();
    if shortest == longest {
        return format!(" in {shortest} each");
    }
    let mean = Nanos(all.iter().copied().sum::<Nanos>().0 / all.len() as u64);
    format!(" in {shortest} to {longest}, {mean} on average")
}

/// Returns where the blocks of a read were found.
pub(super) fn found_in(before: &SetReport, after: &SetReport) -> String {
    let pages = |report: &SetReport| report.flash.of(IoClass::ClientRead).pages_read;
    let places = [
        ("flash", pages(after) - pages(before)),
        ("the buffer", after.firmware.buffer_hits - before.firmware.buffer_hits),
        ("the read cache", after.firmware.cache_hits - before.firmware.cache_hits),
    ];
    let found: Vec<&str> =
        places.iter().filter(|(_, times)| *times > 0).map(|(place, _)| *place).collect();
    if found.is_empty() { String::new() } else { format!(" from {}", found.join(" and ")) }
}

pub(super) fn status(status: WindowStatus) -> &'static str {
    match status {
        WindowStatus::NotEnabled => "no window",
        WindowStatus::Dtwin => "DTWIN",
        WindowStatus::Ndwin => "NDWIN",
    }
}

pub(super) fn events(events: Events) -> String {
    listed(events.iter().map(|event| match event {
        Event::ReadsWarning => "reads warning (bit 0)",
        Event::WritesWarning => "writes warning (bit 1)",
        Event::TimeWarning => "time warning (bit 2)",
        Event::Exceeded => "left DTWIN, typical or maximum exceeded (bit 14)",
        Event::Excursion => "left DTWIN, deterministic excursion (bit 15)",
    }))
}

pub(super) fn listed<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    if items.is_empty() { "none".to_owned() } else { items.join(", ") }
}

/// Returns the fields of log page 0Ah.
pub(super) fn fields(log: &PerSetLog) -> String {
    let lockdown = log.lockdown_estimate_us;
    let fields = [
        ("Status", format!("{} ({})", log.status.code(), status(log.status))),
        ("Event Type", format!("{:04X}h ({})", log.events.bits(), events(log.events))),
        ("DTWIN Reads Typical", log.dtwin.reads.to_string()),
        ("DTWIN Writes Typical", log.dtwin.writes.to_string()),
        ("DTWIN Time Maximum", format!("{} ms", log.dtwin.time_ms)),
        ("NDWIN Time Minimum High", format!("{} ms", log.ndwin_minimum_high_ms)),
        ("NDWIN Time Minimum Low", format!("{} ms", log.ndwin_minimum_low_ms)),
        ("DTWIN Reads Estimate", log.left.reads.to_string()),
        ("DTWIN Writes Estimate", log.left.writes.to_string()),
        ("DTWIN Time Estimate", format!("{} ms", log.left.time_ms)),
        ("lockdown (ours)", lockdown.map_or("not reported".to_owned(), |us| format!("{us} us"))),
    ];
    let mut lines = String::new();
    for (name, value) in fields {
        writeln!(lines, "  {name:<24} {value}").expect("memory");
    }
    lines
}

/// Returns the dwords of the command that reads log page 0Ah, and the nonzero bytes of the page,
/// eight per line.
pub(super) fn bytes(set: SetId, log: &PerSetLog) -> String {
    let dwords = GetLogPage::per_set(set).dwords().map(|dword| format!("{dword:08X}h"));
    let mut lines = format!("  command dwords 10 to 13: {}\n", dwords.join(" "));
    for (i, bytes) in log.encode().chunks(8).enumerate() {
        if bytes.iter().any(|byte| *byte != 0) {
            let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
            let (first, last) = (i * 8, i * 8 + 7);
            writeln!(lines, "  bytes {first:>3} to {last:>3}: {}", hex.join(" ")).expect("memory");
        }
    }
    lines
}

/// Returns the nonzero counters of the firmware.
pub(super) fn counters(report: &SetReport) -> String {
    let all = format!("{:?}", report.firmware);
    let counters = all.trim_start_matches("SetStats { ").trim_end_matches(" }");
    let mut lines = String::new();
    for counter in counters.split(", ").filter(|counter| !counter.ends_with(": 0")) {
        writeln!(lines, "  {counter}").expect("memory");
    }
    lines
}
