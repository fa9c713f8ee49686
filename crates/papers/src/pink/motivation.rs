//! The motivation of the paper (slides "Experiments using Hash-based KV-SSD" and "...
//! LSM-tree-based KV-SSD"): reads of a hash-indexed drive beside reads of a block drive, and an
//! LSM-tree in the drive under Load and YCSB-C. For comparison, an LSM-tree runs on a host with the
//! block drive.
//!
//! The paper uses two products of one maker. Here the block drive has the flash, the cores and the
//! link of the KV drive, so that the drives differ only in the work of the firmware. There are half
//! as many pairs as in the other experiments: the host's store needs space for compactions of whole
//! tables, on a drive that has spare space of its own.

use std::cell::RefCell;
use std::rc::Rc;

use blockbench as jobs_on_drives;
use blockbench::{Before, DeviceSpec, Direction, StreamSpec};
use drives::ssd::SsdProfile;
use kvbench::platform::{DEFAULT_HOST, Platform};
use kvbench::{BenchSpec, Observer};
use serde::Deserialize;
use serde_json::json;
use stacks::design::Design;
use stacks::host::{HostProfile, Storage};
use stacks::kvssd::DeviceProfile;
use workload::{ClientOptions, OpKind, RunReport, Stop};

use super::size::{SYSTEMS, Size};
use super::system::{Cell, Change, System, cell, device, sized, stand_spec};
use crate::benched::{Nobody, divided};
use crate::distribution::Distribution;
use crate::failure::Failure;
use crate::jobs::Job;
use crate::kept::kept;
use crate::plan::Plan;
use crate::settings;
use crate::stand::Stand;

/// Reads of random keys, as in `KVBench`.
pub(crate) const READS_OF_KEYS: &str = "kvbench-read";
/// Number of outstanding requests.
const DEPTH: usize = 64;
/// Number of KV drives that are compared.
const DRIVES: usize = 3;

/// Results of the simulations.
pub(crate) struct Motivation {
    /// KV drives with hash, LSM-tree and `PinK`: Load, reads of random keys, and C.
    pub drives: Vec<System>,
    /// The LSM-tree of a host with the block drive: Load, reads of random keys, and C.
    pub host: System,
    /// The block drive alone: random reads of a block.
    pub block: System,
}

impl Motivation {
    pub(super) fn of(done: &mut impl Iterator<Item = System>) -> Self {
        let mut next = || done.next().expect("as many came as were asked for");
        let drives = (0..DRIVES).map(|_| next()).collect();
        let mut host = next();
        host.cells.extend(next().cells);
        Self { drives, host, block: next() }
    }
}

/// Returns all simulations, in the order of [`Motivation::of`].
pub(super) fn jobs<'a>(plan: &Plan<'a>, size: &Size) -> Result<Vec<Job<'a, System>>, Failure> {
    let size = Size { records: size.records / 2, ..*size };
    let mut jobs = Vec::new();
    for (design, name) in SYSTEMS.into_iter().take(DRIVES) {
        jobs.push(on_kv_drive(plan, &size, design, name)?);
    }
    let drive = block_drive(&size)?;
    for workload in [READS_OF_KEYS, "c"] {
        jobs.push(on_host(plan, &size, &drive, workload)?);
    }
    jobs.push(on_block_drive(plan, &size, drive)?);
    Ok(jobs)
}

fn on_kv_drive<'a>(
    plan: &Plan<'a>,
    size: &Size,
    design: &str,
    name: &str,
) -> Result<Job<'a, System>, Failure> {
    let spec = stand_spec(plan.seed, size, design, Change::None, 1024)?;
    let run = |workload| sized(workload, size, size.operations, 1024);
    let runs = [(READS_OF_KEYS, run(READS_OF_KEYS)?), ("c", run("c")?)];
    let (design, name) = (design.to_owned(), name.to_owned());
    let settings = json!({ "loaded": spec.settings(), "runs": settings::of_runs(&runs) });
    Ok(kept(plan.keeper, format!("{name}, half full: reads of keys, C"), settings, move || {
        let (mut stand, load) = Stand::load(&spec)?;
        let load = Some(cell("load", &load, &spec));
        let mut cells = Vec::new();
        for (workload, run) in runs {
            cells.push(cell(workload, &stand.run(run)?, &spec));
        }
        Ok(System { design, name, load, cells, levels: None })
    }))
}

/// Returns a block drive with the flash, the cores and the link of the KV drive. 15 % of the flash
/// is spare space, as much as the few superblocks of the small scale need. The whole mapping is in
/// memory; it would just fit in the memory of the KV drive.
fn block_drive(size: &Size) -> Result<SsdProfile, Failure> {
    let DeviceProfile { name, flash, controller, host, .. } = device(size.divisor)?;
    let base = SsdProfile::load("baseline-15gb").map_err(|error| error.to_string())?;
    let mut drive = SsdProfile { name: format!("block drive of {name}"), flash, host, ..base };
    let block = u64::from(block::BLOCK_BYTES);
    drive.user_bytes = drive.flash.geometry.capacity_bytes() / 100 * 85 / block * block;
    // The spare area of the KV drive's pages is too small for the numbers of two blocks. Twice the
    // spare area is enough. The channel transfers the addition too.
    let more = drive.flash.geometry.spare_bytes;
    drive.flash.geometry.spare_bytes += more;
    drive.flash.geometry.transfer_bytes += more;
    drive.controller.cores = controller.cores as u32;
    drive.controller.command_us = controller.command_us;
    drive.controller.pipeline_us = controller.pipeline_us;
    drive.dram.read_cache_bytes = 0;
    drive.dram.bytes = drive.user_bytes / block * 4 + drive.buffer.bytes;
    let problems = catalogue::Entry::problems(&drive);
    if problems.is_empty() { Ok(drive) } else { Err(problems.join("; ")) }
}

/// `RocksDB`'s tree on a host with the drive, divided like memory and flash.
fn on_host<'a>(
    plan: &Plan<'a>,
    size: &Size,
    drive: &SsdProfile,
    workload: &'static str,
) -> Result<Job<'a, System>, Failure> {
    let design = Design::load("rocksdb").map_err(|error| error.to_string())?;
    let design = divided(design, size.divisor);
    let storage = Storage {
        drive: drive.clone(),
        host: HostProfile::load(DEFAULT_HOST).map_err(|error| error.to_string())?,
        partitions: 1,
        arrangement: stacks::host::Arrangement::Plain,
        journal: stacks::host::JournalPlace::default(),
        windows: stacks::host::WindowPolicy::default(),
        plm_cache_bytes: None,
        hedge_after_us: None,
    };
    let spec = BenchSpec {
        configuration: None,
        design,
        platform: Platform::Host(Box::new(storage)),
        workload_name: workload.to_owned(),
        workload: sized(workload, size, size.operations, 1024)?,
        clients: ClientOptions::closed(DEPTH),
        trace: None,
        seed: plan.seed,
        precondition: Before::Empty,
        ages: false,
        at_rest: false,
        sample_every: None,
    };
    let title = format!("RocksDB on a block drive: Load, {workload}");
    Ok(kept(plan.keeper, title, settings::of_bench(&spec), move || {
        let nobody: Rc<RefCell<dyn Observer>> = Rc::new(RefCell::new(Nobody));
        let outcome = kvbench::run(&spec, &nobody, &Stop::default());
        let outcome = outcome.map_err(|error| error.to_string())?;
        if let Some(error) = &outcome.result.verification.first_error {
            return Err(format!("ended early: {error}"));
        }
        let mut load = Cell { workload: "load".to_owned(), ..Cell::default() };
        load.operations_per_second = outcome.result.load.throughput_ops_per_second;
        let cells = vec![run_cell(workload, &outcome.run)];
        let (design, name) = ("rocksdb".to_owned(), "host's LSM-tree".to_owned());
        Ok(System { design, name, load: Some(load), cells, levels: None })
    }))
}

fn run_cell(workload: &str, run: &RunReport) -> Cell {
    let gets = run.histogram(OpKind::Get);
    Cell {
        workload: workload.to_owned(),
        operations_per_second: run.throughput(),
        get: run.summary(OpKind::Get).unwrap_or_default(),
        gets: Distribution::of(gets),
        ..Cell::default()
    }
}

/// The block drive, full and written in order: random reads of a block, as in fio.
fn on_block_drive<'a>(
    plan: &Plan<'a>,
    size: &Size,
    drive: SsdProfile,
) -> Result<Job<'a, System>, Failure> {
    // The stream is made from its settings, so that the two cannot differ.
    let stream = json!({
        "rw": "randread", "depth": DEPTH, "operations": size.operations, "norandommap": true,
    });
    let reads = StreamSpec::deserialize(&stream).map_err(|error| error.to_string())?;
    let reads = StreamSpec { name: "reads".to_owned(), ..reads };
    let mut job = jobs_on_drives::Job::new("random reads", vec![reads]);
    job.precondition = Before::Sequential;
    let spec = DeviceSpec { profile: drive, job, seed: plan.seed };
    let settings = json!({
        "device": settings::of_file(&spec.profile), "precondition": spec.job.precondition.name(), "seed": spec.seed,
        "stream": stream,
    });
    Ok(kept(plan.keeper, "block drive: random reads".to_owned(), settings, move || {
        let report = jobs_on_drives::run(&spec, |_| ()).map_err(|error| error.to_string())?;
        let stream = &report.streams[0];
        let reads = stream.direction(Direction::Read).ok_or("it read nothing")?;
        let seconds = stream.elapsed().as_secs_f64();
        let cell = Cell {
            workload: READS_OF_KEYS.to_owned(),
            operations_per_second: reads.operations as f64 / seconds.max(f64::MIN_POSITIVE),
            get: reads.summary(),
            gets: Distribution::of(Some(&reads.histogram)),
            ..Cell::default()
        };
        let (design, name) = ("block".to_owned(), "block drive".to_owned());
        Ok(System { design, name, load: None, cells: vec![cell], levels: None })
    }))
}
