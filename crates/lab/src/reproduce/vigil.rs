//! Vigil-KV's experiments (USENIX ATC'22, section 7): six configurations of RocksDB under six workloads, and what its
//! mechanisms cost.
//!
//! What the paper does not give is chosen once, for all configurations: see [`Size`] and the notes of the report.

use engine::Filters;

use super::jobs::{Job, run_all};
use super::stand::Failure;
use super::vigil_run::{Cell, Pace, Run, cell};
use super::{Plan, Scale};

/// The configurations of the paper and what it calls them, in its order; each adds one thing to the one before.
pub(super) const CONFIGURATIONS: [(&str, &str); 6] = [
    ("base", "Base"),
    ("silk", "SILK"),
    ("plm", "PLM"),
    ("i-plm", "I-PLM"),
    ("r-vigil", "R-Vigil"),
    ("o-vigil", "O-Vigil"),
];
/// What the paper lacks: windows that the host keeps alone, a second read instead of waiting, drives in which nothing
/// disturbs clients, and all three papers in one store.
pub(super) const BEYOND: [(&str, &str); 4] =
    [("rails", "rails"), ("hedged", "hedged"), ("ideal", "ideal"), ("levelhead", "levelhead")];
/// Base and SILK if the paper's md kept parity, which it does not say; in YCSB-A.
pub(super) const WITH_PARITY: [(&str, &str); 2] =
    [("base-parity", "Base, parity"), ("silk-parity", "SILK, parity")];
/// Those that YCSB-E is run with: the paper's two, and ours.
pub(super) const SCANNING: [(&str, &str); 3] =
    [("silk", "SILK"), ("o-vigil", "O-Vigil"), ("levelhead", "levelhead")];
/// The workloads of the paper and what it calls them, in its order.
pub(super) const WORKLOADS: [(&str, &str); 6] = [
    ("userdb", "UserDB"),
    ("zippydb", "ZippyDB"),
    ("a", "YCSB-A"),
    ("b", "YCSB-B"),
    ("d", "YCSB-D"),
    ("f", "YCSB-F"),
];
/// Operations a second, open loop. The paper does not say; its table 2 and the time axis of figure 12 leave no more than
/// about ten thousand.
pub(super) const RATE: f64 = 10_000.0;
/// The same of YCSB-E, whose range queries take some fifty pairs.
pub(super) const SCAN_RATE: f64 = 2_000.0;
/// Requests a second at which the cost of reconstruction is measured.
pub(super) const READ_RATES: [f64; 4] = [60_000.0, 90_000.0, 120_000.0, 150_000.0];
/// Limits of `plm_cache` at the paper's size, in MB.
pub(super) const CACHE_LIMITS_MB: [u64; 6] = [50, 100, 200, 400, 800, 1_600];

/// How large the experiments are.
#[derive(Clone, Copy)]
pub(super) struct Size {
    /// Bytes of memtables, tables, levels and `plm_cache` are divided by this, and so are the times of windows: a
    /// rotation has as many flushes and compactions as at full size, at the same rates and on the same flash.
    pub divisor: u64,
    /// Bytes of keys and values to begin with, about.
    pub bytes: u64,
    /// Seconds of each run of YCSB-A and F, and of those that have fewer puts or smaller ones. Each has a dozen flushes
    /// and more.
    pub seconds: f64,
    pub quiet_seconds: f64,
    /// Seconds of gets alone at each rate.
    pub read_seconds: f64,
}

impl Size {
    pub(super) fn of(scale: Scale) -> Self {
        match scale {
            Scale::Quick => Self {
                divisor: 16,
                bytes: 500_000_000,
                seconds: 40.0,
                quiet_seconds: 120.0,
                read_seconds: 2.0,
            },
            Scale::Paper => Self {
                divisor: 1,
                bytes: 8_000_000_000,
                seconds: 640.0,
                quiet_seconds: 1_920.0,
                read_seconds: 32.0,
            },
        }
    }
}

/// Everything that was measured.
pub(super) struct Measured {
    /// By workload, and in it by configuration, the paper's and then the others.
    pub matrix: Vec<Vec<Cell>>,
    /// YCSB-E by configuration: [`SCANNING`].
    pub scans: Vec<Cell>,
    /// YCSB-A of O-Vigil, by limit of `plm_cache`.
    pub limits: Vec<Cell>,
    /// Gets alone, of R-Vigil, by rate.
    pub rates: Vec<Cell>,
    /// YCSB-A in closed loops of 16 clients, base and O-Vigil.
    pub closed: Vec<Cell>,
    /// YCSB-A of [`WITH_PARITY`].
    pub with_parity: Vec<Cell>,
    /// YCSB-A without filters, base and O-Vigil.
    pub unfiltered: Vec<Cell>,
    /// The gets of `UserDB` alone, of base: no writes, and so nothing in the background.
    pub reads_alone: Cell,
}

impl Measured {
    /// A cell of the matrix.
    pub(super) fn cell(&self, workload: &str, configuration: &str) -> &Cell {
        let row = WORKLOADS.iter().position(|(name, _)| *name == workload);
        let column = all().position(|(name, _)| name == configuration);
        &self.matrix[row.expect("a workload")][column.expect("a configuration")]
    }
}

/// All configurations of the matrix.
pub(super) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    CONFIGURATIONS.into_iter().chain(BEYOND)
}

/// Runs all experiments.
pub(super) fn measure(plan: &Plan<'_>) -> Result<Measured, Failure> {
    measure_in(plan, Size::of(plan.scale))
}

fn measure_in(plan: &Plan<'_>, size: Size) -> Result<Measured, Failure> {
    let seed = plan.seed;
    let mut jobs = Vec::new();
    let mut add = |name: String, run: Run| {
        let title = name.clone();
        jobs.push(Job::new(title, move || cell(&size, seed, name, &run)));
    };
    for (workload, title) in WORKLOADS {
        for (configuration, name) in all() {
            add(format!("{title}, {name}"), Run::of(configuration, workload));
        }
    }
    for (configuration, name) in SCANNING {
        add(format!("YCSB-E, {name}"), Run::of(configuration, "e"));
    }
    for limit in CACHE_LIMITS_MB {
        let run = Run { cache_mb: Some(limit), ..Run::of("o-vigil", "a") };
        add(format!("plm_cache of {limit} MB"), run);
    }
    for rate in READ_RATES {
        let run = Run { pace: Pace::Open(rate), are_reads: true, ..Run::of("r-vigil", "a") };
        add(format!("{rate} gets a second"), run);
    }
    for (configuration, name) in [CONFIGURATIONS[0], CONFIGURATIONS[5]] {
        let run = Run { pace: Pace::Closed(16), ..Run::of(configuration, "a") };
        add(format!("closed loop, {name}"), run);
    }
    for (configuration, name) in WITH_PARITY {
        add(format!("YCSB-A, {name}"), Run::of(configuration, "a"));
    }
    for (configuration, name) in [CONFIGURATIONS[0], CONFIGURATIONS[5]] {
        let run = Run { filters: Filters::None, ..Run::of(configuration, "a") };
        add(format!("no filters, {name}"), run);
    }
    let run = Run { are_reads: true, ..Run::of("base", "userdb") };
    add("UserDB, gets alone".to_owned(), run);
    let mut done = run_all(jobs, plan.threads, plan.watcher)?.into_iter();
    let mut take = |count: usize| done.by_ref().take(count).collect::<Vec<_>>();
    let columns = all().count();
    Ok(Measured {
        matrix: WORKLOADS.map(|_| take(columns)).into(),
        scans: take(SCANNING.len()),
        limits: take(CACHE_LIMITS_MB.len()),
        rates: take(READ_RATES.len()),
        closed: take(2),
        with_parity: take(WITH_PARITY.len()),
        unfiltered: take(2),
        reads_alone: take(1).remove(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::{Paper, Simulation, Watcher, vigil_report};

    struct Deaf;

    impl Watcher for Deaf {
        fn begins(&self, _: Simulation<'_>) {}
        fn ended(&self, _: Simulation<'_>, _: bool) {}
    }

    #[test]
    fn all_experiments_run_and_make_a_report() {
        let (paper, scale) = (Paper::Vigil, Scale::Quick);
        let plan = Plan { paper, scale, threads: 2, seed: 1, watcher: &Deaf };
        let (seconds, quiet_seconds, read_seconds) = (0.2, 0.2, 0.01);
        let size = Size { divisor: 16, bytes: 1_000_000, seconds, quiet_seconds, read_seconds };
        let measured = measure_in(&plan, size).expect("all can be run");
        assert_eq!(measured.cell("d", "rails").name, "YCSB-D, rails");
        let puts = measured.cell("userdb", "base").put.count;
        assert!((800..1_040).contains(&puts), "46 % of 2,000 operations are puts, not {puts}");
        assert_eq!(measured.reads_alone.put.count, 0);
        vigil_report::report(&plan, &measured).files().expect("it can be shown");
    }
}
