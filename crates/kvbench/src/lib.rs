//! Runs a workload on a design on a device.

#![forbid(unsafe_code)]

mod ageing;
pub mod configuration;
pub mod fit;
mod kept;
pub mod live;
pub mod picture;
pub mod plan;
pub mod platform;
pub mod rerun;
pub mod result;
mod samples;
mod snapshot;
mod spec;
mod summary;
pub mod table;
pub mod target;

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use drives::ssd::Ssd;
use engine::{OpenError, StoreId};
use runtime::{Cores, Handle, Runtime};
use stacks::host::{HostStore, Media, Storage, StorageError, StoreOptions};
use stacks::kvssd::{DeviceProfile, DriveOptions, KvDrive, SetupError};
use stacks::limiter::Limited;
use volume::OneOrMany;
use workload::trace::TraceError;
use workload::trace::kv::{KvReader, KvRecord};
use workload::{
    ClientOptions, LatencySummary, Mix, OpKind, Pace, RequestDistribution, RunReport, Session,
    StartError, Stop,
};

use crate::ageing::{Ageing, AgeingResult};

use crate::platform::Platform;
use crate::result::{BenchResult, LoadResult};
use crate::samples::Sampler;
use crate::snapshot::Snapshot;
use crate::summary::{Past, Phases, summarise};
use crate::target::{DriveTarget, HostMedium, HostTarget, Subject, VolumeWindows, Windowing};
use blockbench::traces;
pub use blockbench::traces::KvTrace;
pub use kept::{KeptDrive, Origin, check_keeping, run_and_keep, run_on_kept};
use report::units::{count_text, printable, rate_text, three_digits};
pub use samples::MemorySample;
pub use spec::{Before, BenchSpec, TraceSpec};
pub use summary::difference;

/// Receives the progress of a bench.
pub trait Observer {
    /// Called when a phase of `total` operations begins.
    fn begin(&mut self, phase: &'static str, total: u64);
    /// Called when `done` operations of the phase are done.
    fn progress(&mut self, done: u64);
    /// Called when the phase ends. `is_done` is whether the phase was completed, not cut short.
    fn end(&mut self, is_done: bool);
}

/// The reason why a bench failed.
#[derive(Debug)]
pub enum BenchError {
    /// The design cannot be set up on the drive.
    Setup(SetupError),
    /// The host's store cannot be placed on the drive.
    Storage(StorageError),
    /// The design cannot be set up on the host.
    Open(OpenError),
    /// The workload cannot be run.
    Start(StartError),
    /// The bench certainly cannot end, for instance because the data do not fit; the text is the
    /// reason. Nothing was run.
    DoesNotFit(String),
    /// The load failed; the text has the progress and the error.
    Load(String),
    /// Ageing failed; the text has the progress and the error.
    Ageing(String),
    /// The drive could not be saved, or a saved drive cannot be used; the text is the reason.
    Kept(String),
    /// A stop was requested before the run had results.
    Interrupted {
        /// Number of pairs loaded before the stop.
        loaded: u64,
        /// Number of pairs to load.
        of: u64,
        /// Throughput and latencies of the load until the stop, as text.
        so_far: String,
    },
}

impl BenchError {
    /// Whether the bench was refused: another attempt would have the same outcome.
    pub fn is_refusal(&self) -> bool {
        !matches!(self, Self::Load(_) | Self::Ageing(_) | Self::Interrupted { .. })
    }
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setup(error) => error.fmt(f),
            Self::Storage(error) => error.fmt(f),
            Self::Open(error) => error.fmt(f),
            Self::Start(error) => error.fmt(f),
            Self::DoesNotFit(text) | Self::Kept(text) => f.write_str(text),
            Self::Load(text) => write!(f, "the load failed {text}"),
            Self::Ageing(text) => write!(f, "overwriting to a steady state failed {text}"),
            Self::Interrupted { loaded, of, so_far } => write!(
                f,
                "interrupted after {} of {} pairs of the load: {so_far}",
                count_text(*loaded),
                count_text(*of)
            ),
        }
    }
}

impl std::error::Error for BenchError {}

impl From<SetupError> for BenchError {
    fn from(error: SetupError) -> Self {
        Self::Setup(error)
    }
}

impl From<StorageError> for BenchError {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
    }
}

impl From<OpenError> for BenchError {
    fn from(error: OpenError) -> Self {
        Self::Open(error)
    }
}

impl From<StartError> for BenchError {
    fn from(error: StartError) -> Self {
        Self::Start(error)
    }
}

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

/// The observer of a bench, and the requests to stop it.
#[derive(Clone)]
struct Watch {
    observer: Rc<RefCell<dyn Observer>>,
    stop: Stop,
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

fn drive_options(spec: &BenchSpec) -> DriveOptions {
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

fn outcome(spec: &BenchSpec, subject: &impl Subject, phases: Phases) -> BenchOutcome {
    let result = summarise(spec, subject, &phases);
    BenchOutcome { result, run: phases.run, samples: phases.samples }
}

/// A loaded drive before the run.
struct Prepared<S: Subject> {
    session: Session<S>,
    past: Past,
    /// Counters after the load; `None` for a saved drive.
    after_load: Option<Snapshot>,
}

async fn phases<S: Subject>(
    spec: &BenchSpec,
    handle: Handle,
    subject: &S,
    watch: Watch,
) -> Result<Phases, BenchError> {
    let prepared = prepare(spec, &handle, subject, &watch).await?;
    measure(spec, &handle, subject, prepared, &watch).await
}

/// Loads, and ages the drive if required.
async fn prepare<S: Subject>(
    spec: &BenchSpec,
    handle: &Handle,
    subject: &S,
    Watch { observer, stop }: &Watch,
) -> Result<Prepared<S>, BenchError> {
    let workload = spec.workload.clone();
    let records = spec.loaded();
    let mut session = Session::new(handle.clone(), subject.clone(), workload, spec.seed)?;
    session.stop_on(stop.clone());
    if let Some(spec) = &spec.trace {
        session.tell_families_apart(spec.trace.survey.family_bytes());
    }
    observer.borrow_mut().begin("load", records);
    let clients = ClientOptions::closed(outstanding(&spec.clients));
    let load = load(spec, &mut session, &clients, report(observer)).await?;
    subject.index().settle().await;
    observer.borrow_mut().end(!load.is_cut_short());
    check_load(&load, records)?;
    if stop.is_asked() {
        return Err(interrupted(&load, records));
    }
    let after_load = Snapshot::of(subject);
    let mut past = Past::of_load(spec, &load, &after_load);
    if spec.ages {
        past.ageing = Some(age(spec, handle, subject, &mut session, observer).await?);
    }
    if stop.is_asked() {
        return Err(interrupted(&load, records));
    }
    Ok(Prepared { session, past, after_load: Some(after_load) })
}

/// Starts windows, and executes the run.
async fn measure<S: Subject>(
    spec: &BenchSpec,
    handle: &Handle,
    subject: &S,
    Prepared { mut session, past, after_load }: Prepared<S>,
    Watch { observer, stop }: &Watch,
) -> Result<Phases, BenchError> {
    if let Some(windowing) = subject.windowing() {
        windowing.start().await;
    }
    let before_run = Snapshot::of(subject);
    subject.index().watch_read_bound();
    let operations = spec.operations();
    observer.borrow_mut().begin("run", operations);
    let sampler = spec.sample_every.map(|every| Sampler::start(handle, subject, every));
    let run = match &spec.trace {
        None => session.run(&spec.clients, report(observer)).await?,
        Some(TraceSpec { trace, .. }) => {
            session.replay(records_of(trace), operations, &spec.clients, report(observer)).await?
        }
    };
    let samples = sampler.map(Sampler::stop).unwrap_or_default();
    observer.borrow_mut().end(!run.is_cut_short());
    if stop.is_asked() && run.operations == 0 {
        let records = spec.workload.insert_count;
        let LoadResult { throughput_ops_per_second, put, .. } = &past.load;
        return Err(not_begun((records, records), *throughput_ops_per_second, *put));
    }
    Ok(Phases { past, after_load, before_run, run, samples })
}

fn report(observer: &Rc<RefCell<dyn Observer>>) -> impl FnMut(u64, u64) + 'static {
    let observer = Rc::clone(observer);
    move |done, _total| observer.borrow_mut().progress(done)
}

/// Puts the pairs that must exist before the run.
async fn load<S: Subject>(
    spec: &BenchSpec,
    session: &mut Session<S>,
    clients: &ClientOptions,
    progress: impl FnMut(u64, u64) + 'static,
) -> Result<RunReport, StartError> {
    let count = spec.loaded();
    match &spec.trace {
        None | Some(TraceSpec { before: Before::Workload, .. }) => {
            session.load(clients, progress).await
        }
        Some(TraceSpec { before: Before::Nothing, .. }) => {
            session.replay(std::iter::empty(), count, clients, progress).await
        }
        Some(of_trace @ TraceSpec { before: Before::MetFirst, trace, .. }) => {
            let lengths = (trace.survey.format, of_trace.usual_value_bytes());
            let records = records_of(trace);
            session.load_met_first(records, lengths, count, clients, progress).await
        }
    }
}

/// Returns the operations of a trace. If its file can no longer be opened, the only item is the
/// error.
fn records_of(trace: &KvTrace) -> Box<dyn Iterator<Item = Result<KvRecord, TraceError>>> {
    match traces::open(&trace.path) {
        Ok(file) => {
            let path = printable(&trace.path);
            Box::new(KvReader::new(&path, trace.survey.format, file))
        }
        Err(error) => Box::new(std::iter::once(Err(error))),
    }
}

/// Overwrites random pairs until the drive is in its steady state, or the maximum number of
/// overwrites is reached.
async fn age<S: Subject>(
    spec: &BenchSpec,
    handle: &Handle,
    subject: &S,
    session: &mut Session<S>,
    observer: &Rc<RefCell<dyn Observer>>,
) -> Result<AgeingResult, BenchError> {
    let mut ageing = Ageing::new(spec.workload.insert_count, fit::pairs_held(spec));
    let mut overwriting = spec.workload.clone();
    overwriting.mix = Mix { update: 1.0, ..Mix::default() };
    overwriting.update_reads = false;
    overwriting.request_distribution = RequestDistribution::Uniform;
    overwriting.operation_count = ageing.stretch();
    session.switch(overwriting)?;
    let clients = ClientOptions::closed(outstanding(&spec.clients));
    let page_bytes = spec.platform.flash().geometry.page_bytes;
    let begun = handle.now();
    observer.borrow_mut().begin("age", ageing.most());
    let mut is_done = true;
    while ageing.goes_on() && is_done {
        let (before, overwritten) = (Snapshot::of(subject), ageing.overwritten());
        let told = Rc::clone(observer);
        let tell = move |done, _| told.borrow_mut().progress(overwritten + done);
        let stretch = session.run(&clients, tell).await?;
        if let Some(error) = &stretch.first_error {
            let done = count_text(overwritten + stretch.operations);
            return Err(BenchError::Ageing(format!("after {done} overwritten pairs, {error}")));
        }
        is_done = !stretch.is_cut_short();
        if is_done {
            ageing.add(Snapshot::of(subject).amplification_since(&before, page_bytes));
        }
    }
    observer.borrow_mut().end(is_done);
    session.switch(spec.workload.clone())?;
    Ok(ageing.result((handle.now() - begun).as_secs_f64()))
}

/// Returns the error for a stop before the run had results, with the progress of the load.
pub(crate) fn interrupted(load: &RunReport, records: u64) -> BenchError {
    let put = load.summary(OpKind::Put).unwrap_or_default();
    not_begun((load.operations, records), load.throughput(), put)
}

fn not_begun((loaded, of): (u64, u64), throughput: f64, put: LatencySummary) -> BenchError {
    let so_far = if put.count == 0 {
        "there is nothing to show yet".to_owned()
    } else {
        format!(
            "{} puts/s; put, us: mean {}, p50 {}, p99 {}, p99.9 {}, max {}",
            rate_text(throughput),
            three_digits(put.mean_us),
            three_digits(put.p50_us),
            three_digits(put.p99_us),
            three_digits(put.p999_us),
            three_digits(put.max_us)
        )
    };
    BenchError::Interrupted { loaded, of, so_far }
}

/// Returns an error if the load failed: no run follows such a load.
pub(crate) fn check_load(load: &RunReport, records: u64) -> Result<(), BenchError> {
    let Some(error) = &load.first_error else { return Ok(()) };
    let (done, of) = (count_text(load.operations), count_text(records));
    let is_full = error.contains(&stacks::kvssd::Status::CapacityExceeded.to_string());
    let hint = if is_full && load.operations > 0 {
        format!(" (it is full: some --records {} go in)", fit::rounded(load.operations))
    } else {
        String::new()
    };
    Err(BenchError::Load(format!("after {done} of {of} pairs, {error}{hint}")))
}

/// Returns the maximum number of outstanding operations.
pub(crate) fn outstanding(clients: &ClientOptions) -> usize {
    match clients.pace {
        Pace::Closed { outstanding }
        | Pace::Open { outstanding, .. }
        | Pace::Recorded { outstanding, .. } => outstanding,
    }
}
