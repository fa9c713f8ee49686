//! Sets up a design on its device, and runs a workload on it.

use std::cell::RefCell;
use std::rc::Rc;

use drives::ssd::Ssd;
use engine::StoreId;
use runtime::{Cores, Runtime};
use stacks::host::{HostStore, Media, Storage, StoreOptions};
use stacks::kvssd::{DeviceProfile, DriveOptions, KvDrive};
use stacks::limiter::Limited;
use volume::OneOrMany;
use workload::{RunReport, StartError, Stop};

use crate::error::BenchError;
use crate::fit;
use crate::observer::{Observer, Watch};
use crate::phases::{outstanding, phases};
use crate::platform::Platform;
use crate::result::BenchResult;
use crate::samples::MemorySample;
use crate::spec::BenchSpec;
use crate::summary::{Phases, summarise};
use crate::target::{DriveTarget, HostMedium, HostTarget, Subject, VolumeWindows, Windowing};

/// A result with the details of its run, for charts and detailed tables.
pub struct BenchOutcome {
    /// The result.
    pub result: BenchResult,
    /// The report of the run.
    pub run: RunReport,
    /// Memory over time; empty without [`BenchSpec::sample_every`].
    pub samples: Vec<MemorySample>,
}

/// Checks for reasons why a bench certainly cannot end.
///
/// # Errors
/// Returns the [`BenchError`] with which [`run`] would refuse the bench.
pub fn check(spec: &BenchSpec) -> Result<(), BenchError> {
    if spec.operations() == 0 {
        return Err(StartError::NoOperations.into());
    }
    fit::check(spec).map_err(BenchError::DoesNotFit)
}

/// Loads, waits until background work has settled, ages the drive if required, and runs. Costs some
/// microseconds of wall time per operation. After a stop is requested, operations in flight end,
/// and the result covers the operations done.
///
/// # Errors
/// Returns [`BenchError`]. Errors during the run are part of the result.
pub fn run(
    spec: &BenchSpec,
    observer: &Rc<RefCell<dyn Observer>>,
    stop: &Stop,
) -> Result<BenchOutcome, BenchError> {
    check(spec)?;
    let rt = Runtime::new(spec.seed);
    let watch = Watch { observer: Rc::clone(observer), stop: stop.clone() };
    match &spec.platform {
        Platform::KvDrive(device) => on_drive(&rt, spec, device, &watch),
        Platform::Host(storage) => on_host(&rt, spec, storage, &watch),
    }
}

fn on_drive(
    rt: &Runtime,
    spec: &BenchSpec,
    device: &DeviceProfile,
    watch: &Watch,
) -> Result<BenchOutcome, BenchError> {
    let drive = KvDrive::format(&rt.handle(), device, drive_options(spec))?;
    on_subject(rt, spec, &DriveTarget(drive), watch)
}

/// Returns the options of a KV drive for the bench.
pub(crate) fn drive_options(spec: &BenchSpec) -> DriveOptions {
    let mut options = DriveOptions::new(spec.design.index());
    let expected = spec.expected_pair();
    options.expected_key_bytes = expected.key as u32;
    options.expected_value_bytes = expected.value;
    options.iterators = options.iterators.max(outstanding(&spec.clients) as u32);
    options
}

fn on_host(
    rt: &Runtime,
    spec: &BenchSpec,
    storage: &Storage,
    watch: &Watch,
) -> Result<BenchOutcome, BenchError> {
    let handle = rt.handle();
    let cores = storage.cores(&handle);
    let ssd = Ssd::new(&handle, &storage.drive, spec.precondition.on(1.0));
    let id = StoreId(handle.rng("store identity").next_u64() as u32);
    if storage.is_volume() {
        let volumes = storage.volume(&handle, &cores, &ssd, id)?;
        let windows = VolumeWindows::new(&volumes.data, storage);
        let windowing = Some(Rc::new(windows) as Rc<dyn Windowing>);
        let media = volumes.map(OneOrMany::Many);
        on_media(rt, spec, Ground { storage, media, windowing, ssd, cores, id }, watch)
    } else {
        let media = storage.plain(&ssd)?.map(OneOrMany::One);
        on_media(rt, spec, Ground { storage, media, windowing: None, ssd, cores, id }, watch)
    }
}

/// The parts that a host's store is created from.
struct Ground<'a> {
    storage: &'a Storage,
    media: Media<HostMedium>,
    windowing: Option<Rc<dyn Windowing>>,
    ssd: Ssd,
    cores: Rc<Cores>,
    id: StoreId,
}

fn on_media(
    rt: &Runtime,
    spec: &BenchSpec,
    Ground { storage, media, windowing, ssd, cores, id }: Ground<'_>,
    watch: &Watch,
) -> Result<BenchOutcome, BenchError> {
    let expected = spec.expected_pair();
    let options = StoreOptions {
        index: spec.design.index(),
        expected_key_bytes: expected.key as u32,
        expected_value_bytes: expected.value,
        planted: engine::Planted::default(),
        id,
    };
    let handle = rt.handle();
    let medium = Limited::new(&handle, media.data, &spec.design.limiter);
    let journal = media.journal.map(|journal| medium.beside(journal));
    let media = Media { data: medium.clone(), journal };
    let store = HostStore::create(&handle, &storage.host, &cores, media, options)?;
    on_subject(rt, spec, &HostTarget { store, medium, ssd, windowing }, watch)
}

fn on_subject<S: Subject>(
    rt: &Runtime,
    spec: &BenchSpec,
    subject: &S,
    watch: &Watch,
) -> Result<BenchOutcome, BenchError> {
    let handle = rt.handle();
    let (spec_in, subject_in, watch) = (spec.clone(), subject.clone(), watch.clone());
    let phases = rt.block_on(async move { phases(&spec_in, handle, &subject_in, watch).await })?;
    Ok(outcome(spec, subject, phases))
}

/// Returns the result of the phases.
pub(crate) fn outcome(spec: &BenchSpec, subject: &impl Subject, phases: Phases) -> BenchOutcome {
    let result = summarise(spec, subject, &phases);
    BenchOutcome { result, run: phases.run, samples: phases.samples }
}
