//! The paper's motivation (section 3): the causes of a tail, and the effect of delayed background
//! work.

use report::{Comparison, Verdict};

use crate::vigil::cell::Cell;
use crate::vigil::measured::Measured;
use crate::vigil::size::WORKLOADS;
use crate::words::{beside, micros, row, times};

pub(super) fn motivation(measured: &Measured) -> Vec<Comparison> {
    let mut rows = tail(measured);
    rows.extend(breakdown(measured));
    rows.push(delayed_compaction(measured));
    rows.push(delayed_flush(measured));
    rows
}

fn tail(measured: &Measured) -> Vec<Comparison> {
    let usual = WORKLOADS.map(|(workload, _)| measured.cell(workload, "base").get.p90_us);
    let usual = usual.into_iter().fold(0.0, f64::max);
    let worst = WORKLOADS.map(|(workload, _)| {
        let get = &measured.cell(workload, "base").get;
        get.p9999_us / get.p90_us
    });
    let worst = worst.into_iter().fold(0.0, f64::max);
    let (mixed, alone) = (measured.cell("userdb", "base").get, measured.reads_alone.get);
    let beyond = mixed.max_us / alone.p99_us;
    vec![
        row(
            "vigil-normal",
            "gets without anything in their way, Base",
            "less than 200 us (section 3.1, figure 3a)",
            format!("p90 {} at most", micros(usual)),
            Verdict::of_bound(200.0, usual),
            "The p90 of the workload with the longest.",
        ),
        row(
            "vigil-3a",
            "tail of gets over the usual, Base",
            "up to 15.7x (section 3.1, figure 3a)",
            beside(15.7, worst, times(worst)),
            Verdict::of_amount(15.7, worst),
            "p99.99 over p90, the workload with the most.",
        ),
        row(
            "vigil-3c",
            "longest get beside flushes and compactions, over the usual of gets alone",
            "20x beside a flush, 30x beside a compaction (section 3.1, figure 3c)",
            beside(30.0, beyond, times(beyond)),
            Verdict::of_amount(30.0, beyond),
            format!(
                "UserDB: {} over the p99 of its gets alone, {}; the paper has 147 us. The longest read of the flash \
                 waits for a page program or two, as erases are suspended (docs/decisions/0034).",
                micros(mixed.max_us),
                micros(alone.p99_us)
            ),
        ),
    ]
}

/// Figure 3b: the share of storage in the time of a get.
fn breakdown(measured: &Measured) -> Vec<Comparison> {
    let times = &measured.cell("userdb", "base").get_times;
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let processor = times.mean_us * (1.0 - times.storage_share);
    vec![
        row(
            "vigil-3b-tail",
            "share of storage in the slowest gets, UserDB, Base",
            "87 % (section 3.1, figure 3b)",
            beside(0.87, times.slowest_storage_share, percent(times.slowest_storage_share)),
            Verdict::of_amount(0.87, times.slowest_storage_share),
            format!("The slowest thousandth takes {} on average.", micros(times.slowest_mean_us)),
        ),
        row(
            "vigil-3b-usual",
            "share of storage in all of them",
            "about half (section 3.1, figure 3b)",
            beside(0.5, times.storage_share, percent(times.storage_share)),
            Verdict::of_amount(0.5, times.storage_share),
            format!(
                "A get takes {} on average, {processor:.1} us of it on the host's processor: its search, and the call to the \
                 system for a block, as measured with db_bench and direct reads. The application and the kernel's block layer \
                 are not in the model; half of the paper's 147 us would be some 70 us.",
                micros(times.mean_us),
            ),
        ),
    ]
}

/// Returns the mean of the longest gets in the last tenth of the seconds, in microseconds. Seconds
/// in which no get ended do not count.
fn late_us(cell: &Cell) -> f64 {
    let seconds: Vec<f64> = cell.longest_get_us.iter().copied().filter(|us| *us > 0.0).collect();
    let last = &seconds[seconds.len() - seconds.len().div_ceil(10)..];
    last.iter().sum::<f64>() / last.len().max(1) as f64
}

fn delayed_compaction(measured: &Measured) -> Comparison {
    let [in_time, late] = &measured.delayed_compaction;
    let ours = late_us(late) / late_us(in_time);
    row(
        "vigil-4a",
        "longest gets with compactions put off, against compactions in time",
        "3.6x: 3.1 ms and less than 1 ms (section 3.2, figure 4a)",
        beside(3.6, ours, times(ours)),
        Verdict::of_gain(3.6, ours),
        format!(
            "YCSB-A without filters, at the end of the run: {} and {}. L0 is compacted from 40 tables on instead of four, and a \
             get reads a block of each table in it.",
            micros(late_us(late)),
            micros(late_us(in_time))
        ),
    )
}

fn delayed_flush(measured: &Measured) -> Comparison {
    let [open, closed] = &measured.delayed_flush;
    let ours = late_us(closed) / closed.get.p50_us;
    row(
        "vigil-4b",
        "longest gets with flushes put off, over the usual get",
        "up to 27.4x (section 3.2, figure 4b)",
        beside(27.4, ours, times(ours)),
        Verdict::of_amount(27.4, ours),
        format!(
            "YCSB-A, two memtables, flushes at 2.5 MB/s, 16 clients in a closed loop, by which the paper seems to measure: {} and \
             {}. Puts wait for a memtable, and a client that waits with one asks for nothing, but a get that has begun waits \
             for nothing either. From intended start times gets that are to begin behind such puts wait with them: {:.1} s at \
             the end of the run, and longer the longer it lasts.",
            micros(late_us(closed)),
            micros(closed.get.p50_us),
            late_us(open) / 1e6
        ),
    )
}
