//! The execution of a job: the clients of its streams, and its window commands.
//!
//! Every client is a task. A client of a closed loop takes an operation, executes it and takes the
//! next. A client of an open loop takes an arrival, waits for its time if that is in the future,
//! and executes it. The clients, as many as operations may be outstanding, form a queue for late
//! arrivals: first come, first served.
//!
//! Invariant: no shared state stays borrowed across an await.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, ready};

use block::nvme::{PlmConfig, SetId};
use block::{Block, BlockDevice, DeviceError, Force};
use runtime::{Handle, IoClass, Nanos};
use workload::Stop;

use crate::job::WindowName;
use crate::ledger::{Ledger, Mismatch};
use crate::operation::{Direction, Operation};
use crate::plan::{Plan, WindowPlan};
use crate::recorder::{LeftByItself, Recorder};
use crate::report::{Checks, StreamReport, WindowReport};
use crate::streams::{OfJob, Place, Stream};
use crate::timeline::Timeline;
use crate::watch::Watch;

/// Operations between two progress reports.
const PROGRESS_STEP: u64 = 4096;

/// The I/O class of writes. Simulated drives ignore it.
const WRITES: IoClass = IoClass::Flush;

/// The results of a job, without the counters of the drive.
pub(super) struct Ran {
    pub started: Nanos,
    pub ended: Nanos,
    pub streams: Vec<StreamReport>,
    pub timeline: Timeline,
    pub windows: Vec<WindowReport>,
    pub checks: Checks,
    pub is_interrupted: bool,
    pub first_error: Option<String>,
}

/// The state shared by all tasks of a job.
struct Run<D> {
    handle: Handle,
    device: D,
    started: Nanos,
    verifies: bool,
    streams: Vec<Stream<D>>,
    /// By index in the list of sets.
    ledgers: Vec<RefCell<Ledger>>,
    recorder: RefCell<Recorder>,
    windows: RefCell<Vec<WindowReport>>,
    checks: RefCell<Checks>,
    first_error: RefCell<Option<String>>,
    /// The content of writes if reads are not checked.
    unchecked: Block,
    progress: RefCell<Box<dyn FnMut(f64)>>,
    stop: Stop,
    /// Whether the job ended because of a stop request.
    is_interrupted: Cell<bool>,
}

/// Executes a job on a device without a watch.
#[cfg(test)]
pub(super) async fn run<D: BlockDevice + 'static>(
    handle: &Handle,
    device: D,
    queue: impl Fn(&D, u16) -> D,
    plan: Plan,
    stop: Stop,
    progress: Box<dyn FnMut(f64)>,
) -> Ran {
    let never_left = Box::new(|_| 0);
    watched(handle, (device, never_left), queue, plan, (stop, Rc::default()), progress).await
}

/// Executes a job on a device, from the first operation to the last, or until `watch` cuts it off.
/// `queue` returns the device as reached by a submission queue: each job of each stream has one.
pub(super) async fn watched<D: BlockDevice + 'static>(
    handle: &Handle,
    (device, left): (D, LeftByItself),
    queue: impl Fn(&D, u16) -> D,
    plan: Plan,
    (stop, watch): (Stop, Rc<Watch>),
    progress: Box<dyn FnMut(f64)>,
) -> Ran {
    let first_error = enable_windows(&device, &plan.windows).await.err();
    let started = handle.now();
    let sets = device.sets();
    let recorder = Recorder::new(&plan, started, left);
    let mut numbers = 1..=u16::MAX;
    let mut queue = || {
        let number = numbers.next().expect("a job has no more streams than a drive queues");
        queue(&device, number)
    };
    let stream = |(index, plan)| Stream::new(handle, index, plan, &mut queue);
    let streams = plan.streams.into_iter().enumerate().map(stream).collect();
    let run = Rc::new(Run {
        handle: handle.clone(),
        device,
        started,
        verifies: plan.verifies,
        recorder: RefCell::new(recorder),
        streams,
        ledgers: sets.iter().map(|shape| RefCell::new(Ledger::new(shape.id))).collect(),
        windows: RefCell::default(),
        checks: RefCell::default(),
        first_error: RefCell::new(first_error.map(|error| error.to_string())),
        unchecked: Block::new(b"nobody checks this"),
        progress: RefCell::new(progress),
        stop,
        is_interrupted: Cell::new(false),
    });
    (run.progress.borrow_mut())(0.0);
    if run.first_error.borrow().is_none() {
        let told = Rc::downgrade(&run);
        watch.on_progress(move || {
            if let Some(run) = told.upgrade() {
                run.tell_progress(run.handle.now());
            }
        });
        run.until_over(plan.windows, &watch).await;
    }
    (run.progress.borrow_mut())(1.0);
    run.finish()
}

/// Enables predictable-latency mode for the sets that have window commands.
async fn enable_windows<D: BlockDevice>(
    device: &D,
    windows: &[WindowPlan],
) -> Result<(), DeviceError> {
    for plan in windows {
        let config = PlmConfig { enabled: true, ..PlmConfig::default() };
        device.configure_plm(plan.set, config).await?;
    }
    Ok(())
}

impl<D: BlockDevice + 'static> Run<D> {
    /// Executes all streams and window commands.
    async fn until_over(self: &Rc<Self>, windows: Vec<WindowPlan>, watch: &Watch) {
        let steps = windows.into_iter();
        let steps =
            steps.map(|plan| self.handle.spawn("window commands", Rc::clone(self).step(plan)));
        let streams = (0..self.streams.len())
            .map(|stream| self.handle.spawn("stream", Rc::clone(self).stream(stream)));
        let tasks: Vec<_> = streams.chain(steps).collect();
        let all = async {
            for task in tasks {
                task.await;
            }
        };
        let (mut all, mut cut) = (pin!(all), pin!(watch.cut.notified()));
        poll_fn(|context| {
            if all.as_mut().poll(context).is_pending() {
                ready!(cut.as_mut().poll(context));
                self.is_interrupted.set(true);
            }
            Poll::Ready(())
        })
        .await;
    }

    /// Returns the results. Tasks that were cut off keep references to this state.
    fn finish(&self) -> Ran {
        let (started, ended) = (self.started, self.handle.now());
        let mut windows = self.windows.take();
        windows.sort_by_key(|window| window.asked);
        let (mut streams, timeline) = self.recorder.borrow_mut().finish();
        for (report, stream) in streams.iter_mut().zip(&self.streams) {
            report.fitted = stream.jobs[0].source.borrow().fitted();
            report.late = stream.jobs.iter().map(|job| job.late.get()).max().unwrap_or_default();
        }
        let is_interrupted = self.is_interrupted.get();
        // The clock may be past the last operation: tasks that slept at the stop request slept on.
        let last = streams.iter().map(|stream| stream.ended).max().unwrap_or_default();
        let ended = if is_interrupted { started + last } else { ended };
        Ran {
            started,
            ended,
            streams,
            timeline,
            windows,
            checks: self.checks.take(),
            is_interrupted,
            first_error: self.first_error.take(),
        }
    }

    /// Executes a stream from its start to its end.
    async fn stream(self: Rc<Self>, index: usize) {
        let stream = &self.streams[index];
        for before in &stream.plan.waits_for {
            let before = &self.streams[*before];
            before.over.wait_until(|| before.is_over.get()).await;
        }
        let now = self.handle.now();
        let since = if stream.plan.counts_from_there { now } else { self.started };
        self.handle.sleep_until(now.max(since + stream.plan.delay)).await;
        let now = self.handle.now();
        self.recorder.borrow_mut().begin(index, now);
        let mut clients = Vec::new();
        for (number, job) in stream.jobs.iter().enumerate() {
            job.source.borrow_mut().begin(now);
            clients.extend((0..stream.plan.clients).map(|_| {
                let client = Rc::clone(&self).client(index, number);
                self.handle.spawn("client", client)
            }));
        }
        for client in clients {
            client.await;
        }
        stream.is_over.set(true);
        stream.over.notify_all();
    }

    /// Executes operations of one job of a stream, one at a time.
    async fn client(self: Rc<Self>, index: usize, job: usize) {
        let stream = &self.streams[index];
        let job = &stream.jobs[job];
        let mut oldest = Vec::new();
        loop {
            if let Some(thinking) = &job.thinking {
                thinking.is_over().await;
            }
            let now = self.handle.now();
            let next = job.source.borrow_mut().next(now);
            let Some(operation) = next else {
                let failure = job.source.borrow_mut().failure();
                if let Some(failure) = failure {
                    self.fail(&format!("stream {}: {failure}", stream.plan.name));
                }
                break;
            };
            if operation.at > now {
                self.handle.sleep_until(operation.at).await;
            }
            if self.is_stopped() {
                break;
            }
            job.late.set(self.handle.now().saturating_since(operation.at));
            let Some(thinking) = &job.thinking else {
                if self.done(index, job, &operation, &mut oldest).await {
                    continue;
                }
                break;
            };
            thinking.begun();
            let goes_on = self.done(index, job, &operation, &mut oldest).await;
            let until = job.source.borrow().until();
            thinking.ended(&self.handle, until).await;
            if !goes_on {
                break;
            }
        }
    }

    /// Executes an operation, and the write and flush that follow it. Returns whether the job
    /// continues.
    async fn done(
        &self,
        index: usize,
        job: &OfJob<D>,
        operation: &Operation,
        oldest: &mut Vec<u32>,
    ) -> bool {
        let stream = &self.streams[index];
        let place = Place::of(&stream.plan, operation);
        let Operation { at, direction, .. } = *operation;
        let done = match direction {
            Direction::Read => self.read(job, &place, oldest).await,
            Direction::Write => self.write(job, &place).await,
            Direction::Trim => self.trim(job, &place).await,
            Direction::Flush => self.flush(stream, job).await,
        };
        if !self.ended(index, &place, direction, at, done) {
            return false;
        }
        if operation.is_written_after {
            let since = self.handle.now();
            let done = self.write(job, &place).await;
            if !self.ended(index, &place, Direction::Write, since, done) {
                return false;
            }
        }
        let has_written = direction == Direction::Write || operation.is_written_after;
        if has_written && job.flush_is_due(stream.plan.flush_every) {
            let since = self.handle.now();
            let done = self.flush(stream, job).await;
            return self.ended(index, &place, Direction::Flush, since, done);
        }
        true
    }

    async fn read(
        &self,
        job: &OfJob<D>,
        place: &Place,
        oldest: &mut Vec<u32>,
    ) -> Result<(), DeviceError> {
        let Place { set, first, .. } = *place;
        let blocks = place.data_blocks();
        if !self.verifies {
            return job.device.read(set, first, blocks, IoClass::ClientRead).await.map(drop);
        }
        let ledger = &self.ledgers[place.ledger];
        ledger.borrow().begin_read(first, blocks, oldest);
        let read = job.device.read(set, first, blocks, IoClass::ClientRead).await?;
        let checked = ledger.borrow().end_read(first, &read, oldest);
        self.checked(blocks, checked);
        Ok(())
    }

    async fn write(&self, job: &OfJob<D>, place: &Place) -> Result<(), DeviceError> {
        let Place { set, first, .. } = *place;
        let blocks = place.data_blocks();
        if !self.verifies {
            let blocks = vec![self.unchecked.clone(); blocks as usize];
            return job.device.write(set, first, blocks, WRITES, Force::No).await;
        }
        let ledger = &self.ledgers[place.ledger];
        let stamped = ledger.borrow_mut().begin_write(first, blocks);
        job.device.write(set, first, stamped, WRITES, Force::No).await?;
        ledger.borrow_mut().end_write(first, blocks);
        Ok(())
    }

    async fn trim(&self, job: &OfJob<D>, place: &Place) -> Result<(), DeviceError> {
        let Place { set, first, blocks, .. } = *place;
        let range = first..first + blocks;
        let ledger = &self.ledgers[place.ledger];
        if self.verifies {
            ledger.borrow_mut().begin_discard(range.clone());
        }
        job.device.discard(set, first, blocks).await?;
        if self.verifies {
            ledger.borrow_mut().end_discard(&range);
        }
        Ok(())
    }

    /// Flushes all sets of a stream concurrently.
    async fn flush(&self, stream: &Stream<D>, job: &OfJob<D>) -> Result<(), DeviceError> {
        if let [(set, _)] = stream.plan.sets[..] {
            return job.device.flush(set).await;
        }
        let sets = stream.plan.sets.iter().map(|(set, _)| *set);
        let flushes: Vec<_> =
            sets.map(|set| self.handle.spawn("flush", job.device.flush(set))).collect();
        let mut all = Ok(());
        for flush in flushes {
            all = all.and(flush.await);
        }
        all
    }

    fn checked(&self, blocks: u32, result: Result<(), Mismatch>) {
        let mut checks = self.checks.borrow_mut();
        checks.blocks += u64::from(blocks);
        if let Err(mismatch) = result {
            checks.mismatches += 1;
            checks.first_mismatch.get_or_insert(mismatch);
        }
    }

    /// Records an operation that has ended, with its latency from `since`. Returns whether the job
    /// continues.
    fn ended(
        &self,
        index: usize,
        place: &Place,
        direction: Direction,
        since: Nanos,
        done: Result<(), DeviceError>,
    ) -> bool {
        let (now, plan) = (self.handle.now(), &self.streams[index].plan);
        if let Err(error) = done {
            self.fail(&format!("a {} of stream {}: {error}", direction.name(), plan.name));
            return false;
        }
        let blocks = if direction == Direction::Flush { 0 } else { place.blocks };
        let mut recorder = self.recorder.borrow_mut();
        let operations = recorder.ended((index, place.set), direction, blocks, since, now);
        drop(recorder);
        if operations.is_multiple_of(PROGRESS_STEP) {
            self.tell_progress(now);
        }
        true
    }

    /// Reports the progress of the job, strictly between 0 and 1: these two are reported once each.
    fn tell_progress(&self, now: Nanos) {
        let jobs = self.streams.iter().flat_map(|stream| &stream.jobs);
        let of_jobs = jobs.map(|job| job.source.borrow().progress(now));
        let least = of_jobs.fold(0.999, f64::min);
        (self.progress.borrow_mut())(least.max(1e-9));
    }

    /// Notes a failure if it is the first, and ends all streams.
    fn fail(&self, words: &str) {
        let at = (self.handle.now() - self.started).as_secs_f64();
        let words = format!("{at:.6} s into the job, {words}");
        self.first_error.borrow_mut().get_or_insert(words);
        for stream in &self.streams {
            stream.stop();
        }
    }

    /// Whether a stop is requested. The job counts as interrupted only if it had work left.
    fn is_stopped(&self) -> bool {
        let is_stopped = self.stop.is_asked();
        if is_stopped && !self.is_interrupted.replace(true) {
            for stream in &self.streams {
                stream.stop();
            }
        }
        is_stopped
    }

    /// Executes the window commands of a set.
    async fn step(self: Rc<Self>, plan: WindowPlan) {
        for (at, to) in plan.steps {
            self.handle.sleep_until(self.started + at).await;
            if self.is_stopped() {
                return;
            }
            if let Err(error) = self.select(plan.set, to).await {
                return self.fail(&format!("set {} to {}: {error}", plan.set, to.name()));
            }
        }
    }

    async fn select(&self, set: SetId, to: WindowName) -> Result<(), DeviceError> {
        let log = self.device.plm_log(set, true).await?;
        let asked = self.handle.now();
        let left = self.recorder.borrow().left(set);
        if to == WindowName::Ndwin {
            self.recorder.borrow_mut().window(set, to, asked, left);
        }
        self.device.select_window(set, to.into()).await?;
        let now = self.handle.now();
        self.recorder.borrow_mut().window(set, to, now, left);
        let estimate = log.lockdown_estimate_us;
        self.windows.borrow_mut().push(WindowReport {
            set,
            to,
            asked: asked - self.started,
            lockdown_estimate: estimate.map(|us| Nanos::from_micros(us.get())),
            from: log.status,
            reached: now - self.started,
        });
        Ok(())
    }
}
