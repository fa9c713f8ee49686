//! One peer: does what it is told, a line each. Every value that it reads is checked against what was written.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use runtime::Nanos;
use workload::{
    Arrivals, ClientOptions, CoreWorkload, OpKind, Pace, Part, RunReport, SharedSession, builtin,
};

use crate::peer::Peer;
use crate::task::{Latency, Outcome, Run, Tails, Task, Writer};

/// What the store is to be.
pub struct Setup {
    pub directory: PathBuf,
    /// All the memory the process may have, page cache included.
    pub memory: u64,
    pub records: u64,
    pub value_bytes: u64,
    /// Of a store that has memtables; its usual ones if there is nothing.
    pub memtable_bytes: Option<u64>,
    pub seed: u64,
}

impl Setup {
    /// Memory for the store's own cache: of the limit as much as in the comparison whose configuration this is (256 of 740 MiB).
    pub fn cache_bytes(&self) -> u64 {
        self.memory * 256 / 740
    }
}

/// More than a run of seconds does.
const MANY: u64 = 1 << 30;
/// Threads that take the reads that are due: a late one does not hold up the next.
const READERS: usize = 4;
/// Reads that have not ended after so many times what they were to take are given up.
const PATIENCE: f64 = 2.0;

fn workload(setup: &Setup, name: &str, distribution: &str) -> anyhow::Result<CoreWorkload> {
    let mut properties = builtin(name).with_context(|| format!("no workload {name}"))?;
    properties.set("recordcount", &setup.records.to_string());
    properties.set("operationcount", &MANY.to_string());
    properties.set("requestdistribution", distribution);
    properties.set("levelhead.valuebytes", &setup.value_bytes.to_string());
    Ok(CoreWorkload::from_properties(&properties)?)
}

/// Does tasks until it is told to quit.
pub fn serve<P: Peer>(mut peer: P, setup: &Setup) -> anyhow::Result<()> {
    let mut session = SharedSession::new(workload(setup, "a", "uniform")?, setup.seed);
    let pair_bytes = 32 + setup.value_bytes;
    let mut durable = 0;
    for line in std::io::stdin().lock().lines() {
        let task: Task = serde_json::from_str(&line?)?;
        if let Task::Tails(tails) = task {
            peer = peer.for_writes(setup, (tails.writes_per_second * pair_bytes as f64) as u64)?;
        }
        let (before, begun) = (disk_bytes(), Instant::now());
        let mut outcome = match task {
            Task::Quit => break,
            Task::Load => {
                let report = session.load(&peer, &ClientOptions::closed(1), |_, _| {})?;
                of_report(&report, OpKind::Put)
            }
            Task::Settle => {
                peer.settle();
                Outcome { seconds: begun.elapsed().as_secs_f64(), ..Outcome::default() }
            }
            Task::Run(run) => do_run(&mut session, &peer, setup, &run)?,
            Task::Tails(tails) => do_tails(&mut session, &peer, setup, tails)?,
            Task::Durable { .. } if peer.reads_only() => only_reads(),
            Task::Durable { batch, seconds } => {
                puts(&peer, batch, seconds, setup.value_bytes, &mut durable)
            }
        };
        let after = disk_bytes();
        outcome.read_bytes = after.0 - before.0;
        outcome.written_bytes = after.1 - before.1;
        outcome.user_bytes *= pair_bytes;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", serde_json::to_string(&outcome)?)?;
        out.flush()?;
    }
    Ok(())
}

fn do_run<P: Peer>(
    session: &mut SharedSession,
    peer: &P,
    setup: &Setup,
    run: &Run,
) -> anyhow::Result<Outcome> {
    if peer.reads_only() && (run.writer.is_some() || run.workload != "c") {
        return Ok(only_reads());
    }
    let main = workload(setup, &run.workload, &run.distribution)?;
    let writes = overwrites(setup)?;
    let mut parts = vec![Part { workload: &main, clients: ClientOptions::closed(run.threads) }];
    if let Some(writer) = run.writer {
        let mut clients = ClientOptions::closed(1);
        if let Writer::Paced(rate) = writer {
            clients.pace = Pace::Open { rate, arrivals: Arrivals::Fixed, outstanding: 1 };
        }
        parts.push(Part { workload: &writes, clients });
    }
    let span = Nanos((run.seconds * 1e9) as u64);
    let reports = session.run_parts(peer, &parts, Some(span), |_, _| {})?;
    let kind = if run.workload == "e" { OpKind::Scan } else { OpKind::Get };
    Ok(of_reports(&reports, kind))
}

/// Reads and writes of one kind of threads each, as they are due. It ends with the last read, which may be later than planned.
fn do_tails<P: Peer>(
    session: &mut SharedSession,
    peer: &P,
    setup: &Setup,
    tails: Tails,
) -> anyhow::Result<Outcome> {
    let Tails { reads_per_second, writes_per_second, seconds } = tails;
    let has_writer = writes_per_second > 0.0;
    if peer.reads_only() && has_writer {
        return Ok(only_reads());
    }
    let open = |rate, outstanding| {
        let pace = Pace::Open { rate, arrivals: Arrivals::Fixed, outstanding };
        ClientOptions { pace, ..ClientOptions::closed(outstanding) }
    };
    let mut reads = workload(setup, "c", "uniform")?;
    reads.operation_count = (reads_per_second * seconds) as u64;
    let writes = overwrites(setup)?;
    let mut parts = vec![Part { workload: &reads, clients: open(reads_per_second, READERS) }];
    if has_writer {
        parts.push(Part { workload: &writes, clients: open(writes_per_second, 1) });
    }
    let longest = Nanos((seconds * PATIENCE * 1e9) as u64);
    let reports = session.run_parts(peer, &parts, Some(longest), |_, _| {})?;
    Ok(of_reports(&reports, OpKind::Get))
}

/// A workload of nothing but overwrites.
fn overwrites(setup: &Setup) -> anyhow::Result<CoreWorkload> {
    let mut writes = workload(setup, "a", "uniform")?;
    (writes.mix.read, writes.mix.update) = (0.0, 1.0);
    Ok(writes)
}

/// Of the first report, with the writer of the second, if there is one.
fn of_reports(reports: &[RunReport], kind: OpKind) -> Outcome {
    let mut outcome = of_report(&reports[0], kind);
    if let Some(beside) = reports.get(1) {
        outcome.writer_rate = Some(beside.throughput());
        outcome.mismatches += beside.mismatch_count;
        outcome.error = outcome.error.or(beside.first_error.clone());
        outcome.user_bytes += beside.count(OpKind::Put);
    }
    outcome
}

fn only_reads() -> Outcome {
    Outcome { error: Some("it only reads".to_owned()), ..Outcome::default() }
}

/// `user_bytes` are pairs here, which [`serve`] makes bytes.
fn of_report(report: &RunReport, kind: OpKind) -> Outcome {
    Outcome {
        operations: report.operations,
        seconds: report.elapsed().as_secs_f64(),
        latency: Latency::of(&report.summary(kind).unwrap_or_default()),
        mismatches: report.mismatch_count,
        error: report.first_error.clone(),
        user_bytes: report.count(OpKind::Put),
        ..Outcome::default()
    }
}

/// New keys that no workload knows, in no order.
fn puts<P: Peer>(
    peer: &P,
    batch: usize,
    seconds: f64,
    value_bytes: u64,
    next: &mut u64,
) -> Outcome {
    let (begun, mut taken) = (Instant::now(), Vec::new());
    let mut outcome = Outcome::default();
    while begun.elapsed().as_secs_f64() < seconds && outcome.error.is_none() {
        let pairs: Vec<_> = (0..batch)
            .map(|_| {
                *next += 1;
                let key = format!("zdurable{:024x}", runtime::mix64(*next)).into_bytes();
                let words = (0..value_bytes.div_ceil(8))
                    .flat_map(|n| runtime::mix64(*next ^ n << 40).to_le_bytes());
                (key, words.take(value_bytes as usize).collect())
            })
            .collect();
        let asked = Instant::now();
        outcome.error = peer.put_durably(&pairs).err();
        taken.push(asked.elapsed().as_nanos() as f64 / 1e3);
        outcome.operations += batch as u64;
    }
    outcome.seconds = begun.elapsed().as_secs_f64();
    outcome.user_bytes = outcome.operations;
    taken.sort_unstable_by(f64::total_cmp);
    let at =
        |share: f64| taken.get(((taken.len() - 1) as f64 * share) as usize).copied().unwrap_or(0.0);
    outcome.latency = Latency { p50: at(0.5), p99: at(0.99), p999: at(0.999), max: at(1.0) };
    outcome
}

/// Bytes that this process has had drives read and write.
fn disk_bytes() -> (u64, u64) {
    let text = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let of = |name| {
        let line = text.lines().find_map(|line: &str| line.strip_prefix(name));
        line.and_then(|rest| rest.trim().parse().ok()).unwrap_or(0)
    };
    (of("read_bytes:"), of("write_bytes:"))
}
