//! Published claims beside the measured values.

use report::{Comparison, Verdict};

use super::ratio::ratio;
use super::{beyond, costs, motivation};
use crate::vigil::cell::{Cell, Met};
use crate::vigil::measured::Measured;
use crate::vigil::size::{Size, WORKLOADS};
use crate::words::{beside, change, micros, row, times};

const P999: fn(&Cell) -> f64 = |cell| cell.get.p999_us;
const MEAN: fn(&Cell) -> f64 = |cell| cell.get.mean_us;

pub(super) fn comparisons(measured: &Measured, size: &Size) -> Vec<Comparison> {
    let mut rows = headline(measured);
    rows.extend(steps(measured));
    rows.extend(tails(measured));
    rows.extend(motivation::motivation(measured));
    rows.extend(costs::costs(measured, size));
    rows.extend(table_2(measured));
    rows.extend(beyond::beyond(measured));
    rows
}

/// Returns a sentence with the change from one configuration to another, for each workload.
fn by_workload(measured: &Measured, from: &str, to: &str, of: fn(&Cell) -> f64) -> String {
    let changes = WORKLOADS.map(|(workload, title)| {
        let value = |configuration| of(measured.cell(workload, configuration));
        format!("{title} {}", change(value(from), value(to)))
    });
    format!("By workload: {}.", changes.join(", "))
}

/// Returns the shares of flash reads that found their die occupied, as text.
fn met(name: &str, cell: &Cell) -> String {
    let Met { read, program, erase } = cell.met;
    let part =
        |(share, us): (f64, f64), what: &str| format!("{:.1} % {what} ({us:.0} us)", 100.0 * share);
    format!(
        "of the flash reads with {name} {}, {} and {}",
        part(read, "met another read"),
        part(program, "a program"),
        part(erase, "an erase")
    )
}

fn headline(measured: &Measured) -> Vec<Comparison> {
    let ours = ratio(measured, "base", "o-vigil", P999);
    let longest = WORKLOADS.map(|(workload, _)| P999(measured.cell(workload, "o-vigil")));
    let longest = longest.into_iter().fold(0.0, f64::max);
    let mean = ratio(measured, "o-vigil", "base", MEAN);
    vec![
        row(
            "vigil-p999",
            "p99.9 of gets, O-Vigil against Base",
            "3.19x shorter (abstract, figure 11)",
            beside(3.19, ours, times(ours)),
            Verdict::of_gain(3.19, ours),
            by_workload(measured, "base", "o-vigil", P999),
        ),
        row(
            "vigil-500us",
            "longest p99.9 of gets with O-Vigil",
            "less than 500 us (section 7.2)",
            micros(longest),
            Verdict::of_bound(500.0, longest),
            "The longest of all workloads.",
        ),
        row(
            "vigil-mean",
            "mean of gets, O-Vigil against Base",
            "-34 % (figure 14)",
            beside(0.66, mean, change(1.0, mean)),
            Verdict::of_gain(0.66, mean),
            format!(
                "{} Most gets meet nothing in either, and their mean is a read of the flash or a hit; a read of the busy set \
                 takes two. In YCSB-A: {}. The paper's Base must have far more in the way of its usual get than that.",
                by_workload(measured, "base", "o-vigil", MEAN),
                met("Base", measured.cell("a", "base"))
            ),
        ),
    ]
}

fn steps(measured: &Measured) -> Vec<Comparison> {
    let step = |id: &str,
                (from, from_name): (&str, &str),
                (to, to_name): (&str, &str),
                text: &str,
                published,
                why: &str| {
        let ours = ratio(measured, to, from, P999);
        row(
            id,
            &format!("p99.9 of gets, {to_name} against {from_name}"),
            &format!("{text} (section 7.2)"),
            beside(published, ours, change(1.0, ours)),
            Verdict::of_gain(published, ours),
            format!(
                "{why} {} In YCSB-A: {}; {}.",
                by_workload(measured, from, to, P999),
                met(from_name, measured.cell("a", from)),
                met(to_name, measured.cell("a", to))
            ),
        )
    };
    let (base, silk, plm) = (("base", "Base"), ("silk", "SILK"), ("plm", "PLM"));
    let (isolated, r, o) = (("i-plm", "I-PLM"), ("r-vigil", "R-Vigil"), ("o-vigil", "O-Vigil"));
    let apart = step(
        "vigil-i-plm",
        plm,
        isolated,
        "-12 %, UserDB -24.4 %",
        0.88,
        "The log is a tenth of what is written in YCSB-A, and flushes and compactions break windows without it; they \
             have three sets now instead of four.",
    );
    vec![
        step(
            "vigil-silk",
            base,
            silk,
            "-5 %",
            0.95,
            "SILK orders background work; where it runs, reads still meet it.",
        ),
        step(
            "vigil-plm",
            silk,
            plm,
            "+5.4 %",
            1.054,
            "Any write ends the window, so there hardly is one.",
        ),
        and_userdb(measured, apart),
        step(
            "vigil-r-vigil",
            isolated,
            r,
            "-48.2 %",
            0.518,
            "Reads keep off the set that is written.",
        ),
        step(
            "vigil-o-vigil",
            r,
            o,
            "-33.5 %",
            0.665,
            "Slots by need gain where work does not fit constant ones; ours fit.",
        ),
    ]
}

/// Adds the claim about `UserDB` alone to the row that compares I-PLM with PLM.
fn and_userdb(measured: &Measured, row: Comparison) -> Comparison {
    let userdb = |configuration| P999(measured.cell("userdb", configuration));
    let of_userdb = Verdict::of_gain(0.756, userdb("i-plm") / userdb("plm"));
    Comparison { holds: Verdict::of_all([row.holds, of_userdb]), ..row }
}

fn tails(measured: &Measured) -> Vec<Comparison> {
    let tail = |id: &str,
                workload: &str,
                title: &str,
                text: &str,
                published: f64,
                of: fn(&Cell) -> f64| {
        let value = |configuration| of(measured.cell(workload, configuration));
        let (base, vigil) = (value("base"), value("o-vigil"));
        row(
            id,
            title,
            &format!("{text} (figure 13)"),
            beside(published, vigil / base, change(base, vigil)),
            Verdict::of_gain(published, vigil / base),
            format!("{} and {}.", micros(base), micros(vigil)),
        )
    };
    let p9999: fn(&Cell) -> f64 = |cell| cell.get.p9999_us;
    vec![
        tail("vigil-a-p9999", "a", "p99.99 of gets, YCSB-A", "-94 %", 0.06, p9999),
        tail("vigil-userdb-p9999", "userdb", "p99.99 of gets, UserDB", "-69 %", 0.31, p9999),
        tail("vigil-d-p9999", "d", "p99.99 of gets, YCSB-D", "-78 %", 0.22, p9999),
        tail("vigil-d-p999", "d", "p99.9 of gets, YCSB-D", "-11 %", 0.89, P999),
    ]
}

/// A workload of table 2: percentage of gets, percentage of hits of the block cache, and bytes of
/// compactions over bytes of flushes.
type Row = (&'static str, [f64; 3]);

const TABLE_2: [Row; 6] = [
    ("userdb", [54.0, 25.0, 8.8 / 2.4]),
    ("zippydb", [42.0, 86.0, 17.5 / 8.9]),
    ("a", [66.0, 17.0, 19.2 / 3.6]),
    ("b", [95.0, 23.0, 1.3 / 0.2]),
    ("d", [95.0, 83.0, 1.8 / 0.5]),
    ("f", [74.0, 45.0, 15.6 / 3.1]),
];

/// Returns rows about the shares of gets, the hits of the block cache, and compaction over flush,
/// of Base.
fn table_2(measured: &Measured) -> Vec<Comparison> {
    let one = |id: &str,
               what: &str,
               text: fn(f64) -> String,
               column: usize,
               of: fn(&Cell) -> f64,
               why: &str| {
        let each = TABLE_2.map(|(workload, published)| {
            let ours = of(measured.cell(workload, "base"));
            let title =
                WORKLOADS.iter().find(|(name, _)| *name == workload).map_or(workload, |of| of.1);
            (title, published[column], ours)
        });
        let listed = |of: fn(&(&str, f64, f64)) -> f64| {
            each.iter()
                .map(|one| format!("{} {}", one.0, text(of(one))))
                .collect::<Vec<_>>()
                .join(", ")
        };
        row(
            &format!("vigil-table2-{id}"),
            what,
            &format!("{} (table 2)", listed(|one| one.1)),
            listed(|one| one.2),
            Verdict::of_all(
                each.iter().map(|(_, published, ours)| Verdict::of_amount(*published, *ours)),
            ),
            why,
        )
    };
    let percent: fn(f64) -> String = |value| format!("{value:.0} %");
    let factor: fn(f64) -> String = |value| format!("{value:.1}");
    let sizes = "It depends on sizes that the paper does not give.";
    vec![
        one(
            "gets",
            "share of gets, Base",
            percent,
            0,
            |cell| 100.0 * cell.get_share(),
            "The mix is what the workload was made to have.",
        )
        .fitted(),
        one(
            "hits",
            "hits of the block cache, Base",
            percent,
            1,
            |cell| 100.0 * cell.cache_hits,
            sizes,
        ),
        one(
            "compaction",
            "bytes of compactions over those of flushes, Base",
            factor,
            2,
            |cell| cell.compacted_bytes as f64 / cell.flushed_bytes.max(1) as f64,
            sizes,
        ),
    ]
}
