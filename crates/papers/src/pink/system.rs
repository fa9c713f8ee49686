//! A system of `PinK`'s experiments: a loaded drive with a design, and the workloads on it.

use engine::{Granularity, Options};
use runtime::IoClass;
use serde::{Deserialize, Serialize};
use serde_json::json;
use stacks::design::{Design, IndexOptions};
use stacks::kvssd::DeviceProfile;
use workload::{CoreWorkload, LatencySummary};

use super::size::{DEVICE, Size};
use crate::distribution::Distribution;
use crate::failure::Failure;
use crate::jobs::Job;
use crate::kept::kept;
use crate::plan::Plan;
use crate::settings;
use crate::stand::{Phase, Stand, StandSpec};

/// Results of one workload on one system, as plain values.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Cell {
    pub workload: String,
    pub operations_per_second: f64,
    pub get: LatencySummary,
    pub put: LatencySummary,
    pub scan: LatencySummary,
    pub gets: Distribution,
    pub reads_per_get: Vec<u64>,
    pub mean_reads: f64,
    pub most_reads: usize,
    /// Share of client reads that found their die occupied by a program or an erase.
    pub behind_writes: f64,
    /// Extents with objects that garbage collection rewrote.
    pub collected: u64,
    pub traffic: Traffic,
}

/// Pages read and written by background work.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Traffic {
    pub compaction_read: u64,
    pub compaction_written: u64,
    pub gc_read: u64,
    pub gc_written: u64,
    pub user_pages: f64,
}

/// Numbers of levels of a tree.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Levels {
    pub all: usize,
    pub pinned: u32,
}

/// A system and its results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct System {
    pub design: String,
    pub name: String,
    /// Results of the load, if they were recorded.
    pub load: Option<Cell>,
    pub cells: Vec<Cell>,
    pub levels: Option<Levels>,
}

impl System {
    /// Returns the results of a workload, if the system ran it.
    pub(crate) fn cell(&self, workload: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.workload == workload)
    }

    /// Returns the results of a workload that every system of the experiment runs.
    pub(crate) fn ran(&self, workload: &str) -> &Cell {
        self.cell(workload).expect("every system of the experiment ran it")
    }

    /// Returns the results of the load. Requires: the load was recorded.
    pub(crate) fn load(&self) -> &Cell {
        self.load.as_ref().expect("its load was watched")
    }

    /// Returns the maximum number of flash reads of a get in any workload.
    pub(crate) fn most_reads(&self) -> usize {
        self.cells.iter().map(|cell| cell.most_reads).max().unwrap_or(0)
    }
}

/// Difference between a variant and its design.
#[derive(Clone, Copy)]
pub(super) enum Change {
    None,
    /// Number of pinned levels.
    Pin(u32),
    /// Neither prefixes nor range pointers.
    NoSearchAids,
    /// Number of levels below the memtable.
    Height(u32),
    /// Compactions of whole levels, as in the published code.
    WholeLevels,
}

impl Change {
    fn apply(self, options: &mut Options) {
        match self {
            Self::None => {}
            Self::Pin(levels) => options.pinned_levels = Some(levels),
            Self::NoSearchAids => {
                options.prefix_bytes = 0;
                options.range_pointers = false;
            }
            Self::Height(levels) => options.levels = levels,
            Self::WholeLevels => options.compaction = Granularity::Whole,
        }
    }
}

/// A system, or a variant of one.
pub(super) struct Variant {
    pub design: &'static str,
    pub name: String,
    pub change: Change,
}

/// Returns the paper's drive, divided. The number of dies stays the same. Blocks have up to 16
/// times fewer pages, and the rest of the divisor reduces the number of blocks. The time of an
/// erase shrinks like the pages of a block, so that erases take the same share of the time.
pub(super) fn device(divisor: u64) -> Result<DeviceProfile, Failure> {
    let mut device = DeviceProfile::load(DEVICE).map_err(|error| error.to_string())?;
    let geometry = &mut device.flash.geometry;
    let smaller_blocks = (divisor as u32).min(16);
    geometry.pages_per_block /= smaller_blocks;
    geometry.blocks_per_plane /= (divisor as u32) / smaller_blocks;
    device.flash.timing.erase_us /= f64::from(smaller_blocks);
    device.dram.index_bytes /= divisor;
    if divisor > 1 {
        device.name = format!("{DEVICE} / {divisor}");
    }
    Ok(device)
}

/// Returns a design for a drive divided by `divisor`. The memtables are divided by at most 8, like
/// the first level of the smaller tree. Memtables of a page or two would waste half of them.
fn index(name: &str, divisor: u64, change: Change) -> Result<IndexOptions, Failure> {
    let mut index = Design::load(name).map_err(|error| error.to_string())?.index();
    match &mut index {
        IndexOptions::Hash(_) => {}
        IndexOptions::Lsm(options) => {
            options.memtable_bytes /= divisor.min(8);
            change.apply(options);
        }
    }
    Ok(index)
}

/// Returns a YCSB workload on the paper's pairs.
pub(super) fn ycsb(name: &str, size: &Size) -> Result<CoreWorkload, Failure> {
    sized(name, size, if name == "e" { size.scans } else { size.operations }, 1024)
}

/// Returns a workload with this number of operations and this value length.
pub(super) fn sized(
    name: &str,
    size: &Size,
    operations: u64,
    value_bytes: u64,
) -> Result<CoreWorkload, Failure> {
    let mut properties = workload::builtin(name).expect("it is built in");
    properties.set("recordcount", &size.records.to_string());
    properties.set("operationcount", &operations.to_string());
    // A range get of the paper's drive requests all its pairs at once.
    properties.set("scanbatch", "100");
    if value_bytes != 1024 {
        properties.set("levelhead.valuebytes", &value_bytes.to_string());
    }
    CoreWorkload::from_properties(&properties).map_err(|error| error.to_string())
}

/// Returns the specification of a stand with values of this length.
pub(super) fn stand_spec(
    seed: u64,
    size: &Size,
    design: &str,
    change: Change,
    value_bytes: u64,
) -> Result<StandSpec, Failure> {
    Ok(StandSpec {
        index: index(design, size.divisor, change)?,
        device: device(size.divisor)?,
        records: sized("c", size, size.operations, value_bytes)?,
        outstanding: 64,
        seed,
    })
}

/// Returns a job that loads a variant and runs its workloads one after the other, or each on a
/// freshly loaded drive.
pub(super) fn job<'a>(
    plan: &Plan<'a>,
    size: Size,
    variant: Variant,
    workloads: &'static [&'static str],
) -> Result<Job<'a, System>, Failure> {
    let Variant { design, name, change } = variant;
    let spec = stand_spec(plan.seed, &size, design, change, 1024)?;
    let runs = workloads.iter().map(|name| ycsb(name, &size).map(|run| (*name, run)));
    let runs = runs.collect::<Result<Vec<_>, Failure>>()?;
    let title = format!("{name}: Load, {}", workloads.join(", ").to_uppercase());
    let (keeper, is_fresh) = (plan.keeper, plan.fresh_loads);
    let settings = json!({
        "loaded": spec.settings(), "runs": settings::of_runs(&runs), "fresh_loads": is_fresh,
    });
    Ok(kept(keeper, title, settings, move || {
        let (mut stand, load) = Stand::load(&spec)?;
        let load = cell("load", &load, &spec);
        let mut cells = Vec::with_capacity(runs.len());
        for (workload, run) in runs {
            if is_fresh {
                drop(stand);
                stand = Stand::loaded(keeper, &loaded_name(&name), &spec, &spec.device)?;
            }
            cells.push(cell(workload, &stand.run(run)?, &spec));
        }
        let levels = stand.drive.engine().levels();
        let levels =
            levels.map(|(plan, _)| Levels { all: plan.capacities.len(), pinned: plan.pinned });
        Ok(System { design: design.to_owned(), name, load: Some(load), cells, levels })
    }))
}

/// Returns the name of a loaded drive.
pub(super) fn loaded_name(system: &str) -> String {
    format!("{system}, loaded")
}

pub(super) fn cell(workload: &str, phase: &Phase, spec: &StandSpec) -> Cell {
    let page_bytes = f64::from(spec.device.flash.geometry.page_bytes);
    Cell {
        workload: workload.to_owned(),
        operations_per_second: phase.operations_per_second,
        get: phase.gets(),
        put: phase.puts(),
        scan: phase.scans(),
        gets: Distribution::of(phase.get.as_ref()),
        reads_per_get: phase.reads_per_get.clone(),
        mean_reads: phase.mean_reads(),
        most_reads: phase.most_reads(),
        behind_writes: phase.share_behind_writes(),
        collected: phase.collected(),
        traffic: Traffic {
            compaction_read: phase.pages_read(&[IoClass::CompactionRead]),
            compaction_written: phase.pages_programmed(&[IoClass::CompactionWrite]),
            gc_read: phase.pages_read(&[IoClass::GcRead]),
            gc_written: phase.pages_programmed(&[IoClass::GcWrite]),
            user_pages: phase.user_bytes as f64 / page_bytes,
        },
    }
}
