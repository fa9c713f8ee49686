//! Tails of reads beside writes: reads at one rate for all, writes at several, in an open loop.
//!
//! At each rate of writes one store after the other is read and written for as long as ten memtables take to fill, so that what each
//! does in the background falls into its measurement. A read counts from the moment it was due.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::bail;
use clap::Args;
use serde::Serialize;

use crate::parent::{self, Running, Stores};
use crate::report;
use crate::task::{Outcome, Run, Task, Writer};

/// Those of the picture. The others are variants.
const USUAL: &[&str] = &[
    "bound",
    "levelhead",
    #[cfg(feature = "rocksdb")]
    "rocksdb",
    #[cfg(feature = "rocksdb")]
    "rocksdb-limited",
    #[cfg(feature = "fjall")]
    "fjall",
    #[cfg(feature = "redb")]
    "redb",
];
/// Memtables that writes fill at each point.
const MEMTABLES: f64 = 10.0;
/// Reads of a point at least: a p99.9 is the tenth longest of them.
const LEAST_READS: f64 = 10_000.0;
/// Reads under way at a time, so that one that is late does not hold the next one's start.
const READERS: usize = 4;
/// A writer that does less than this share of what is offered has fallen behind.
const KEEPS_UP: f64 = 0.98;

#[derive(Args)]
pub struct TailsArguments {
    #[command(flatten)]
    stores: Stores,
    /// Offered writes a second, with commas between them, the lowest first
    #[arg(long, value_delimiter = ',', default_value = "2000,5000,10000,20000")]
    rates: Vec<f64>,
    /// Offered reads a second, the same for all
    #[arg(long, default_value_t = 1000.0)]
    reads: f64,
    /// Rounds; what is shown is the median of each figure, so that a drive that stalled once is not taken for a store that did
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// File for the points of all rounds as CSV
    #[arg(long)]
    csv: Option<PathBuf>,
    /// File for the picture
    #[arg(long)]
    svg: Option<PathBuf>,
}

/// What came of one store at one rate of writes.
#[derive(Clone, Debug, Serialize)]
struct Point {
    round: usize,
    peer: String,
    offered_writes: f64,
    writes: f64,
    offered_reads: f64,
    reads: f64,
    read_count: u64,
    p50_us: f64,
    p99_us: f64,
    p999_us: f64,
    max_us: f64,
    written_bytes: u64,
    seconds: f64,
}

impl Point {
    fn of(
        round: usize,
        peer: &str,
        offered_writes: f64,
        offered_reads: f64,
        outcome: &Outcome,
    ) -> Self {
        Self {
            round,
            peer: peer.to_owned(),
            offered_writes,
            writes: outcome.writer_rate.unwrap_or(0.0),
            offered_reads,
            reads: outcome.rate(),
            read_count: outcome.operations,
            p50_us: outcome.latency.p50,
            p99_us: outcome.latency.p99,
            p999_us: outcome.latency.p999,
            max_us: outcome.latency.max,
            written_bytes: outcome.written_bytes,
            seconds: outcome.seconds,
        }
    }

    /// Whether both loops did what was offered; the bound has no writes to do.
    fn keeps_up(&self) -> bool {
        let writes = self.peer == "bound" || self.writes >= KEEPS_UP * self.offered_writes;
        writes && self.reads >= KEEPS_UP * self.offered_reads
    }
}

/// Seconds that a point takes: ten memtables of writes, and enough reads.
fn seconds(memtable_bytes: u64, pair_bytes: u64, writes: f64, reads: f64) -> f64 {
    let memtables = MEMTABLES * memtable_bytes as f64 / (writes * pair_bytes as f64);
    memtables.max(LEAST_READS / reads)
}

/// Measures the points, and writes what there is after each of them.
pub fn run(arguments: &TailsArguments) -> anyhow::Result<()> {
    let stores = &arguments.stores;
    let Some(memtable_bytes) = stores.memtable_bytes() else {
        bail!(
            "--memtable-mib is needed: each point lasts for ten memtables, of the same size for all"
        );
    };
    let names = stores.names(USUAL)?;
    let pair_bytes = stores.value_bytes + 32;
    let lasts = |rate: &f64| seconds(memtable_bytes, pair_bytes, *rate, arguments.reads);
    let all: f64 =
        arguments.rates.iter().map(lasts).sum::<f64>() * (names.len() * arguments.rounds) as f64;
    eprintln!(
        "{} stores at {} rates: {:.0} s besides loads",
        names.len(),
        arguments.rates.len(),
        all
    );
    let (mut running, conditions) = stores.start(&names)?;
    parent::load(&mut running)?;
    let (begun, mut done, mut points) = (Instant::now(), 0.0, Vec::new());
    for round in 1..=arguments.rounds {
        for rate in &arguments.rates {
            let mut failed = Vec::new();
            for peer in &mut running {
                match measure(peer, arguments, round, *rate, lasts(rate)) {
                    Ok(point) => points.push(point),
                    // Killed for want of memory, say: what the others do is still of use.
                    Err(error) => {
                        eprintln!("{error:#}; {} is left out from here on", peer.name);
                        failed.push(peer.name.clone());
                        continue;
                    }
                }
                done += lasts(rate);
                let left = begun.elapsed().as_secs_f64() / done * (all - done);
                let point = points.last().expect("it was added");
                eprintln!(
                    "{}, {rate} writes/s: p99.9 {:.0} us; {left:.0} s left",
                    point.peer, point.p999_us
                );
                save(arguments, &conditions, &names, &points)?;
            }
            running.retain(|peer| !failed.contains(&peer.name));
        }
    }
    println!("{conditions}\n\n{}", table(&medians(&points)));
    Ok(())
}

fn measure(
    peer: &mut Running,
    TailsArguments { stores, reads, .. }: &TailsArguments,
    round: usize,
    rate: f64,
    seconds: f64,
) -> anyhow::Result<Point> {
    let run = Run {
        workload: "c".to_owned(),
        distribution: "uniform".to_owned(),
        threads: READERS,
        seconds,
        reads: Some(*reads),
        writer: (peer.name != "bound").then_some(Writer::Paced(rate)),
    };
    let outcome = peer.work(&Task::Run(run), stores.warm)?;
    if let Some(error) = &outcome.error {
        bail!("{}: {error}", peer.name);
    }
    if outcome.mismatches > 0 {
        bail!("{}: {} answers were wrong data", peer.name, outcome.mismatches);
    }
    Ok(Point::of(round, &peer.name, rate, *reads, &outcome))
}

fn save(
    TailsArguments { stores, reads, csv, svg, .. }: &TailsArguments,
    conditions: &str,
    names: &[String],
    points: &[Point],
) -> anyhow::Result<()> {
    if let Some(file) = csv {
        std::fs::write(file, as_csv(points))?;
    }
    if let Some(file) = &stores.json {
        let json = serde_json::json!({ "conditions": conditions, "points": points });
        std::fs::write(file, format!("{}\n", serde_json::to_string_pretty(&json)?))?;
    }
    if let Some(file) = svg {
        std::fs::write(file, picture(names, &medians(points), *reads))?;
    }
    Ok(())
}

/// Of each store and rate of writes the median of each figure, in the order of the first round.
fn medians(points: &[Point]) -> Vec<Point> {
    let firsts = points.iter().filter(|point| point.round == 1);
    firsts
        .map(|first| {
            let is_same = |point: &&Point| {
                point.peer == first.peer && point.offered_writes == first.offered_writes
            };
            let rounds: Vec<&Point> = points.iter().filter(is_same).collect();
            let of = |figure: fn(&Point) -> f64| {
                report::median(rounds.iter().map(|point| figure(point)).collect())
            };
            Point {
                writes: of(|point| point.writes),
                reads: of(|point| point.reads),
                p50_us: of(|point| point.p50_us),
                p99_us: of(|point| point.p99_us),
                p999_us: of(|point| point.p999_us),
                max_us: of(|point| point.max_us),
                ..first.clone()
            }
        })
        .collect()
}

/// A line for each store, up to the first rate that it does not keep up with.
fn picture(names: &[String], points: &[Point], reads: f64) -> String {
    let lines = names.iter().map(|name| {
        let of_peer = points.iter().filter(|point| point.peer == *name);
        let kept_up = of_peer.take_while(|point| point.keeps_up());
        (name.clone(), kept_up.map(|point| (point.offered_writes, point.p999_us)).collect())
    });
    lab::picture::lines_svg(
        &format!("Reads beside writes, on files: p99.9 of {reads} reads a second"),
        "offered writes a second",
        "p99.9 of reads, microseconds",
        lines.filter(|(_, points): &(_, Vec<_>)| !points.is_empty()).collect(),
    )
}

fn as_csv(points: &[Point]) -> String {
    let head = "round,peer,offered_writes,writes,offered_reads,reads,read_count,p50_us,p99_us,p999_us,max_us,written_bytes,seconds,keeps_up\n";
    points.iter().fold(head.to_owned(), |mut text, point| {
        let Point { round, peer, offered_writes, writes, offered_reads, reads, read_count, .. } =
            point;
        let Point { p50_us, p99_us, p999_us, max_us, written_bytes, seconds, .. } = point;
        writeln!(
            text,
            "{round},{peer},{offered_writes},{writes:.0},{offered_reads},{reads:.0},{read_count},{p50_us:.1},{p99_us:.1},{p999_us:.1},\
             {max_us:.0},{written_bytes},{seconds:.1},{}",
            point.keeps_up()
        )
        .expect("a string takes any text");
        text
    })
}

fn table(points: &[Point]) -> String {
    let head = "| store | offered writes/s | writes/s | reads/s | p50 us | p99 us | p99.9 us | longest us | |\n|---|---|---|---|---|---|---|---|---|\n";
    points.iter().fold(head.to_owned(), |mut text, point| {
        let Point { peer, offered_writes, writes, reads, p50_us, p99_us, p999_us, max_us, .. } =
            point;
        let behind = if point.keeps_up() { "" } else { "falls behind" };
        writeln!(
            text,
            "| {peer} | {offered_writes} | {writes:.0} | {reads:.0} | {p50_us:.0} | {p99_us:.0} | {p999_us:.0} | {max_us:.0} | {behind} |"
        )
        .expect("a string takes any text");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_lasts_for_ten_memtables_and_ten_thousand_reads() {
        assert!((seconds(16 << 20, 1056, 2000.0, 1000.0) - 79.4).abs() < 0.1);
        assert!((seconds(16 << 20, 1056, 40_000.0, 1000.0) - 10.0).abs() < 1e-9);
    }
}
