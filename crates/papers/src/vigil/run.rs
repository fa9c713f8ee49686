//! A run of Vigil-KV's experiments: a configuration under a workload, as a specification of the
//! bench.

use std::cell::RefCell;
use std::rc::Rc;

use blockbench::Before;
use engine::{Filters, Granularity};
use kvbench::configuration::Configuration;
use kvbench::platform::Platform;
use kvbench::{BenchSpec, Observer};
use runtime::Nanos;
use stacks::design::Design;
use stacks::host::Storage;
use stacks::limiter::RateLimiterOptions;
use workload::{ClientOptions, CoreWorkload, Stop};

use super::cell::Cell;
use super::size::{RATE, SCAN_RATE, Size, WORKLOADS};
use crate::benched::{Nobody, divided};
use crate::failure::Failure;

/// Filter bits per key.
const FILTER_BITS: u32 = 10;
/// Maximum number of operations under way.
const OUTSTANDING: usize = 256;
/// Number of tables in L0 at which a delayed compaction starts. `RocksDB`'s default is four.
const DELAYED_TRIGGER: u32 = 40;
/// Bandwidth of flushes and compactions if flushes are delayed, in bytes per second: about half of
/// the bandwidth of YCSB-A's puts.
const DELAYED_FLUSH_RATE: u64 = 2_500_000;
/// Number of samples of memory in a run that samples memory.
const SAMPLES: f64 = 600.0;

/// Start of operations.
#[derive(Clone, Copy)]
pub(super) enum Pace {
    /// Open loop, in operations per second. Operations have intended start times that do not depend
    /// on earlier operations.
    Open(f64),
    /// Closed loop, in clients. Each client starts an operation when its previous one has ended.
    Closed(usize),
}

/// Delayed background work, as with schedulers that wait for idle times (section 3.2).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Delayed {
    Nothing,
    /// L0 is compacted once it has [`DELAYED_TRIGGER`] tables.
    Compaction,
    /// Flushes have less bandwidth than puts, and there are two memtables, the default.
    Flush,
}

/// One run.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub configuration: &'static str,
    pub workload: &'static str,
    pub pace: Pace,
    /// Whether the run has only the gets of the workload.
    pub are_reads: bool,
    pub filters: Filters,
    /// Limit of `plm_cache` at the paper's size, in MB; `None` for 2 GB.
    pub cache_mb: Option<u64>,
    pub delayed: Delayed,
    /// Preconditioning of the drive.
    pub precondition: Before,
    /// Whether the run samples memory.
    pub looks_at_memory: bool,
}

impl Run {
    pub(super) fn of(configuration: &'static str, workload: &'static str) -> Self {
        Self {
            configuration,
            workload,
            pace: Pace::Open(if workload == "e" { SCAN_RATE } else { RATE }),
            are_reads: false,
            filters: Filters::Bits(FILTER_BITS),
            cache_mb: None,
            delayed: Delayed::Nothing,
            precondition: Before::Random,
            looks_at_memory: false,
        }
    }

    /// Returns the specification for the bench.
    pub(super) fn spec(&self, size: &Size, seed: u64) -> Result<BenchSpec, Failure> {
        let configuration =
            Configuration::load(self.configuration).map_err(|error| error.to_string())?;
        let clients = match self.pace {
            Pace::Open(rate) => ClientOptions::open(rate, OUTSTANDING),
            Pace::Closed(clients) => ClientOptions::closed(clients),
        };
        let span = Nanos::from_micros_f64(self.seconds(size) * 1e6 / SAMPLES);
        Ok(BenchSpec {
            configuration: Some(configuration.name.clone()),
            design: self.design(&configuration, size)?,
            platform: Platform::Host(Box::new(storage(&configuration, size, self.cache_mb)?)),
            workload_name: self.workload.to_owned(),
            workload: self.workload(size)?,
            clients,
            trace: None,
            seed,
            precondition: self.precondition,
            ages: false,
            at_rest: false,
            sample_every: self.looks_at_memory.then_some(span),
        })
    }

    /// Returns the design of the configuration, divided.
    fn design(&self, configuration: &Configuration, size: &Size) -> Result<Design, Failure> {
        let design = configuration.design().map_err(|error| error.to_string())?;
        let mut design = divided(design, size.divisor).with(|engine| {
            if engine.compaction == Granularity::Leveled {
                engine.filters = self.filters;
            }
            match self.delayed {
                Delayed::Nothing => {}
                Delayed::Compaction => {
                    let tables = &mut engine.tables;
                    tables.l0_compaction_trigger = DELAYED_TRIGGER;
                    tables.l0_slowdown_trigger = 2 * DELAYED_TRIGGER;
                    tables.l0_stop_trigger = 3 * DELAYED_TRIGGER;
                }
                Delayed::Flush => engine.frozen_memtables = 1,
            }
        });
        if self.delayed == Delayed::Flush {
            design.limiter.rate_limiter = Some(RateLimiterOptions::new(DELAYED_FLUSH_RATE));
        }
        Ok(design)
    }

    fn workload(&self, size: &Size) -> Result<CoreWorkload, Failure> {
        let mut properties = workload::builtin(self.workload).expect("it is built in");
        // The mixes of UserDB and ZippyDB are published as gets and puts, so their updates do not
        // read first.
        let is_ycsb = WORKLOADS[2..].iter().any(|(name, _)| *name == self.workload);
        properties.set("recordcount", &size.records.to_string());
        properties.set("operationcount", &self.operations(size).to_string());
        if is_ycsb {
            // YCSB's binding for RocksDB reads a pair before it updates the pair. This explains the
            // shares in table 2.
            properties.set("levelhead.updatereads", "true");
        }
        if self.are_reads {
            properties.set("readproportion", "1");
            properties.set("updateproportion", "0");
        }
        CoreWorkload::from_properties(&properties).map_err(|error| error.to_string())
    }

    fn seconds(&self, size: &Size) -> f64 {
        match self.workload {
            "a" if self.are_reads => size.read_seconds,
            "a" | "f" => size.seconds,
            _ => size.quiet_seconds,
        }
    }

    pub(super) fn operations(&self, size: &Size) -> u64 {
        let rate = match self.pace {
            Pace::Open(rate) => rate,
            // A closed loop takes about the same time for these operations.
            Pace::Closed(_) => RATE,
        };
        (rate * self.seconds(size)) as u64
    }
}

/// Runs the bench. Returns its results as a cell.
pub(super) fn cell(name: String, spec: &BenchSpec) -> Result<Cell, Failure> {
    let nobody: Rc<RefCell<dyn Observer>> = Rc::new(RefCell::new(Nobody));
    let outcome =
        kvbench::run(spec, &nobody, &Stop::default()).map_err(|error| error.to_string())?;
    let verification = &outcome.result.verification;
    if verification.mismatches > 0 {
        return Err("wrong data, this is a bug".to_owned());
    }
    if let Some(error) = &verification.first_error {
        return Err(format!("ended early: {error}"));
    }
    let page_bytes = u64::from(spec.platform.page_and_payload().map_or(0, |(page, _)| page));
    Ok(Cell::of(name, page_bytes, spec.workload.operation_count, &outcome))
}

/// Returns the drive of a configuration, with the times of its windows and the limit of `plm_cache`
/// divided.
fn storage(
    configuration: &Configuration,
    size: &Size,
    cache_mb: Option<u64>,
) -> Result<Storage, Failure> {
    // At the paper's size, the drive has all its flash.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Scale;

    #[test]
    fn paper_scale_is_the_paper_s_size() {
        let configuration = Configuration::load("o-vigil").expect("built in");
        let size = Size::of(Scale::Paper);
        let storage = storage(&configuration, &size, None).expect("it is possible");
        assert_eq!(storage.drive.name, "vigil-1.92tb");
        let plm = storage.drive.plm.expect("it has windows");
        assert_eq!((plm.dtwin_time_max_ms, plm.ndwin_time_min_low_ms), (60_000, 4_000));
        assert_eq!(storage.plm_cache_bytes, Some(2_000_000_000));
        let run = Run { filters: Filters::None, ..Run::of("o-vigil", "a") };
        let design = run.design(&configuration, &size).expect("it is possible");
        let unchanged = configuration.design().expect("built in");
        assert_eq!(design, unchanged);
    }
}
