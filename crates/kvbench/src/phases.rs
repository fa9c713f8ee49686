//! The phases of a bench: load, ageing and run.

use std::cell::RefCell;
use std::rc::Rc;

use blockbench::traces::{self, KvTrace};
use report::units::{count_text, printable};
use runtime::Handle;
use workload::trace::TraceError;
use workload::trace::kv::{KvReader, KvRecord};
use workload::{ClientOptions, Mix, Pace, RequestDistribution, RunReport, Session, StartError};

use crate::ageing::{Ageing, AgeingResult};
use crate::error::{BenchError, check_load, interrupted, not_begun};
use crate::fit;
use crate::observer::{Observer, Watch};
use crate::result::LoadResult;
use crate::samples::Sampler;
use crate::snapshot::Snapshot;
use crate::spec::{Before, BenchSpec, TraceSpec};
use crate::summary::{Past, Phases};
use crate::target::Subject;

/// A loaded drive before the run.
pub(crate) struct Prepared<S: Subject> {
    pub session: Session<S>,
    pub past: Past,
    /// Counters after the load; `None` for a saved drive.
    pub after_load: Option<Snapshot>,
}

/// Loads, ages if required, and runs.
pub(crate) async fn phases<S: Subject>(
    spec: &BenchSpec,
    handle: Handle,
    subject: &S,
    watch: Watch,
) -> Result<Phases, BenchError> {
    let prepared = prepare(spec, &handle, subject, &watch).await?;
    measure(spec, &handle, subject, prepared, &watch).await
}

/// Loads, and ages the drive if required.
pub(crate) async fn prepare<S: Subject>(
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
pub(crate) async fn measure<S: Subject>(
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

/// Returns the maximum number of outstanding operations.
pub(crate) fn outstanding(clients: &ClientOptions) -> usize {
    match clients.pace {
        Pace::Closed { outstanding }
        | Pace::Open { outstanding, .. }
        | Pace::Recorded { outstanding, .. } => outstanding,
    }
}
