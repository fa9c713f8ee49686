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
/// What the paper lacks.
pub(super) const OTHERS: [(&str, &str); 3] =
    [("base-parity", "Base, parity"), ("silk-parity", "SILK, parity"), ("rails", "rails")];
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
/// Requests a second at which the cost of reconstruction is measured.
pub(super) const READ_RATES: [f64; 4] = [60_000.0, 90_000.0, 120_000.0, 150_000.0];
/// Limits of `plm_cache` at the paper's size, in MB.
pub(super) const CACHE_LIMITS_MB: [u64; 6] = [50, 100, 200, 400, 800, 1_600];
/// Bits of the tables' filters for each key.
const FILTER_BITS: u32 = 10;
/// Operations under way at most.
const OUTSTANDING: usize = 256;

/// How large the experiments are.
pub(super) struct Size {
    /// Bytes of memtables, tables, levels and `plm_cache` are divided by this, and so are the times of windows: a
    /// rotation has as many flushes and compactions as at full size, at the same rates and on the same flash.
    pub divisor: u64,
    pub records: u64,
    /// Operations of each run.
    pub operations: u64,
    /// Range queries of YCSB-E.
    pub scans: u64,
    /// Gets at each rate of the cost of reconstruction.
    pub reads: u64,
}

impl Size {
    pub(super) fn of(scale: Scale) -> Self {
        match scale {
            Scale::Quick => Self {
                divisor: 8,
                records: 1_000_000,
                operations: 300_000,
                scans: 30_000,
                reads: 200_000,
            },
            Scale::Paper => Self {
                divisor: 1,
                records: 8_000_000,
                operations: 4_800_000,
                scans: 400_000,
                reads: 2_000_000,
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
    /// YCSB-A without filters, base and O-Vigil.
    pub unfiltered: Vec<Cell>,
    /// YCSB-C of base: no writes, and so nothing in the background.
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
    CONFIGURATIONS.into_iter().chain(OTHERS)
}

/// Runs all experiments.
pub(super) fn measure(plan: &Plan<'_>) -> Result<Measured, Failure> {
    let (scale, seed) = (plan.scale, plan.seed);
    let mut jobs = Vec::new();
    let mut add = |name: String, run: Run| {
        let title = name.clone();
        jobs.push(Job::new(title, move || cell(scale, seed, name, &run)));
    };
    for (workload, title) in WORKLOADS {
        for (configuration, name) in all() {
            add(format!("{title}, {name}"), Run::of(configuration, workload));
        }
    }
    for configuration in ["silk", "o-vigil"] {
        add(format!("YCSB-E, {configuration}"), Run::of(configuration, "e"));
    }
    for limit in CACHE_LIMITS_MB {
        let run = Run { cache_mb: Some(limit), ..Run::of("o-vigil", "a") };
        add(format!("plm_cache of {limit} MB"), run);
    }
    for rate in READ_RATES {
        let run = Run { pace: Pace::Open(rate), ..Run::of("r-vigil", "c") };
        add(format!("{rate} gets a second"), run);
    }
    for (configuration, name) in [CONFIGURATIONS[0], CONFIGURATIONS[5]] {
        let run = Run { pace: Pace::Closed(16), ..Run::of(configuration, "a") };
        add(format!("closed loop, {name}"), run);
    }
    for (configuration, name) in [CONFIGURATIONS[0], CONFIGURATIONS[5]] {
        let run = Run { filters: Filters::None, ..Run::of(configuration, "a") };
        add(format!("no filters, {name}"), run);
    }
    add("reads alone".to_owned(), Run::of("base", "c"));
    let mut done = run_all(jobs, plan.threads, plan.watcher)?.into_iter();
    let mut take = |count: usize| done.by_ref().take(count).collect::<Vec<_>>();
    let columns = all().count();
    Ok(Measured {
        matrix: WORKLOADS.map(|_| take(columns)).into(),
        scans: take(2),
        limits: take(CACHE_LIMITS_MB.len()),
        rates: take(READ_RATES.len()),
        closed: take(2),
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
    filters: Filters,
    cache_mb: Option<u64>,
}

impl Run {
    fn of(configuration: &'static str, workload: &'static str) -> Self {
        let (pace, filters) = (Pace::Open(RATE), Filters::Bits(FILTER_BITS));
        Self { configuration, workload, pace, filters, cache_mb: None }
    }
}

fn cell(scale: Scale, seed: u64, name: String, run: &Run) -> Result<Cell, Failure> {
    let size = Size::of(scale);
    let configuration =
        Configuration::load(run.configuration).map_err(|error| error.to_string())?;
    let clients = match run.pace {
        Pace::Open(rate) => ClientOptions::open(rate, OUTSTANDING),
        Pace::Closed(clients) => ClientOptions::closed(clients),
    };
    let spec = BenchSpec {
        configuration: Some(configuration.name.clone()),
        design: design(&configuration, &size, run.filters)?,
        platform: Platform::Host(Box::new(storage(&configuration, &size, scale, run.cache_mb)?)),
        workload_name: run.workload.to_owned(),
        workload: workload(run, &size)?,
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
    scale: Scale,
    cache_mb: Option<u64>,
) -> Result<Storage, Failure> {
    let device = match scale {
        Scale::Quick => configuration.device.clone(),
        Scale::Paper => configuration.device.replace("-15gb", "-1.92tb"),
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
    let operations = match run.workload {
        "c" => size.reads,
        "e" => size.scans,
        _ => size.operations,
    };
    properties.set("recordcount", &size.records.to_string());
    properties.set("operationcount", &operations.to_string());
    // As YCSB's binding for RocksDB has it, which explains the shares of table 2.
    properties.set("levelhead.updatereads", "true");
    CoreWorkload::from_properties(&properties).map_err(|error| error.to_string())
}
