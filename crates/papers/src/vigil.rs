//! Vigil-KV's experiments (USENIX ATC'22, section 7): six configurations of RocksDB under six
//! workloads, and the costs of the mechanisms.
//!
//! A parameter that the paper does not give is chosen once for all configurations: see [`Size`] and
//! the notes of the report.

mod cell;
mod measured;
pub(crate) mod report;
mod run;
mod size;

use blockbench::Before;
use cell::Cell;
use engine::Filters;
use measured::Measured;
use run::{Delayed, Pace, Run};
use size::{
    CACHE_LIMITS_MB, CONFIGURATIONS, FRESH, READ_RATES, SCANNING, Size, WITH_PARITY, WORKLOADS, all,
};

use crate::failure::Failure;
use crate::jobs::{Job, run_those_asked_for};
use crate::kept::kept;
use crate::plan::Plan;
use crate::settings;

/// Runs all experiments, or those that the plan selects. Returns `None` if some were not run.
pub(super) fn measure(plan: &Plan<'_>) -> Result<Option<Measured>, Failure> {
    measure_in(plan, Size::of(plan.scale))
}

fn measure_in(plan: &Plan<'_>, size: Size) -> Result<Option<Measured>, Failure> {
    let mut jobs = Vec::new();
    for (name, run) in matrix().chain(costs()).chain(motivation()) {
        jobs.push(job(plan, &size, name, run)?);
    }
    let Some(done) = run_those_asked_for(jobs, plan)? else { return Ok(None) };
    let mut done = done.into_iter();
    let mut take = |count: usize| done.by_ref().take(count).collect::<Vec<_>>();
    let columns = all().count();
    Ok(Some(Measured {
        matrix: WORKLOADS.map(|_| take(columns)).into(),
        scans: take(SCANNING.len()),
        limits: take(CACHE_LIMITS_MB.len()),
        rates: take(READ_RATES.len()),
        closed: take(2),
        with_parity: take(WITH_PARITY.len()),
        unfiltered: take(2),
        fresh: take(FRESH.len()),
        reads_alone: take(1).remove(0),
        delayed_compaction: two(take(2)),
        delayed_flush: two(take(2)),
    }))
}

fn two(cells: Vec<Cell>) -> [Cell; 2] {
    cells.try_into().unwrap_or_else(|_| unreachable!("as many came as were asked for"))
}

/// Returns a job that runs unless its result is saved.
fn job<'a>(plan: &Plan<'a>, size: &Size, name: String, run: Run) -> Result<Job<'a, Cell>, Failure> {
    let spec = run.spec(size, plan.seed)?;
    Ok(kept(plan.keeper, name.clone(), settings::of_bench(&spec), move || run::cell(name, &spec)))
}

/// Returns the runs of six workloads with all configurations, and of range queries.
fn matrix() -> impl Iterator<Item = (String, Run)> {
    let of_workload = |(workload, title)| {
        all().map(move |(configuration, name)| {
            // Figure 15a is memory over time under ZippyDB.
            let looks_at_memory = workload == "zippydb" && configuration == "o-vigil";
            let run = Run { looks_at_memory, ..Run::of(configuration, workload) };
            (format!("{title}, {name}"), run)
        })
    };
    let scanning = SCANNING.into_iter();
    let scans = scanning.map(|(of, name)| (format!("YCSB-E, {name}"), Run::of(of, "e")));
    WORKLOADS.into_iter().flat_map(of_workload).chain(scans)
}

/// Returns the runs about the costs of the mechanisms, and about alternatives to parameters that
/// the paper does not give.
fn costs() -> impl Iterator<Item = (String, Run)> {
    let limits = CACHE_LIMITS_MB.into_iter().map(|limit| {
        let run = Run { cache_mb: Some(limit), ..Run::of("o-vigil", "a") };
        (format!("plm_cache of {limit} MB"), run)
    });
    let rates = READ_RATES.into_iter().map(|rate| {
        let run = Run { pace: Pace::Open(rate), are_reads: true, ..Run::of("r-vigil", "a") };
        (format!("{rate} gets a second"), run)
    });
    let ends = [CONFIGURATIONS[0], CONFIGURATIONS[5]];
    let closed = ends.into_iter().map(|(configuration, name)| {
        let run = Run { pace: Pace::Closed(16), ..Run::of(configuration, "a") };
        (format!("closed loop, {name}"), run)
    });
    let parity = WITH_PARITY.into_iter();
    let parity = parity.map(|(of, name)| (format!("YCSB-A, {name}"), Run::of(of, "a")));
    let unfiltered = ends.into_iter().map(|(configuration, name)| {
        let run = Run { filters: Filters::None, ..Run::of(configuration, "a") };
        (format!("no filters, {name}"), run)
    });
    let fresh = FRESH.into_iter().map(|(configuration, name)| {
        let run = Run { precondition: Before::Empty, ..Run::of(configuration, "a") };
        (format!("fresh drive, {name}"), run)
    });
    limits.chain(rates).chain(closed).chain(parity).chain(unfiltered).chain(fresh)
}

/// Returns the runs of the paper's motivation: background work beside gets, and delayed background
/// work.
fn motivation() -> impl Iterator<Item = (String, Run)> {
    let base = Run::of("base", "a");
    let unfiltered = Run { filters: Filters::None, ..base };
    let late = Run { delayed: Delayed::Compaction, ..unfiltered };
    let flush = Run { delayed: Delayed::Flush, ..base };
    let runs = [
        ("UserDB, gets alone", Run { are_reads: true, ..Run::of("base", "userdb") }),
        ("compactions in time", unfiltered),
        ("compactions put off", late),
        ("flushes put off, open loop", flush),
        ("flushes put off, closed loop", Run { pace: Pace::Closed(16), ..flush }),
    ];
    runs.into_iter().map(|(name, run)| (name.to_owned(), run))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubles::assert_goes_on;
    use crate::plan::Paper;
    use crate::vigil::report;

    #[test]
    fn all_experiments_run_and_a_run_that_was_stopped_goes_on() {
        let (seconds, quiet_seconds, read_seconds) = (0.2, 0.2, 0.01);
        let size = Size { divisor: 16, records: 1_000, seconds, quiet_seconds, read_seconds };
        assert_goes_on(Paper::Vigil, "UserDB", |plan| {
            let Some(measured) = measure_in(plan, size)? else { return Ok(None) };
            assert_eq!(measured.cell("d", "rails").name, "YCSB-D, rails");
            let puts = measured.cell("userdb", "base").put.count;
            assert!((800..1_040).contains(&puts), "46 % of 2,000 operations are puts, not {puts}");
            assert_eq!(measured.reads_alone.put.count, 0);
            Ok(Some(report::report(plan, &measured)))
        });
    }
}
