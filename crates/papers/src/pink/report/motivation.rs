//! KV drives compared with a block drive, and with a host's store on a block drive.

use report::{Axis, BarSeries, Comparison, Figure, FigureKind, Series, Unit, Verdict};
use workload::LatencySummary;

use crate::pink::motivation::{Motivation, READS_OF_KEYS};
use crate::pink::system::System;
use crate::words::{change, row};

type Value = fn(&LatencySummary) -> f64;

/// Statistics of a distribution, with their names.
const POINTS: [(&str, Value); 4] = [
    ("mean", |latency| latency.mean_us),
    ("p99", |latency| latency.p99_us),
    ("p99.9", |latency| latency.p999_us),
    ("p99.99", |latency| latency.p9999_us),
];

fn all(motivation: &Motivation) -> impl Iterator<Item = &System> {
    motivation.drives.iter().chain([&motivation.host, &motivation.block])
}

pub(super) fn figures(motivation: &Motivation) -> [Figure; 3] {
    let line = |system: &System| {
        let histogram = system.cell(READS_OF_KEYS)?.gets.histogram()?;
        Some(Series::latency_cdf(system.name.clone(), &histogram))
    };
    let reads = Figure::new(
        "pink-motivation-reads",
        "Reads of random keys, and of a block drive's blocks",
        "64 at a time; the block drive has the flash, the cores and the link of the KV drives. \
                  Corresponds to the slides on the hash-based KV-SSD.",
        FigureKind::Cdf {
            x: Axis::log("latency of reads", Unit::Microseconds),
            of: "reads".to_owned(),
            tail: true,
            series: all(motivation).filter_map(line).collect(),
        },
    );
    let bars = |system: &System| {
        let get = system.ran(READS_OF_KEYS).get;
        BarSeries::new(system.name.clone(), POINTS.map(|(_, value)| value(&get)))
    };
    let tails = Figure::new(
        "pink-motivation-tails",
        "Reads of random keys, and of a block drive's blocks: tails",
        "64 at a time.",
        FigureKind::Bars {
            over: "point".to_owned(),
            categories: POINTS.map(|(name, _)| name.to_owned()).to_vec(),
            y: Axis::log("latency of reads", Unit::Microseconds),
            series: all(motivation).map(bars).collect(),
        },
    );
    [reads, tails, throughput(motivation)]
}

fn throughput(motivation: &Motivation) -> Figure {
    let stores = || motivation.drives.iter().chain([&motivation.host]);
    let bars = |system: &System| {
        let cells = [system.load(), system.ran("c")];
        BarSeries::new(system.name.clone(), cells.map(|cell| cell.operations_per_second))
    };
    Figure::new(
        "pink-motivation-throughput",
        "Load and YCSB-C, in the drive and on a host",
        "Corresponds to the slide on the LSM-tree-based KV-SSD.",
        FigureKind::Bars {
            over: "workload".to_owned(),
            categories: vec!["Load".to_owned(), "YCSB-C".to_owned()],
            y: Axis::linear("throughput", Unit::OperationsPerSecond),
            series: stores().map(bars).collect(),
        },
    )
}

pub(super) fn rows(motivation: &Motivation) -> Vec<Comparison> {
    let [hash, lsm, pink] = &motivation.drives[..] else { unreachable!("there are three") };
    let reads = |system: &System| system.ran(READS_OF_KEYS).get;
    let block = reads(&motivation.block);
    let over = |system: &System| {
        let get = reads(system);
        let [p99, p999] = [get.p99_us / block.p99_us, get.p999_us / block.p999_us];
        format!("{} {p99:.2}x and {p999:.2}x", system.name)
    };
    let (of_hash, of_pink) = (reads(hash), reads(pink));
    // A block takes one flash read, and a pair takes more. So a tail that is caused by hash is also
    // longer than the tail of another index.
    let is_longer = [block, of_pink].into_iter().flat_map(|than| {
        [of_hash.p99_us / than.p99_us, of_hash.p999_us / than.p999_us].map(Verdict::of_more)
    });
    let load = |system: &System| system.load().operations_per_second;
    let gets_of_c = |system: &System| system.ran("c").operations_per_second;
    let p99_of_c = |system: &System| system.ran("c").get.p99_us;
    vec![
        row(
            "pink-motivation-hash",
            "p99 and p99.9 of reads of a hash-indexed drive over those of a block drive",
            "longer (slide; no value, two products of one maker)",
            over(hash),
            Verdict::of_all(is_longer),
            format!(
                "64 reads at a time, keys and blocks uniform. The block drive has p99 {:.0} us and p99.9 {:.0} us. Besides: {}, {}, \
                 {}. A get of hash takes {:.2} flash reads on average, {} at most, and a block one. So any drive of pairs is slower here; \
                 of a tail that is hash's own it would have to be longer than PinK's too.",
                block.p99_us,
                block.p999_us,
                over(lsm),
                over(pink),
                over(&motivation.host),
                hash.ran(READS_OF_KEYS).mean_reads,
                hash.ran(READS_OF_KEYS).most_reads,
            ),
        ),
        row(
            "pink-motivation-lsm",
            "an LSM-tree in the drive against a host's on a block drive: Load and C",
            "filters and compaction cost the drive much (slide; no value)",
            format!(
                "Load {}, C {}",
                change(load(&motivation.host), load(lsm)),
                change(gets_of_c(&motivation.host), gets_of_c(lsm))
            ),
            Verdict::of_all(
                [load(lsm) / load(&motivation.host), gets_of_c(lsm) / gets_of_c(&motivation.host)]
                    .map(Verdict::of_less),
            ),
            format!(
                "Load: {:.0} puts/s in the drive, {:.0} with PinK, {:.0} on the host. p99 of C's gets: {:.0} us, {:.0} us and \
                 {:.0} us. The host's values move with their keys in compactions, and its processor and memory are a host's.",
                load(lsm),
                load(pink),
                load(&motivation.host),
                p99_of_c(lsm),
                p99_of_c(pink),
                p99_of_c(&motivation.host)
            ),
        ),
    ]
}
