//! Running a workload on a design on a device.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use host::{HostStore, Media, Storage, StorageError, StoreOptions};
use kvssd::{DeviceProfile, DriveOptions, KvDrive, SetupError};
use limiter::Limited;
use pages::{Medium, OpenError, StoreId};
use runtime::{Cores, Handle, Runtime};
use ssd::Ssd;
use workload::trace::TraceError;
use workload::trace::kv::{KvReader, KvRecord};
use workload::{
    ClientOptions, Mix, OpKind, Pace, RequestDistribution, RunReport, Session, StartError, Stop,
};

use crate::ageing::{Ageing, AgeingResult};
pub use crate::bench_spec::{Before, BenchSpec, KvTrace, TraceSpec};
use crate::fit;
use crate::platform::Platform;
use crate::result::BenchResult;
use crate::samples::{MemorySample, Sampler};
use crate::summary::{Phases, Snapshot, summarise};
use crate::target::{DriveTarget, HostTarget, Subject, VolumeWindows, Windowing};
use crate::traces;
use crate::units::{count_text, printable, rate_text, three_digits};

/// Hears how far a bench is.
pub trait Observer {
    /// A phase of `total` operations begins.
    fn begin(&mut self, phase: &'static str, total: u64);
    /// `done` operations of the phase are done.
    fn progress(&mut self, done: u64);
    /// The phase has ended; whether it came to its end or was cut short.
    fn end(&mut self, is_done: bool);
}

/// Why a bench could not be run.
#[derive(Debug)]
pub enum BenchError {
    /// The design cannot be set up on the drive.
    Setup(SetupError),
    /// The drive has no room for a host's store like this.
    Storage(StorageError),
    /// The design cannot be set up on the host.
    Open(OpenError),
    /// The workload cannot be run.
    Start(StartError),
    /// The data would not fit, or something else makes it certain that there would be no end; the
    /// text says what. Nothing was done.
    DoesNotFit(String),
    /// The load did not come to its end; the text says when and why.
    Load(String),
    /// Overwriting to the steady state did not come to its end; the text says when and why.
    Ageing(String),
    /// Somebody asked for the end before there was anything to show.
    Interrupted {
        /// Pairs loaded by then.
        loaded: u64,
        /// Pairs to load.
        of: u64,
        /// How the load went until then, in words.
        so_far: String,
    },
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setup(error) => error.fmt(f),
            Self::Storage(error) => error.fmt(f),
            Self::Open(error) => error.fmt(f),
            Self::Start(error) => error.fmt(f),
            Self::DoesNotFit(text) => f.write_str(text),
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

/// A result, and the reports of its phases for pictures and tables of detail.
pub struct BenchOutcome {
    /// The result.
    pub result: BenchResult,
    /// The run in detail.
    pub run: RunReport,
    /// Memory over time, if it was to be looked at.
    pub samples: Vec<MemorySample>,
}

/// Finds out what makes it certain that a bench would not come to its end.
///
/// # Errors
/// [`BenchError`] of what [`run`] would find out before the load.
pub fn check(spec: &BenchSpec) -> Result<(), BenchError> {
    if spec.operations() == 0 {
        return Err(StartError::NoOperations.into());
    }
    fit::check(spec).map_err(BenchError::DoesNotFit)
}

/// Loads, lets background work settle, runs. Cost in wall time: some microseconds an operation. Once
/// `stop` is asked for, operations under way end, and the result is of what there was until then.
///
/// # Errors
/// [`BenchError`]; what goes wrong during the run is part of the result.
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

/// Who hears how far a bench is, and who may ask for its end.
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
    let mut options = DriveOptions::new(spec.design.index());
    let expected = spec.expected_pair();
    options.expected_key_bytes = expected.key as u32;
    options.expected_value_bytes = expected.value;
    options.iterators = options.iterators.max(outstanding(&spec.clients) as u32);
    let drive = KvDrive::format(&rt.handle(), device, options)?;
    on_subject(rt, spec, &DriveTarget(drive), watch)
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
        on_media(rt, spec, Ground { storage, media: volumes, windowing, ssd, cores, id }, watch)
    } else {
        let media = storage.plain(&ssd)?;
        on_media(rt, spec, Ground { storage, media, windowing: None, ssd, cores, id }, watch)
    }
}

/// What a host's store is made on.
struct Ground<'a, M> {
    storage: &'a Storage,
    media: Media<M>,
    windowing: Option<Rc<dyn Windowing>>,
    ssd: Ssd,
    cores: Rc<Cores>,
    id: StoreId,
}

fn on_media<M: Medium>(
    rt: &Runtime,
    spec: &BenchSpec,
    Ground { storage, media, windowing, ssd, cores, id }: Ground<'_, M>,
    watch: &Watch,
) -> Result<BenchOutcome, BenchError> {
    let expected = spec.expected_pair();
    let options = StoreOptions {
        index: spec.design.index(),
        expected_key_bytes: expected.key as u32,
        expected_value_bytes: expected.value,
        planted: design::Planted::default(),
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
    let result = summarise(spec, subject, &phases);
    Ok(BenchOutcome { result, run: phases.run, samples: phases.samples })
}

async fn phases<S: Subject>(
    spec: &BenchSpec,
    handle: Handle,
    subject: &S,
    Watch { observer, stop }: Watch,
) -> Result<Phases, BenchError> {
    let target = subject.clone();
    let workload = spec.workload.clone();
    let (records, operations) = (spec.loaded(), spec.operations());
    let mut session = Session::new(handle.clone(), target, workload, spec.seed)?;
    session.stop_on(stop.clone());
    if let Some(spec) = &spec.trace {
        session.tell_families_apart(spec.trace.survey.family_bytes());
    }
    let report = |observer: &Rc<RefCell<dyn Observer>>| {
        let observer = Rc::clone(observer);
        move |done, _total| observer.borrow_mut().progress(done)
    };
    observer.borrow_mut().begin("load", records);
    let outstanding = outstanding(&spec.clients);
    let loaders = ClientOptions::closed(outstanding);
    let load = load(spec, &mut session, &loaders, report(&observer)).await?;
    subject.index().settle().await;
    observer.borrow_mut().end(!load.is_cut_short());
    check_load(&load, records)?;
    let interrupted = || interrupted(&load, records);
    if stop.is_asked() {
        return Err(interrupted());
    }
    let after_load = Snapshot::of(subject);
    let ageing = if spec.ages {
        Some(age(spec, &handle, subject, &mut session, &observer).await?)
    } else {
        None
    };
    if stop.is_asked() {
        return Err(interrupted());
    }
    if let Some(windowing) = subject.windowing() {
        windowing.start().await;
    }
    let before_run = Snapshot::of(subject);
    observer.borrow_mut().begin("run", operations);
    let sampler = spec.sample_every.map(|every| Sampler::start(&handle, subject, every));
    let run = match &spec.trace {
        None => session.run(&spec.clients, report(&observer)).await?,
        Some(TraceSpec { trace, .. }) => {
            session.replay(records_of(trace), operations, &spec.clients, report(&observer)).await?
        }
    };
    let samples = sampler.map(Sampler::stop).unwrap_or_default();
    observer.borrow_mut().end(!run.is_cut_short());
    if stop.is_asked() && run.operations == 0 {
        return Err(interrupted());
    }
    Ok(Phases { load, after_load, ageing, before_run, run, samples })
}

/// Puts what is to be there before the run.
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

/// The operations of a trace. That its file cannot be opened any more is the first of them.
fn records_of(trace: &KvTrace) -> Box<dyn Iterator<Item = Result<KvRecord, TraceError>>> {
    match traces::open(&trace.path) {
        Ok(file) => {
            let path = printable(&trace.path);
            Box::new(KvReader::new(&path, trace.survey.format, file))
        }
        Err(error) => Box::new(std::iter::once(Err(error))),
    }
}

/// Overwrites pairs at random until the drive is in its steady state.
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

/// The end was asked for before the run had anything to show: what there is of the load.
pub(crate) fn interrupted(load: &RunReport, records: u64) -> BenchError {
    let put = load.summary(OpKind::Put).filter(|put| put.count > 0);
    let so_far = put.map_or("there is nothing to show yet".to_owned(), |put| {
        format!(
            "{} puts/s; put, us: mean {}, p50 {}, p99 {}, p99.9 {}, max {}",
            rate_text(load.throughput()),
            three_digits(put.mean_us),
            three_digits(put.p50_us),
            three_digits(put.p99_us),
            three_digits(put.p999_us),
            three_digits(put.max_us)
        )
    });
    BenchError::Interrupted { loaded: load.operations, of: records, so_far }
}

/// A load that failed has no run behind it.
pub(crate) fn check_load(load: &RunReport, records: u64) -> Result<(), BenchError> {
    let Some(error) = &load.first_error else { return Ok(()) };
    let (done, of) = (count_text(load.operations), count_text(records));
    Err(BenchError::Load(format!("after {done} of {of} pairs, {error}")))
}

/// Most operations under way at a time.
pub(crate) fn outstanding(clients: &ClientOptions) -> usize {
    match clients.pace {
        Pace::Closed { outstanding }
        | Pace::Open { outstanding, .. }
        | Pace::Recorded { outstanding, .. } => outstanding,
    }
}
