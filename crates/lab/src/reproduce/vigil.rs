//! Vigil-KV's experiments (USENIX ATC'22, section 7): six configurations of RocksDB under six workloads, and what its
//! mechanisms cost.
//!
//! What the paper does not give is chosen once, for all configurations: see [`Size`] and the notes of the report.

use std::cell::RefCell;
use std::rc::Rc;

use design::Design;
use engine::Filters;
use hdrhistogram::Histogram;
use host::Storage;
use pages::TableStats;
use workload::{ClientOptions, CoreWorkload, LatencySummary, OpKind, Stop, TimelineWindow};

use super::jobs::{Job, run_all};
use super::stand::Failure;
use super::{Plan, Scale};
use crate::bench::{self, BenchSpec, Observer};
use crate::configuration::Configuration;
use crate::platform::Platform;
use crate::result::{BenchResult, WindowsResult};

/// The configurations of the paper and what it calls them, in its order; each adds one thing to the one before.
pub(super) const CONFIGURATIONS: [(&str, &str); 6] = [
    ("base", "Base"),
    ("silk", "SILK"),
    ("plm", "PLM"),
    ("i-plm", "I-PLM"),
    ("r-vigil", "R-Vigil"),
    ("o-vigil", "O-Vigil"),
];
/// What the paper lacks: windows that the host keeps alone.
pub(super) const RAILS: (&str, &str) = ("rails", "rails");
/// Base and SILK if the paper's md kept parity, which it does not say; in YCSB-A.
pub(super) const WITH_PARITY: [(&str, &str); 2] =
    [("base-parity", "Base, parity"), ("silk-parity", "SILK, parity")];
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
/// Bits of the tables' filters for each key.
const FILTER_BITS: u32 = 10;
/// Operations under way at most.
const OUTSTANDING: usize = 256;

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

/// One workload under one configuration: plain numbers.
pub(super) struct Cell {
    pub name: String,
    pub get: LatencySummary,
    pub gets: Option<Histogram<u64>>,
    pub put: LatencySummary,
    pub scan: LatencySummary,
    pub scans: Option<Histogram<u64>>,
    pub timeline: Vec<TimelineWindow>,
    /// When the run began, in seconds.
    pub started: f64,
    pub windows: Option<WindowsResult>,
    pub tables: TableStats,
    /// Pages of tables in L0 at the end.
    pub l0_pages: u64,
    /// Bytes of a page of a table.
    pub page_bytes: u64,
    /// Share of pages of the index that were in the block cache.
    pub cache_hits: f64,
}

impl Cell {
    pub(super) fn flushed_bytes(&self) -> u64 {
        self.tables.flushed_pages * self.page_bytes
    }

    pub(super) fn compacted_bytes(&self) -> u64 {
        self.tables.written_pages * self.page_bytes
    }

    /// Bytes in L0 at the end.
    pub(super) fn l0_bytes(&self) -> u64 {
        self.l0_pages * self.page_bytes
    }

    /// The share of Gets among Gets and Puts.
    pub(super) fn get_share(&self) -> f64 {
        let (gets, puts) = (self.get.count as f64, self.put.count as f64);
        gets / (gets + puts).max(1.0)
    }
}

/// Everything that was measured.
pub(super) struct Measured {
    /// By workload, and in it by configuration, the paper's and then the others.
    pub matrix: Vec<Vec<Cell>>,
    /// YCSB-E by configuration: SILK and O-Vigil.
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
    CONFIGURATIONS.into_iter().chain([RAILS])
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
    for (configuration, name) in [CONFIGURATIONS[1], CONFIGURATIONS[5]] {
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
        scans: take(2),
        limits: take(CACHE_LIMITS_MB.len()),
        rates: take(READ_RATES.len()),
        closed: take(2),
        with_parity: take(WITH_PARITY.len()),
        unfiltered: take(2),
        reads_alone: take(1).remove(0),
    })
}

/// How operations begin.
#[derive(Clone, Copy)]
enum Pace {
    /// So many a second, whatever becomes of those before: from intended start times.
    Open(f64),
    /// By so many clients, each when its last one has ended.
    Closed(usize),
}

/// One run.
struct Run {
    configuration: &'static str,
    workload: &'static str,
    pace: Pace,
    /// Only the workload's gets.
    are_reads: bool,
    filters: Filters,
    cache_mb: Option<u64>,
}

impl Run {
    fn of(configuration: &'static str, workload: &'static str) -> Self {
        let pace = Pace::Open(if workload == "e" { SCAN_RATE } else { RATE });
        let filters = Filters::Bits(FILTER_BITS);
        Self { configuration, workload, pace, are_reads: false, filters, cache_mb: None }
    }
}

fn cell(size: &Size, seed: u64, name: String, run: &Run) -> Result<Cell, Failure> {
    let configuration =
        Configuration::load(run.configuration).map_err(|error| error.to_string())?;
    let clients = match run.pace {
        Pace::Open(rate) => ClientOptions::open(rate, OUTSTANDING),
        Pace::Closed(clients) => ClientOptions::closed(clients),
    };
    let spec = BenchSpec {
        configuration: Some(configuration.name.clone()),
        design: design(&configuration, size, run.filters)?,
        platform: Platform::Host(Box::new(storage(&configuration, size, run.cache_mb)?)),
        workload_name: run.workload.to_owned(),
        workload: workload(run, size)?,
        clients,
        seed,
    };
    let nobody: Rc<RefCell<dyn Observer>> = Rc::new(RefCell::new(Nobody));
    let outcome =
        bench::run(&spec, &nobody, &Stop::default()).map_err(|error| error.to_string())?;
    let verification = &outcome.result.verification;
    if verification.mismatches > 0 {
        return Err("wrong data, this is a bug".to_owned());
    }
    if let Some(error) = &verification.first_error {
        return Err(format!("ended early: {error}"));
    }
    let summary = |kind| outcome.run.summary(kind).unwrap_or_default();
    Ok(Cell {
        name,
        get: summary(OpKind::Get),
        gets: outcome.run.histogram(OpKind::Get).cloned(),
        put: summary(OpKind::Put),
        scan: summary(OpKind::Scan),
        scans: outcome.run.histogram(OpKind::Scan).cloned(),
        timeline: outcome.run.timeline.windows.clone(),
        started: outcome.run.started.as_secs_f64(),
        windows: outcome.result.windows,
        tables: outcome.result.tables.unwrap_or_default(),
        l0_pages: outcome.result.levels.first().map_or(0, |level| level.segments),
        page_bytes: u64::from(spec.platform.page_and_payload().map_or(0, |(page, _)| page)),
        cache_hits: cache_hits(&outcome.result),
    })
}

/// Nobody hears how far it is.
struct Nobody;

impl Observer for Nobody {
    fn begin(&mut self, _: &'static str, _: u64) {}
    fn progress(&mut self, _: u64) {}
    fn end(&mut self, _: bool) {}
}

fn cache_hits(result: &BenchResult) -> f64 {
    let caches = result.caches.unwrap_or_default();
    caches.page_hits as f64 / (caches.page_hits + caches.page_misses).max(1) as f64
}

/// The tree of a configuration, divided.
fn design(configuration: &Configuration, size: &Size, filters: Filters) -> Result<Design, Failure> {
    let design = configuration.design().map_err(|error| error.to_string())?;
    Ok(design.with(|engine| {
        let tables = &mut engine.tables;
        for bytes in [
            &mut tables.table_bytes,
            &mut tables.level_base_bytes,
            &mut tables.max_compaction_bytes,
            &mut tables.soft_pending_bytes,
            &mut tables.hard_pending_bytes,
        ] {
            *bytes /= size.divisor;
        }
        engine.memtable_bytes /= size.divisor;
        engine.filters = filters;
    }))
}

/// The drive of a configuration with its windows divided, and the room of `plm_cache`.
fn storage(
    configuration: &Configuration,
    size: &Size,
    cache_mb: Option<u64>,
) -> Result<Storage, Failure> {
    // The same drive with all its flash.
    let device = match size.divisor {
        1 => configuration.device.replace("-15gb", "-1.92tb"),
        _ => configuration.device.clone(),
    };
    let platform = Platform::load(&device, configuration.choice());
    let Platform::Host(mut storage) = platform.map_err(|error| error.to_string())? else {
        return Err(format!("{device} is no block drive"));
    };
    if let Some(plm) = &mut storage.drive.plm {
        plm.dtwin_time_max_ms /= size.divisor;
        plm.ndwin_time_min_low_ms /= size.divisor;
        plm.ndwin_time_min_high_ms /= size.divisor;
    }
    if let Some(options) = storage.window_options() {
        let bytes = cache_mb.map_or(options.cache_bytes, |mb| mb * 1_000_000);
        storage.plm_cache_bytes = Some(bytes / size.divisor);
    }
    Ok(*storage)
}

fn workload(run: &Run, size: &Size) -> Result<CoreWorkload, Failure> {
    let mut properties = workload::builtin(run.workload).expect("it is built in");
    // UserDB and ZippyDB are said to put what they put.
    let is_ycsb = WORKLOADS[2..].iter().any(|(name, _)| *name == run.workload);
    let built_in = CoreWorkload::from_properties(&properties).map_err(|error| error.to_string())?;
    let pair = built_in.keys.key_bytes() as u64 + u64::from(built_in.values.typical_bytes());
    properties.set("recordcount", &(size.bytes / pair).to_string());
    properties.set("operationcount", &operations(run, size).to_string());
    if is_ycsb {
        // As YCSB's binding for RocksDB has it, which explains the shares of table 2.
        properties.set("levelhead.updatereads", "true");
    }
    if run.are_reads {
        properties.set("readproportion", "1");
        properties.set("updateproportion", "0");
    }
    CoreWorkload::from_properties(&properties).map_err(|error| error.to_string())
}

fn operations(run: &Run, size: &Size) -> u64 {
    let seconds = match run.workload {
        "a" if run.are_reads => size.read_seconds,
        "a" | "f" => size.seconds,
        _ => size.quiet_seconds,
    };
    let rate = match run.pace {
        Pace::Open(rate) => rate,
        // They are done in about the same time.
        Pace::Closed(_) => RATE,
    };
    (rate * seconds) as u64
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

    #[test]
    fn paper_scale_is_the_paper_s_size() {
        let configuration = Configuration::load("o-vigil").expect("built in");
        let size = Size::of(Scale::Paper);
        let storage = storage(&configuration, &size, None).expect("it is possible");
        assert_eq!(storage.drive.name, "vigil-1.92tb");
        let plm = storage.drive.plm.expect("it has windows");
        assert_eq!((plm.dtwin_time_max_ms, plm.ndwin_time_min_low_ms), (60_000, 4_000));
        assert_eq!(storage.plm_cache_bytes, Some(2_000_000_000));
        let design = design(&configuration, &size, Filters::None).expect("it is possible");
        let unchanged = configuration.design().expect("built in");
        assert_eq!(design, unchanged);
    }
}
