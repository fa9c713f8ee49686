//! Published claims beside the measured values.

use report::{Comparison, Verdict};

use super::ratios::{
    COMPACTION_READS, COMPACTION_WRITES, one_ratio, per_user_byte, ratio, with_search_aids,
};
use crate::pink::measured::Measured;
use crate::pink::memory;
use crate::pink::size::READS;
use crate::pink::system::{Cell, System};
use crate::words::{beside, change, row};

pub(super) fn comparisons(measured: &Measured) -> Vec<Comparison> {
    let mut rows = headline_rows(measured);
    rows.extend(direction_rows(measured));
    rows.push(beside_tree(measured));
    rows.push(whole_levels(measured));
    rows.extend(super::beyond::rows(measured));
    rows.extend(super::motivation::rows(&measured.motivation));
    rows.extend(memory::rows());
    rows
}

fn headline_rows(measured: &Measured) -> Vec<Comparison> {
    let headline = |name: &str, what: &str, published: f64, text: &str, of: fn(&Cell) -> f64| {
        let ours = ratio(measured, "pink", "hash", of);
        let by_workload = READS.map(|workload| {
            let one = one_ratio(measured, "pink", "hash", workload, of);
            format!("{} {}", workload.to_uppercase(), change(1.0, one))
        });
        row(
            &format!("pink-{name}-hash"),
            what,
            &format!("{text} (abstract)"),
            beside(published, ours, change(1.0, ours)),
            Verdict::of_gain(published, ours),
            format!(
                "By workload: {}. {}",
                by_workload.join(", "),
                causes(measured, ("hash", "hash"))
            ),
        )
    };
    let (p99, mean) = ("p99 of gets, PinK against hash", "mean of gets, PinK against hash");
    let throughput = "throughput, PinK against hash";
    vec![
        headline("p99", p99, 0.27, "-73 %", |cell| cell.get.p99_us),
        headline("mean", mean, 0.58, "-42 %", |cell| cell.get.mean_us),
        headline("throughput", throughput, 1.37, "+37 %", |cell| cell.operations_per_second),
    ]
}

/// Returns the mean flash reads of a get of a system, and the percentage of its reads that found
/// their die occupied by a program or an erase. Both are means over the read workloads.
fn usual(measured: &Measured, design: &str) -> (f64, f64) {
    let cells = READS.map(|workload| measured.system(design).ran(workload));
    let mean =
        |of: fn(&Cell) -> f64| cells.iter().map(|cell| of(cell)).sum::<f64>() / READS.len() as f64;
    (mean(|cell| cell.mean_reads), mean(|cell| cell.behind_writes) * 100.0)
}

/// Returns a sentence about the causes of the read latencies of `PinK` and another system.
fn causes(measured: &Measured, other: (&str, &str)) -> String {
    let (design, name) = other;
    let (of_other, pink) = (usual(measured, design), usual(measured, "pink"));
    format!(
        "A get takes {:.2} flash reads on average with {name} (most {}) and {:.2} with PinK (most {}); \
         {:.0} % and {:.0} % of the reads found their die programming or erasing.",
        of_other.0,
        measured.system(design).most_reads(),
        pink.0,
        measured.system("pink").most_reads(),
        of_other.1,
        pink.1
    )
}

fn direction_rows(measured: &Measured) -> Vec<Comparison> {
    let mut rows = vec![worst_case(measured), compaction(measured)];
    rows.extend(read_directions(measured));
    rows.push(aids_row(measured));
    rows.push(accelerator(measured));
    rows
}

fn worst_case(measured: &Measured) -> Comparison {
    let most = |design| measured.system(design).most_reads() as f64;
    let (pink, lsm, hash) = (most("pink"), most("lightstore"), most("hash"));
    row(
        "pink-worst-case",
        "most flash reads of a get",
        "PinK 2, LSM-tree 5, hash unbounded (slides)",
        format!("PinK {pink}, LSM-tree {lsm}, hash {hash}"),
        Verdict::of_all([
            Verdict::of_bound(2.0, pink),
            Verdict::of_bound(5.0, lsm),
            Verdict::of_less(pink / lsm),
            Verdict::of_less(pink / hash),
        ]),
        "PinK's bound is asserted on every get. That of the LSM-tree is 5; how many a run meets \
         depends on how many filters fail at once.",
    )
}

fn compaction(measured: &Measured) -> Comparison {
    let writes = |design| per_user_byte(measured.system(design), COMPACTION_WRITES);
    let reads = |design| per_user_byte(measured.system(design), COMPACTION_READS);
    let (pink, lsm) = (writes("pink"), writes("lightstore"));
    row(
        "pink-compaction",
        "compaction of PinK against that of the LSM-tree, Load and A",
        "less: pinned levels cost none (slides; no value)",
        format!(
            "writes {}, reads {}",
            change(lsm, pink),
            change(reads("lightstore"), reads("pink"))
        ),
        Verdict::of_less(pink / lsm),
        format!(
            "{pink:.2} bytes written by compaction for each byte of users, against {lsm:.2}. The \
             formulas of the released code give half to two thirds less."
        ),
    )
}

fn read_directions(measured: &Measured) -> Vec<Comparison> {
    vec![
        direction(measured, "p99", false, |cell| cell.get.p99_us),
        direction(measured, "mean", false, |cell| cell.get.mean_us),
        direction(measured, "throughput", true, |cell| cell.operations_per_second),
    ]
}

/// Returns a row about the number of workloads in which `PinK` is better than hash, with
/// measurements of the other workloads. `of` returns the compared value of a cell.
fn direction(
    measured: &Measured,
    name: &str,
    more_is_better: bool,
    of: fn(&Cell) -> f64,
) -> Comparison {
    let beats = |[hash, pink]: &[&Cell; 2]| {
        let ratio = of(pink) / of(hash);
        if more_is_better { Verdict::of_more(ratio) } else { Verdict::of_less(ratio) }
    };
    let told = READS.map(|workload| {
        let found = cells_of_both(measured, workload);
        (Verdict::of_all(found.iter().map(beats)), workload, found)
    });
    let others: Vec<_> = told.iter().filter(|(verdict, ..)| *verdict != Verdict::Holds).collect();
    let why: Vec<String> =
        others.iter().map(|(_, workload, found)| why_not_ahead(workload, found, of)).collect();
    row(
        &format!("pink-direction-{name}"),
        &format!("PinK beats hash on {name} in every read workload"),
        "it does (slides)",
        format!("in {} of {}", READS.len() - others.len(), READS.len()),
        Verdict::of_all(told.iter().map(|(verdict, ..)| *verdict)),
        if why.is_empty() { "In all of them.".to_owned() } else { why.join("; ") },
    )
}

/// Returns the cells of hash and `PinK` under a workload: after the workloads before it, and on a
/// fresh drive if that was run. A difference between the two is an effect of the earlier workloads,
/// which leave full memtables and garbage.
fn cells_of_both<'a>(measured: &'a Measured, workload: &str) -> Vec<[&'a Cell; 2]> {
    let behind = ["hash", "pink"].map(|design| measured.system(design).ran(workload));
    let [hash, pink] = &measured.costly[0];
    let fresh = hash.cell(workload).zip(pink.cell(workload)).map(|(hash, pink)| [hash, pink]);
    std::iter::once(behind).chain(fresh).collect()
}

fn why_not_ahead(workload: &str, found: &[[&Cell; 2]], of: fn(&Cell) -> f64) -> String {
    let [hash, pink] = found[0];
    let fresh = found
        .get(1)
        .map(|[hash, pink]| format!(" ({} on a fresh drive)", change(of(hash), of(pink))));
    format!(
        "{}: {}{}, with {:.2} flash reads a get against {:.2}, {:.0} % and {:.0} % of them behind a program or erase",
        workload.to_uppercase(),
        change(of(hash), of(pink)),
        fresh.unwrap_or_default(),
        pink.mean_reads,
        hash.mean_reads,
        pink.behind_writes * 100.0,
        hash.behind_writes * 100.0
    )
}

fn aids_row(measured: &Measured) -> Comparison {
    let of = |system: &System| {
        let gets = system.ran("c").operations_per_second;
        (system.load().operations_per_second, gets)
    };
    let (with, without) = (of(with_search_aids(measured)), of(&measured.plain));
    row(
        "pink-search-aids",
        "prefixes and range pointers",
        "faster Load and C (slide 30; no value)",
        format!("Load {}, C {}", change(without.0, with.0), change(without.1, with.1)),
        Verdict::of_all([with.0 / without.0, with.1 / without.1].map(Verdict::of_more)),
        "They save comparisons of whole keys, which the firmware's four cores do beside the reads \
         of 64 requests: with the times that are assumed for the firmware, flash is the bottleneck and \
         little of it shows. What firmware takes is not published: see the row where it takes ten times as long.",
    )
}

/// Returns a row that compares `PinK` with the LSM-tree with filters, whose gets also read little
/// more than one page.
fn beside_tree(measured: &Measured) -> Comparison {
    let p99: fn(&Cell) -> f64 = |cell| cell.get.p99_us;
    let rate: fn(&Cell) -> f64 = |cell| cell.operations_per_second;
    let by_workload = READS.map(|workload| {
        let of = |of| change(1.0, one_ratio(measured, "pink", "lightstore", workload, of));
        format!("{} {} and {}", workload.to_uppercase(), of(p99), of(rate))
    });
    let ours = ratio(measured, "pink", "lightstore", p99);
    let shorter = READS.map(|workload| one_ratio(measured, "pink", "lightstore", workload, p99));
    row(
        "pink-lsm",
        "p99 of gets, PinK against the LSM-tree, 64 outstanding",
        "shorter: no get takes more than two flash reads (slides; no value)",
        format!(
            "{}; throughput {}",
            change(1.0, ours),
            change(1.0, ratio(measured, "pink", "lightstore", rate))
        ),
        Verdict::of_all(shorter.map(Verdict::of_less)),
        format!(
            "p99 and throughput by workload: {}. {} In a closed loop the faster system also has more writes in the way of \
             its gets; at equal rates see below.",
            by_workload.join(", "),
            causes(measured, ("lightstore", "the LSM-tree")),
        ),
    )
}

/// Returns a row about compactions of whole levels, as in the published code. Slices are our choice
/// (docs/decisions/0005).
fn whole_levels(measured: &Measured) -> Comparison {
    let (slices, whole) = (with_search_aids(measured), &measured.whole);
    let (of_slices, of_whole) = (slices.ran("a"), whole.ran("a"));
    row(
        "pink-whole-levels",
        "whole levels merged at a time, as in the published code, against slices: p99 of gets in A",
        "nothing",
        change(of_slices.get.p99_us, of_whole.get.p99_us),
        Verdict::NotApplicable,
        format!(
            "Load {}, operations of A {}. Puts of A: p99.9 {:.0} us and {:.0} us, the longest {:.1} ms and \
             {:.1} ms. Compaction wrote {:.2} and {:.2} bytes for each byte of users.",
            change(slices.load().operations_per_second, whole.load().operations_per_second),
            change(of_slices.operations_per_second, of_whole.operations_per_second),
            of_whole.put.p999_us,
            of_slices.put.p999_us,
            of_whole.put.max_us / 1e3,
            of_slices.put.max_us / 1e3,
            per_user_byte(whole, COMPACTION_WRITES),
            per_user_byte(slices, COMPACTION_WRITES),
        ),
    )
}

fn accelerator(measured: &Measured) -> Comparison {
    let (software, hardware) = (measured.system("pink"), measured.system("pink-hw"));
    let load = |system: &System| system.load().operations_per_second;
    let read = |system| per_user_byte(system, COMPACTION_READS);
    row(
        "pink-hw",
        "merge accelerator against software, Load",
        "faster merges, at the price of more flash I/O (slides; no value)",
        change(load(software), load(hardware)),
        Verdict::of_more(load(hardware) / load(software)),
        format!(
            "The verdict is on the gain. The price is paid: the accelerator reads both inputs from flash and pinned segments \
             are written first, {:.2} bytes read for each byte of users in place of {:.2}.",
            read(hardware),
            read(software)
        ),
    )
}
