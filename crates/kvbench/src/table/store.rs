//! The work of a store on files, which takes the place of the flash's work.

use report::units::{bytes_text, count_text, three_digits};

use crate::result::{BenchResult, StoreResult};

/// Returns the kind of time that a result is in.
pub(crate) fn time(result: &BenchResult) -> &'static str {
    if result.store.is_some() { "real" } else { "virtual" }
}

/// Returns lines about I/O and background work.
pub(super) fn work(result: &BenchResult, store: &StoreResult) -> String {
    let flash = &result.flash;
    let amplification = |value: Option<f64>| value.map_or("-".to_owned(), three_digits);
    let bytes = |value: Option<u64>| value.map_or("-".to_owned(), bytes_text);
    format!(
        "durability {}; drives: in the load {} written; in the run {} read, {} written, then {} until nothing was left to do\n\
         bytes written to drives per byte of pairs, once settled: load {}, run {}, both {}\n\
         settling took {} s after the load, {} s after the run\n\
         {} flushes, compactions {:?}, {} extents collected, {} objects moved; {} shared another's read\n\
         {} writes waited for room, {} s in all",
        store.durability,
        bytes(store.load_disk_bytes_written),
        bytes(store.disk_bytes_read),
        bytes(store.disk_bytes_written),
        bytes(store.settling_disk_bytes_written),
        amplification(result.load.write_amplification),
        amplification(result.run_write_amplification),
        amplification(result.write_amplification),
        three_digits(store.load_settle_seconds),
        three_digits(store.settle_seconds),
        count_text(flash.flushes),
        flash.compactions,
        count_text(flash.extents_collected),
        count_text(flash.objects_moved),
        count_text(flash.client_reads_shared),
        count_text(flash.write_stalls),
        three_digits(flash.write_stall_seconds),
    )
}
