//! Measurements that the paper does not have: alternatives to parameters that it does not give, the
//! bound, and all three papers together.

use report::units::bytes_text;
use report::{Comparison, Verdict};

use super::ratio::ratio;
use crate::vigil::cell::Cell;
use crate::vigil::measured::Measured;
use crate::vigil::size::{FRESH, WORKLOADS};
use crate::words::{change, micros, row, times};

const P999: fn(&Cell) -> f64 = |cell| cell.get.p999_us;
const P9999: fn(&Cell) -> f64 = |cell| cell.get.p9999_us;
const MEAN: fn(&Cell) -> f64 = |cell| cell.get.mean_us;

/// Returns the largest ratio, over the workloads, of the value of one configuration over the value
/// of another, and a sentence with all ratios.
fn over_by_workload(
    measured: &Measured,
    (configuration, over): (&str, &str),
    of: fn(&Cell) -> f64,
) -> (f64, String) {
    let factor =
        |workload| of(measured.cell(workload, configuration)) / of(measured.cell(workload, over));
    let most = WORKLOADS.map(|(workload, _)| factor(workload)).into_iter().fold(0.0, f64::max);
    let words = WORKLOADS.map(|(workload, title)| format!("{title} {}", times(factor(workload))));
    (most, format!("By workload: {}.", words.join(", ")))
}

/// Returns rows about the maximum gain of separating reads and writes, and about the part of it
/// that needs the hardware.
fn bounds(measured: &Measured) -> Vec<Comparison> {
    let none = "nothing";
    let (_, of_vigil) = over_by_workload(measured, ("o-vigil", "ideal"), P9999);
    let to_base = |configuration| times(ratio(measured, "base", configuration, P999));
    vec![
        row(
            "vigil-ideal",
            "p99.99 of gets, O-Vigil over drives in which nothing disturbs clients (ideal)",
            none,
            times(ratio(measured, "o-vigil", "ideal", P9999)),
            Verdict::NotApplicable,
            of_vigil,
        ),
        row(
            "vigil-hardware",
            "p99.9 of gets against Base: O-Vigil; without PLM: rails, hedged; the bound: ideal",
            none,
            ["o-vigil", "rails", "hedged", "ideal"].map(to_base).join("; "),
            Verdict::NotApplicable,
            "With rails the host writes to one set at a time, and the drive knows nothing of windows. Hedged begins a late \
             read a second time, from the other sets, which write as well.",
        ),
    ]
}

/// Returns a row that compares fresh drives, which collect no garbage, with drives in their steady
/// state.
fn fresh(measured: &Measured) -> Comparison {
    let words = measured.fresh.iter().zip(FRESH).map(|(cell, (configuration, name))| {
        let aged = measured.cell("a", configuration);
        format!(
            "{name}: mean {} and {}, p99.9 {} and {}, blocks programmed for each that is written {:.2} and {:.2}",
            micros(cell.get.mean_us),
            micros(aged.get.mean_us),
            micros(P999(cell)),
            micros(P999(aged)),
            cell.drive_written,
            aged.drive_written
        )
    });
    let (base, vigil) = (&measured.fresh[0], &measured.fresh[1]);
    row(
        "vigil-fresh",
        "p99.9 and mean of gets on fresh drives, YCSB-A, O-Vigil against Base",
        "what the drives had behind them is not said",
        format!("{} shorter; {}", times(P999(base) / P999(vigil)), change(MEAN(base), MEAN(vigil))),
        Verdict::NotApplicable,
        format!("Fresh and in the steady state. {}.", words.collect::<Vec<_>>().join("; ")),
    )
}

/// Returns a row with values of O-Vigil that the paper does not give: the median get, and the share
/// of rebuilt pages.
fn usual(measured: &Measured) -> Comparison {
    let p50: fn(&Cell) -> f64 = |cell| cell.get.p50_us;
    let rebuilt = WORKLOADS.map(|(workload, title)| {
        let windows = measured.cell(workload, "o-vigil").windows;
        format!("{title} {:.0} %", 100.0 * windows.map_or(0.0, |windows| windows.rebuilt_share))
    });
    row(
        "vigil-p50",
        "p50 of gets, O-Vigil against Base; pages rebuilt",
        "nothing",
        change(1.0, ratio(measured, "o-vigil", "base", p50)),
        Verdict::NotApplicable,
        format!("Pages that clients read and that were rebuilt: {}.", rebuilt.join(", ")),
    )
}

/// Returns rows about all three papers together.
fn levelhead(measured: &Measured) -> Vec<Comparison> {
    let none = "nothing";
    let (most, of_levelhead) = over_by_workload(measured, ("levelhead", "ideal"), P9999);
    let (mean, means) = over_by_workload(measured, ("levelhead", "o-vigil"), MEAN);
    let (tail, tails) = over_by_workload(measured, ("levelhead", "o-vigil"), P999);
    let (of_vigils, scans) = (&measured.scans[1], &measured.scans[2]);
    let written = ["base", "o-vigil", "levelhead"].map(|configuration| {
        format!("{configuration} {:.1}", measured.cell("a", configuration).written)
    });
    let costs = ["base", "o-vigil", "levelhead"].map(|configuration| {
        let cell = measured.cell("a", configuration);
        format!(
            "{configuration} has {} of index and caches in memory, and reads {:.1} blocks of 4 KiB for an operation",
            bytes_text(cell.index_bytes),
            cell.blocks_per_operation,
        )
    });
    vec![
        row(
            "levelhead-p9999",
            "p99.99 of gets, levelhead over ideal, the workload with the most",
            "nothing; at most 1.5x is our aim",
            times(most),
            Verdict::NotApplicable,
            of_levelhead,
        ),
        row(
            "levelhead-mean",
            "mean and p99.9 of gets, levelhead over O-Vigil, the workload with the most",
            "nothing; below 1 is our aim",
            format!("{}; {}", times(mean), times(tail)),
            Verdict::NotApplicable,
            format!("Mean. {means} p99.9. {tails}"),
        ),
        row(
            "levelhead-scans",
            "p99.9 of range queries, levelhead against O-Vigil",
            none,
            format!("{} and {}", micros(scans.scan.p999_us), micros(of_vigils.scan.p999_us)),
            Verdict::NotApplicable,
            format!(
                "YCSB-E; means {} and {}. Its values are apart and read up to 32 ahead, O-Vigil's stand side by side.",
                micros(scans.scan.mean_us),
                micros(of_vigils.scan.mean_us)
            ),
        ),
        row(
            "levelhead-costs",
            "bytes written for each of pairs, YCSB-A",
            none,
            written.join(", "),
            Verdict::NotApplicable,
            format!("{}, those of background tasks too.", costs.join("; ")),
        ),
    ]
}

/// Returns all rows of this module.
pub(super) fn beyond(measured: &Measured) -> Vec<Comparison> {
    let parity = |name: &str, with: usize, configuration| {
        let (without, with) = (measured.cell("a", configuration), &measured.with_parity[with]);
        row(
            name,
            &format!("p99.9 of gets with md's RAID-5, over RAID-0, {configuration}, YCSB-A"),
            "md's level is not given",
            change(P999(without), P999(with)),
            Verdict::NotApplicable,
            format!("{} and {}.", micros(P999(with)), micros(P999(without))),
        )
    };
    let pair = |cells: &[Cell]| {
        let (base, vigil) = (&cells[0].get, &cells[1].get);
        format!(
            "{} ({} and {})",
            times(base.p999_us / vigil.p999_us),
            micros(base.p999_us),
            micros(vigil.p999_us)
        )
    };
    let none = "nothing";
    let verdict = Verdict::NotApplicable;
    let mut rows = vec![
        parity("vigil-base-parity", 0, "base"),
        parity("vigil-silk-parity", 1, "silk"),
        row(
            "vigil-closed",
            "the same in closed loops of 16 clients, YCSB-A",
            none,
            pair(&measured.closed),
            verdict,
            "p99.9 of gets, Base over O-Vigil.",
        ),
        row(
            "vigil-unfiltered",
            "the same without filters, YCSB-A",
            none,
            pair(&measured.unfiltered),
            verdict,
            "A get reads a block of every table it comes by, so its tail is the number of tables in L0.",
        ),
    ];
    rows.push(fresh(measured));
    rows.push(usual(measured));
    rows.extend(bounds(measured));
    rows.extend(levelhead(measured));
    rows
}
