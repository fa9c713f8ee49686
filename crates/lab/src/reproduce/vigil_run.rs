//! One run of Vigil-KV's experiments: a configuration under a workload, and what it gave.

use std::cell::RefCell;
use std::rc::Rc;

use design::Design;
use engine::{Filters, Granularity};
use hdrhistogram::Histogram;
use host::Storage;
use pages::TableStats;
use workload::{ClientOptions, CoreWorkload, LatencySummary, OpKind, Stop, TimelineWindow};

use super::stand::Failure;
use super::vigil::{RATE, SCAN_RATE, Size, WORKLOADS};
use crate::bench::{self, BenchSpec, Observer};
use crate::configuration::Configuration;
use crate::platform::Platform;
use crate::result::{BenchResult, WindowsResult};

/// Bits of the tables' filters for each key.
const FILTER_BITS: u32 = 10;
/// Operations under way at most.
const OUTSTANDING: usize = 256;

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
    /// Bytes written to the drive for each of pairs that were put.
    pub written: f64,
    /// Memory for the index and for caches.
    pub index_bytes: u64,
    /// Blocks of 4 KiB read from the drive for each operation, those of background tasks among them.
    pub blocks_per_operation: f64,
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

/// How operations begin.
#[derive(Clone, Copy)]
pub(super) enum Pace {
    /// So many a second, whatever becomes of those before: from intended start times.
    Open(f64),
    /// By so many clients, each when its last one has ended.
    Closed(usize),
}

/// One run.
pub(super) struct Run {
    pub configuration: &'static str,
    pub workload: &'static str,
    pub pace: Pace,
    /// Only the workload's gets.
    pub are_reads: bool,
    pub filters: Filters,
    /// The limit of `plm_cache` at the paper's size, if it is not 2 GB.
    pub cache_mb: Option<u64>,
}

impl Run {
    pub(super) fn of(configuration: &'static str, workload: &'static str) -> Self {
        let pace = Pace::Open(if workload == "e" { SCAN_RATE } else { RATE });
        let filters = Filters::Bits(FILTER_BITS);
        Self { configuration, workload, pace, are_reads: false, filters, cache_mb: None }
    }
}

/// Runs it.
pub(super) fn cell(size: &Size, seed: u64, name: String, run: &Run) -> Result<Cell, Failure> {
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
    let drive = outcome.result.block_drive.as_ref().expect("it runs on a block drive");
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
        written: drive.run_store_write_amplification.unwrap_or(0.0),
        index_bytes: outcome.result.memory_bytes.index,
        blocks_per_operation: drive.blocks_read as f64 / operations(run, size) as f64,
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
        if engine.compaction == Granularity::Leveled {
            engine.filters = filters;
        }
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
    use crate::reproduce::Scale;

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
