//! `tails`: how long the longest reads take while ever more is written beside them.
//!
//! Reads are due at one rate, writes at that of the point, and a latency counts from when its operation was due: who is late is late
//! for all that wait. At each rate the peers work in turns; the bound takes its turn as well, and only reads.

use std::fmt::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::peers::TAILS;
use crate::picture::{Curve, Dot, Picture};
use crate::report::median;
use crate::stores::{Started, StoreArguments};
use crate::task::{Latency, Outcome, Tails, Task};

/// A point writes as much as fills so many memtables, so that their flushes and what follows from them are in it.
const MEMTABLES: f64 = 10.0;
const LEAST_SECONDS: f64 = 10.0;
/// Ten of them are beyond the percentile that is drawn.
const LEAST_READS: f64 = 10_000.0;
/// Who achieves less of what was offered is behind.
const KEPT_UP: f64 = 0.98;
const MEMTABLE_MIB: u64 = 16;
/// The peer that only reads here.
const BOUND: &str = "bound";

#[derive(Args)]
pub struct TailsArguments {
    #[command(flatten)]
    stores: StoreArguments,
    /// Writes offered a second, with commas between them
    #[arg(long, value_delimiter = ',', default_value = "2000,5000,10000,20000")]
    rates: Vec<f64>,
    /// Reads offered a second, beside whatever is written
    #[arg(long, default_value_t = 1000.0)]
    reads: f64,
    /// Rounds; the picture is of their medians
    #[arg(long, default_value_t = 1)]
    rounds: usize,
    /// File for a line of each point
    #[arg(long)]
    csv: Option<PathBuf>,
    /// File for the conditions and the points as JSON
    #[arg(long)]
    json: Option<PathBuf>,
    /// File for the picture
    #[arg(long)]
    svg: Option<PathBuf>,
}

#[derive(Args)]
pub struct DrawArguments {
    /// What `tails` wrote as --json
    json: PathBuf,
    /// File for the picture
    #[arg(long)]
    svg: PathBuf,
}

/// What a peer did at a rate.
#[derive(Serialize, Deserialize)]
struct Point {
    round: usize,
    peer: String,
    offered_writes: f64,
    achieved_writes: f64,
    offered_reads: f64,
    achieved_reads: f64,
    reads: u64,
    latency: Latency,
    /// Bytes that the process had drives write during the point, and behind it to settle.
    written_bytes: u64,
    settled_bytes: u64,
    /// Reads or writes were fewer than offered.
    is_behind: bool,
    mismatches: u64,
    error: Option<String>,
}

/// A peer whose process ended.
#[derive(Serialize, Deserialize)]
struct LeftOut {
    peer: String,
    /// From this point of this round on.
    offered_writes: f64,
    round: usize,
    why: String,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { peer, offered_writes, round, why } = self;
        write!(f, "{peer} is left out from {offered_writes} writes/s of round {round} on: {why}")
    }
}

/// All that was measured.
#[derive(Default, Serialize, Deserialize)]
struct Found {
    conditions: String,
    points: Vec<Point>,
    left_out: Vec<LeftOut>,
}

impl Point {
    fn of(round: usize, peer: &str, asked: &Tails, outcome: Outcome) -> Self {
        let (offered_reads, offered_writes) = (asked.reads_per_second, asked.writes_per_second);
        let (achieved_reads, achieved_writes) =
            (outcome.rate(), outcome.writer_rate.unwrap_or(0.0));
        Self {
            round,
            peer: peer.to_owned(),
            offered_writes,
            achieved_writes,
            offered_reads,
            achieved_reads,
            reads: outcome.operations,
            latency: outcome.latency,
            written_bytes: outcome.written_bytes - outcome.settled_bytes,
            settled_bytes: outcome.settled_bytes,
            is_behind: achieved_writes < KEPT_UP * offered_writes
                || achieved_reads < KEPT_UP * offered_reads,
            mismatches: outcome.mismatches,
            error: outcome.error,
        }
    }
}

impl TailsArguments {
    /// A point with so many writes a second.
    fn task(&self, writes_per_second: f64) -> Tails {
        let filled = MEMTABLES * (self.stores.memtable_mib.unwrap_or(MEMTABLE_MIB) << 20) as f64;
        let writing = filled / (writes_per_second * self.stores.pair_bytes() as f64);
        let seconds = writing.max(LEAST_SECONDS).max(LEAST_READS / self.reads).ceil();
        Tails { reads_per_second: self.reads, writes_per_second, seconds }
    }

    /// All that is to be done: round, peer and point, in turns.
    fn plan(&self, names: &[String]) -> Vec<(usize, String, Tails)> {
        let mut plan = Vec::new();
        for round in 1..=self.rounds {
            for rate in &self.rates {
                plan.extend(names.iter().map(|name| {
                    let mut task = self.task(*rate);
                    if name == BOUND {
                        task.writes_per_second = 0.0;
                    }
                    (round, name.clone(), task)
                }));
            }
        }
        plan
    }
}

/// Measures, and writes what there is after each point.
pub fn run(arguments: &TailsArguments) -> anyhow::Result<()> {
    let are_positive = arguments.rates.iter().all(|rate| *rate > 0.0) && arguments.reads > 0.0;
    if arguments.rates.is_empty() || !are_positive {
        bail!("--rates and --reads have to be above 0");
    }
    let mut arguments_of_stores = arguments.stores.clone();
    arguments_of_stores.memtable_mib.get_or_insert(MEMTABLE_MIB);
    let names = arguments_of_stores.names(TAILS)?;
    let Started { mut running, conditions } = arguments_of_stores.start(&names)?;
    eprintln!("{conditions}");
    for peer in &mut running {
        eprintln!("load: {}", peer.name);
        if let Some(error) = peer.work(&Task::Load, false)?.error {
            bail!("{} cannot be loaded: {error}", peer.name);
        }
    }
    let plan = arguments.plan(&names);
    let begun = Instant::now();
    let mut found = Found { conditions, ..Found::default() };
    let seconds = |plan: &[(usize, String, Tails)]| plan.iter().map(|at| at.2.seconds).sum::<f64>();
    for (done, (round, name, task)) in plan.iter().enumerate() {
        let Some(at) = running.iter().position(|peer| peer.name == *name) else { continue };
        let point = match running[at].work(&Task::Tails(*task), arguments.stores.warm) {
            Ok(outcome) => Point::of(*round, name, task, outcome),
            // Killed for want of memory, say: what the others do is still of use.
            Err(error) => {
                let left_out = LeftOut {
                    peer: name.clone(),
                    offered_writes: task.writes_per_second,
                    round: *round,
                    why: format!("{error:#}"),
                };
                eprintln!("{left_out}");
                found.left_out.push(left_out);
                running.remove(at);
                keep(arguments, &found)?;
                continue;
            }
        };
        let ratio = begun.elapsed().as_secs_f64() / seconds(&plan[..=done]);
        let left = Duration::from_secs_f64(seconds(&plan[done + 1..]) * ratio);
        eprintln!("{}; {}:{:02} left", line(&point), left.as_secs() / 60, left.as_secs() % 60);
        found.points.push(point);
        keep(arguments, &found)?;
    }
    drop(running);
    let Found { conditions, points, left_out } = found;
    println!("{conditions}\n\n{}", table(&points));
    left_out.iter().for_each(|one| println!("{one}"));
    let wrong: u64 = points.iter().map(|point| point.mismatches).sum();
    if wrong > 0 {
        bail!("{wrong} answers were wrong data");
    }
    if let Some(Point { peer, error: Some(error), .. }) = points.iter().find(|p| p.error.is_some())
    {
        bail!("{peer} failed: {error}");
    }
    Ok(())
}

/// Draws once more what was measured.
pub fn draw(arguments: &DrawArguments) -> anyhow::Result<()> {
    let DrawArguments { json, svg } = arguments;
    let text =
        std::fs::read_to_string(json).with_context(|| format!("cannot read {}", json.display()))?;
    let found: Found =
        serde_json::from_str(&text).with_context(|| format!("{}", json.display()))?;
    replace(svg, &picture(&found).render())
        .with_context(|| format!("cannot write {}", svg.display()))
}

/// Writes all files, so that a run that is killed leaves what it had.
fn keep(arguments: &TailsArguments, found: &Found) -> anyhow::Result<()> {
    let write = |file: &Option<PathBuf>, text: String| {
        let Some(file) = file else { return Ok(()) };
        replace(file, &text).with_context(|| format!("cannot write {}", file.display()))
    };
    write(&arguments.csv, csv(&found.points))?;
    write(&arguments.json, format!("{}\n", serde_json::to_string_pretty(found)?))?;
    write(&arguments.svg, picture(found).render())
}

/// Never half a file.
fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    let new = file.with_added_extension("new");
    std::fs::write(&new, text)?;
    std::fs::rename(new, file)
}

fn csv(points: &[Point]) -> String {
    let mut csv = "round,peer,offered_writes_per_s,achieved_writes_per_s,offered_reads_per_s,achieved_reads_per_s,reads,\
                   p50_us,p99_us,p999_us,max_us,written_bytes,settled_bytes,is_behind\n"
        .to_owned();
    for point in points {
        let Point { round, peer, offered_writes, offered_reads, reads, is_behind, .. } = point;
        let Latency { p50, p99, p999, max } = point.latency;
        writeln!(
            csv,
            "{round},{peer},{offered_writes},{:.0},{offered_reads},{:.0},{reads},{p50:.1},{p99:.1},{p999:.1},{max:.1},{},{},{is_behind}",
            point.achieved_writes, point.achieved_reads, point.written_bytes, point.settled_bytes
        )
        .expect("a string takes any text");
    }
    csv
}

/// A point for eyes.
fn line(point: &Point) -> String {
    let Latency { p50, p99, p999, max } = point.latency;
    let behind = if point.is_behind { " (behind)" } else { "" };
    let error = point.error.as_ref().map_or(String::new(), |error| format!("; {error}"));
    format!(
        "{}, {} writes/s: {:.0} writes/s and {:.0} reads/s achieved{behind}; read p50 {p50:.0} us, p99 {p99:.0} us, p99.9 {p999:.0} us, \
         max {max:.0} us{error}",
        point.peer, point.offered_writes, point.achieved_writes, point.achieved_reads
    )
}

fn table(points: &[Point]) -> String {
    let mut text = "| | writes/s offered | achieved | reads/s achieved | reads | p50 us | p99 us | p99.9 us | max us | MiB written | and to settle |\n\
                    |---|---|---|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for point in points {
        let Latency { p50, p99, p999, max } = point.latency;
        let behind = if point.is_behind { " (behind)" } else { "" };
        writeln!(
            text,
            "| {} | {:.0} | {:.0}{behind} | {:.0} | {} | {p50:.0} | {p99:.0} | {p999:.0} | {max:.0} | {} | {} |",
            point.peer,
            point.offered_writes,
            point.achieved_writes,
            point.achieved_reads,
            point.reads,
            point.written_bytes >> 20,
            point.settled_bytes >> 20
        )
        .expect("a string takes any text");
    }
    text
}

/// Medians of the rounds; the bound's is of all its turns, and level.
fn picture(found: &Found) -> Picture {
    let Found { points, left_out, .. } = found;
    let mut rates: Vec<f64> = points.iter().map(|point| point.offered_writes).collect();
    rates.sort_unstable_by(f64::total_cmp);
    rates.dedup();
    rates.retain(|rate| *rate > 0.0);
    let mut names: Vec<&str> = Vec::new();
    for Point { peer, .. } in points {
        if !names.contains(&peer.as_str()) {
            names.push(peer);
        }
    }
    let dot = |name: &str, measured_at: f64, rate: f64| {
        let at = |point: &&Point| point.peer == name && point.offered_writes == measured_at;
        let rounds: Vec<&Point> = points.iter().filter(at).collect();
        if rounds.is_empty() {
            return None;
        }
        let us = median(&rounds, |point| point.latency.p999);
        let late = rounds.iter().filter(|point| point.is_behind).count();
        Some(Dot { x: rate, y: us, is_open: late * 2 > rounds.len() })
    };
    let curves = names.iter().map(|name| {
        let is_level = *name == BOUND;
        let at = |rate: &f64| dot(name, if is_level { 0.0 } else { *rate }, *rate);
        let dots = rates.iter().filter_map(at).collect();
        let has_ended = left_out.iter().any(|one| one.peer == *name);
        Curve { name: (*name).to_owned(), is_level, has_ended, dots }
    });
    let mut reasons: Vec<&str> = left_out.iter().map(|one| one.why.as_str()).collect();
    reasons.dedup();
    let reads = points.first().map_or(0.0, |point| point.offered_reads);
    Picture {
        title: format!("Read p99.9 on files, {} reads/s beside writes", grouped(reads)),
        x_label: "writes offered per second (both axes log)".to_owned(),
        open_label: "open: fell behind what was offered".to_owned(),
        ended_label: format!("† at the next rate: {}", reasons.join("; ")),
        curves: curves.filter(|curve| !curve.dots.is_empty()).collect(),
        x: rates.iter().map(|rate| (*rate, grouped(*rate))).collect(),
    }
}

/// A whole number with commas between thousands.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
