//! A host's store: its drive, the windows of its sets, and the limits on its background I/O.

use report::text_table::{add, table};
use report::units::{bytes_text, count_text, three_digits};

use crate::result::{BenchResult, HedgesResult};

/// Returns a table of limited background I/O, if there are limits.
pub(super) fn limiter(result: &BenchResult) -> String {
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

/// Returns lines about windows, if the sets of the data have them.
pub(super) fn windows(result: &BenchResult) -> String {
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

/// Returns lines about the I/O of a host's store to its drive, if there is a host.
pub(super) fn block_drive(result: &BenchResult) -> String {
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

/// Returns a line about hedged reads.
fn hedges(hedges: HedgesResult) -> String {
    format!(
        "\nreads that had not come after {} us, and were begun a second time: {}; those that came from the other sets \
         first: {}",
        hedges.after_us,
        count_text(hedges.reads),
        count_text(hedges.won),
    )
}
