//! `PinK`'s experiments (USENIX ATC'20): YCSB Load and A to F on a 64 GB drive with 64 MB of memory,
//! 44 M pairs of 32 + 1024 bytes; hash, LSM-tree, `PinK`, `PinK`+HW.

use design::{Design, IndexOptions};
use engine::Options;
use engine::sizing::LevelPlan;
use kvssd::DeviceProfile;
use runtime::IoClass;
use workload::{CoreWorkload, LatencySummary};

use super::jobs::{Job, run_all};
use super::stand::{Failure, Phase, Stand, StandSpec};
use super::{Plan, Scale};

/// The drive of the paper.
const DEVICE: &str = "pink-zcu102";
/// The systems of the paper, and what it calls them.
const SYSTEMS: [(&str, &str); 4] =
    [("hash", "Hash"), ("lightstore", "LSM-tree"), ("pink", "PinK"), ("pink-hw", "PinK+HW")];
/// The workloads, in the order in which they run on a loaded drive. E comes last: it is the one
/// that hash does not run, and until it all have done the same.
pub(super) const WORKLOADS: [&str; 6] = ["a", "b", "c", "d", "f", "e"];
/// Those in which reads are measured.
pub(super) const READS: [&str; 5] = ["a", "b", "c", "d", "f"];
/// Levels of the experiment on higher trees.
const HEIGHTS: std::ops::RangeInclusive<u32> = 3..=7;

/// How large the experiments are.
pub(super) struct Size {
    /// The drive, its memory and the number of pairs are divided by this.
    pub divisor: u64,
    pub records: u64,
    /// Operations of each workload.
    pub operations: u64,
    /// Range queries of E.
    pub scans: u64,
}

impl Size {
    pub(super) fn of(scale: Scale) -> Self {
        match scale {
            Scale::Quick => {
                Self { divisor: 64, records: 687_500, operations: 300_000, scans: 6_000 }
            }
            Scale::Paper => {
                Self { divisor: 1, records: 44_000_000, operations: 4_400_000, scans: 44_000 }
            }
        }
    }
}

/// One workload on one system: plain numbers.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    pub workload: &'static str,
    pub operations_per_second: f64,
    pub get: LatencySummary,
    pub get_histogram: Option<hdrhistogram::Histogram<u64>>,
    pub reads_per_get: Vec<u64>,
    pub mean_reads: f64,
    pub most_reads: usize,
    /// Client reads that met a program or an erase on their die.
    pub behind_writes: f64,
    pub traffic: Traffic,
}

/// Pages moved by background work.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Traffic {
    pub compaction_read: u64,
    pub compaction_written: u64,
    pub gc_read: u64,
    pub gc_written: u64,
    pub user_pages: f64,
}

/// A system and what it did.
pub(super) struct System {
    pub design: &'static str,
    pub name: String,
    pub load: Cell,
    pub cells: Vec<Cell>,
    pub plan: Option<LevelPlan>,
}

impl System {
    /// One of its workloads, if it ran it.
    pub(super) fn cell(&self, workload: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.workload == workload)
    }

    /// One of the workloads that every system of its experiment runs.
    pub(super) fn ran(&self, workload: &str) -> &Cell {
        self.cell(workload).expect("every system of the experiment ran it")
    }

    /// Most flash reads that a get took in any workload.
    pub(super) fn most_reads(&self) -> usize {
        self.cells.iter().map(|cell| cell.most_reads).max().unwrap_or(0)
    }
}

/// Everything that was measured.
pub(super) struct Measured {
    /// In the order of [`SYSTEMS`].
    pub systems: Vec<System>,
    /// `PinK` with 0, 1, 2 and 3 levels pinned.
    pub pinned: Vec<System>,
    /// `PinK` without prefixes and range pointers.
    pub plain: System,
    /// Higher trees, with as many levels pinned as fit.
    pub heights: Vec<System>,
}

impl Measured {
    /// One of [`SYSTEMS`], by its design.
    pub(super) fn system(&self, design: &str) -> &System {
        let mut systems = self.systems.iter();
        systems.find(|system| system.design == design).expect("every system was run")
    }
}

/// Runs all experiments.
pub(super) fn measure(plan: &Plan<'_>) -> Result<Measured, Failure> {
    let (scale, seed) = (plan.scale, plan.seed);
    let mut jobs = Vec::new();
    let mut add = |name: String, design, workloads: &'static [&'static str], change: Change| {
        let title = format!("{name}: Load, {}", workloads.join(", ").to_uppercase());
        let variant = Variant { design, name, change };
        jobs.push(Job::new(title, move || system(scale, seed, &variant, workloads)));
    };
    for (design, name) in SYSTEMS {
        let workloads: &[&str] = if design == "hash" { &READS } else { &WORKLOADS };
        add(name.to_owned(), design, workloads, Change::None);
    }
    for levels in 0..=3 {
        let name = format!("{levels} levels pinned");
        add(name, "pink", &["a", "c"], Change::Pin(levels));
    }
    // On the same workloads as those with levels pinned, the last of which is PinK as it is.
    add("PinK (NO-OPT)".to_owned(), "pink", &["a", "c"], Change::NoSearchAids);
    for height in HEIGHTS {
        add(format!("{height} levels in all"), "pink", &["a", "c"], Change::Height(height));
    }
    let mut done = run_all(jobs, plan.threads, plan.watcher)?.into_iter();
    let mut take = |count: usize| done.by_ref().take(count).collect::<Vec<_>>();
    let (systems, pinned) = (take(SYSTEMS.len()), take(4));
    let plain = take(1).remove(0);
    let heights = take(HEIGHTS.count());
    Ok(Measured { systems, pinned, plain, heights })
}

/// How a variant differs from its design.
#[derive(Clone, Copy)]
enum Change {
    None,
    /// So many levels pinned.
    Pin(u32),
    /// Neither prefixes nor range pointers.
    NoSearchAids,
    /// So many levels below the memtable.
    Height(u32),
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
        }
    }
}

/// The paper's drive, divided: fewer blocks of fewer pages, so that it has as many dies and about
/// as many superblocks as before. An erase takes as much less time as a block has fewer pages, so
/// that erasing takes its share of the time as before.
fn device(divisor: u64) -> Result<DeviceProfile, Failure> {
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

/// A design on a drive divided by `divisor`. Its memtables are divided by an eighth of that at most,
/// as the first level of the smaller tree is; a buffer of a page or two would waste half of them.
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

/// A workload of YCSB on the paper's pairs.
fn ycsb(name: &str, size: &Size) -> Result<CoreWorkload, Failure> {
    let mut properties = workload::builtin(name).expect("it is built in");
    let operations = if name == "e" { size.scans } else { size.operations };
    properties.set("recordcount", &size.records.to_string());
    properties.set("operationcount", &operations.to_string());
    // A range get of the paper's drive asks for all its pairs at once.
    properties.set("scanbatch", "100");
    CoreWorkload::from_properties(&properties).map_err(|error| error.to_string())
}

/// A system, or a variant of one.
struct Variant {
    design: &'static str,
    name: String,
    change: Change,
}

fn system(
    scale: Scale,
    seed: u64,
    variant: &Variant,
    workloads: &[&'static str],
) -> Result<System, Failure> {
    let size = Size::of(scale);
    let spec = StandSpec {
        index: index(variant.design, size.divisor, variant.change)?,
        device: device(size.divisor)?,
        records: ycsb("c", &size)?,
        outstanding: 64,
        seed,
    };
    let (mut stand, load) = Stand::load(&spec)?;
    let load = cell("load", &load, &spec);
    let mut cells = Vec::with_capacity(workloads.len());
    for workload in workloads {
        let phase = stand.run(ycsb(workload, &size)?)?;
        cells.push(cell(workload, &phase, &spec));
    }
    let plan = stand.drive.engine().levels().map(|(plan, _)| plan);
    Ok(System { design: variant.design, name: variant.name.clone(), load, cells, plan })
}

fn cell(workload: &'static str, phase: &Phase, spec: &StandSpec) -> Cell {
    let page_bytes = f64::from(spec.device.flash.geometry.page_bytes);
    Cell {
        workload,
        operations_per_second: phase.operations_per_second,
        get: phase.gets(),
        get_histogram: phase.get.clone(),
        reads_per_get: phase.reads_per_get.clone(),
        mean_reads: phase.mean_reads(),
        most_reads: phase.most_reads(),
        behind_writes: phase.share_behind_writes(),
        traffic: Traffic {
            compaction_read: phase.pages_read(&[IoClass::CompactionRead]),
            compaction_written: phase.pages_programmed(&[IoClass::CompactionWrite]),
            gc_read: phase.pages_read(&[IoClass::GcRead]),
            gc_written: phase.pages_programmed(&[IoClass::GcWrite]),
            user_pages: phase.user_bytes as f64 / page_bytes,
        },
    }
}
