//! A test stand: one drive with one design, loaded once, on which workloads run in turn.

mod spec;

use std::io::{BufWriter, Read, Write};

use drives::nand::FlashStats;
use engine::{EngineStats, IteratorStats};
use hdrhistogram::Histogram;
use kvbench::target::DriveTarget;
use runtime::{IoClass, Nanos, Runtime};
use serde_json::Value;
use stacks::kvssd::{DeviceProfile, KvDrive, SavedDrive};
use workload::{ClientOptions, CoreWorkload, LatencySummary, OpKind, RunReport, Session};

use crate::failure::Failure;
use crate::keeper::Keeper;

pub(super) use spec::StandSpec;

/// A loaded drive.
pub(super) struct Stand {
    rt: Runtime,
    pub drive: KvDrive,
    session: Option<Session<DriveTarget>>,
    clients: ClientOptions,
}

/// Results of one phase on a stand, as plain values, so that stands can run in parallel.
#[derive(Clone, Debug)]
pub(super) struct Phase {
    pub operations_per_second: f64,
    /// Pairs that scans returned, per second.
    pub pairs_per_second: f64,
    pub get: Option<Histogram<u64>>,
    pub put: Option<Histogram<u64>>,
    pub scan: Option<Histogram<u64>>,
    pub seek: Option<Histogram<u64>>,
    pub next: Option<Histogram<u64>>,
    /// Number of gets by flash reads.
    pub reads_per_get: Vec<u64>,
    /// Bytes of keys and values written.
    pub user_bytes: u64,
    /// Counters of the iterators.
    pub iterators: IteratorStats,
    /// Extents with objects that garbage collection rewrote.
    collected: u64,
    /// Flash counters at the end and at the start.
    flash: FlashStats,
    flash_before: FlashStats,
}

impl Stand {
    /// Returns a loaded drive on which nothing is under way: the drive that `keeper` has saved, or
    /// a drive that is loaded now and saved. The stand runs on `device`, which is the drive of
    /// `spec`, possibly with other times and costs.
    pub(super) fn loaded(
        keeper: &dyn Keeper,
        name: &str,
        spec: &StandSpec,
        device: &DeviceProfile,
    ) -> Result<Self, Failure> {
        let settings = spec.settings();
        if let Some(file) = keeper.drive(name, &settings) {
            match Self::open(spec, &settings, device, file) {
                Ok(stand) => return Ok(stand),
                Err(why) => keeper.drive_is_useless(name, &why),
            }
        }
        let (stand, _) = Self::load(spec)?;
        stand.run_dry();
        keeper.keep_drive(name, &settings, &mut |file| stand.save(spec, &settings, file));
        if *device == spec.device {
            return Ok(stand);
        }
        if let Some(file) = keeper.drive(name, &settings) {
            drop(stand);
            return Self::open(spec, &settings, device, file);
        }
        let mut bytes = Vec::new();
        stand.save(spec, &settings, &mut bytes)?;
        drop(stand);
        Self::open(spec, &settings, device, &*bytes)
    }

    /// Runs the simulation until nothing is under way. Garbage collection may still run after the
    /// load has settled.
    pub(super) fn run_dry(&self) {
        self.rt.run_until(Nanos::MAX);
    }

    #[cfg(test)]
    pub(super) fn now(&self) -> Nanos {
        self.rt.handle().now()
    }

    fn save(
        &self,
        spec: &StandSpec,
        settings: &Value,
        file: &mut dyn Write,
    ) -> Result<(), Failure> {
        let mut file = BufWriter::new(file);
        let saved = self.drive.save(&self.rt, &spec.device, &settings.to_string(), &[], &mut file);
        saved.map_err(|error| error.to_string())
    }

    fn open(
        spec: &StandSpec,
        settings: &Value,
        device: &DeviceProfile,
        file: impl Read,
    ) -> Result<Self, Failure> {
        let say = |what: String| spec.say(what);
        let saved = SavedDrive::begin(file).map_err(|error| say(error.to_string()))?;
        let asked = settings.to_string();
        if saved.key() != asked {
            return Err(say("the saved drive was loaded with other settings".to_owned()));
        }
        let (rt, drive) =
            saved.open(device, spec.options()).map_err(|error| say(error.to_string()))?;
        let (target, records) = (DriveTarget(drive.clone()), spec.records.clone());
        let session = Session::new(rt.handle(), target, records, spec.seed);
        let mut session = session.map_err(|error| say(error.to_string()))?;
        session.assume_loaded();
        Ok(Self { rt, drive, session: Some(session), clients: spec.clients() })
    }

    /// Starts operations at a rate from now on, independently of earlier operations, with at most
    /// `outstanding` under way.
    pub(super) fn set_rate(&mut self, rate: f64, outstanding: usize) {
        self.clients = ClientOptions::open(rate, outstanding);
    }

    /// Loads the records, and waits until background work has settled.
    pub(super) fn load(spec: &StandSpec) -> Result<(Self, Phase), Failure> {
        let say = |what: String| spec.say(what);
        let rt = Runtime::new(spec.seed);
        let drive = KvDrive::format(&rt.handle(), &spec.device, spec.options());
        let drive = drive.map_err(|error| say(error.to_string()))?;
        let target = DriveTarget(drive.clone());
        let records = spec.records.clone();
        let session = Session::new(rt.handle(), target, records, spec.seed);
        let mut session = session.map_err(|error| say(error.to_string()))?;
        let clients = spec.clients();
        let before = (drive.engine_stats(), drive.flash_stats());
        let (settling, options) = (drive.clone(), clients.clone());
        let (session, report) = rt.block_on(async move {
            let report = session.load(&options, |_, _| {}).await;
            settling.settle().await;
            (session, report)
        });
        let report = report.map_err(|error| say(error.to_string()))?;
        let stand = Self { rt, drive, session: Some(session), clients };
        let phase = stand.phase(&report, before).map_err(say)?;
        Ok((stand, phase))
    }

    /// Runs a workload on the loaded records.
    pub(super) fn run(&mut self, workload: CoreWorkload) -> Result<Phase, Failure> {
        let mut session = self.session.take().expect("a stand has its session between runs");
        let before = (self.drive.engine_stats(), self.drive.flash_stats());
        let clients = self.clients.clone();
        let (session, report) = self.rt.block_on(async move {
            let report = match session.switch(workload) {
                Ok(()) => session.run(&clients, |_, _| {}).await,
                Err(error) => Err(error),
            };
            (session, report)
        });
        self.session = Some(session);
        let report = report.map_err(|error| error.to_string())?;
        self.phase(&report, before)
    }

    /// Runs a function on the drive.
    pub(super) fn with<T: 'static, F: Future<Output = T> + 'static>(
        &self,
        act: impl FnOnce(KvDrive) -> F,
    ) -> T {
        self.rt.block_on(act(self.drive.clone()))
    }

    fn phase(
        &self,
        report: &RunReport,
        before: (EngineStats, FlashStats),
    ) -> Result<Phase, Failure> {
        if let Some(mismatch) = report.mismatches.first() {
            return Err(format!("wrong data, this is a bug: {mismatch}"));
        }
        if let Some(error) = &report.first_error {
            return Err(format!("ended early: {error}"));
        }
        let (engine_before, flash_before) = before;
        let (engine, flash) = (self.drive.engine_stats(), self.drive.flash_stats());
        let seconds = report.elapsed().as_secs_f64();
        let (now, then) = (engine.reads_per_get.counts(), engine_before.reads_per_get.counts());
        Ok(Phase {
            operations_per_second: report.throughput(),
            pairs_per_second: report.scanned_pairs as f64 / seconds.max(f64::MIN_POSITIVE),
            get: report.histogram(OpKind::Get).cloned(),
            put: report.histogram(OpKind::Put).cloned(),
            scan: report.histogram(OpKind::Scan).cloned(),
            seek: report.histogram(OpKind::Seek).cloned(),
            next: report.histogram(OpKind::Next).cloned(),
            reads_per_get: kvbench::difference(now, then),
            user_bytes: engine.user_bytes - engine_before.user_bytes,
            iterators: engine.iterators.since(&engine_before.iterators),
            collected: engine.gc_data_extents - engine_before.gc_data_extents,
            flash,
            flash_before,
        })
    }
}

impl Phase {
    /// Returns a summary of the latencies of gets.
    pub(super) fn gets(&self) -> LatencySummary {
        summary(self.get.as_ref())
    }

    /// Returns a summary of the latencies of puts.
    pub(super) fn puts(&self) -> LatencySummary {
        summary(self.put.as_ref())
    }

    /// Returns a summary of the latencies of range queries.
    pub(super) fn scans(&self) -> LatencySummary {
        summary(self.scan.as_ref())
    }

    /// Returns the number of extents with objects that garbage collection rewrote.
    pub(super) fn collected(&self) -> u64 {
        self.collected
    }

    /// Returns a summary of the latencies of Nexts.
    pub(super) fn nexts(&self) -> LatencySummary {
        summary(self.next.as_ref())
    }

    /// Returns a summary of the latencies of Seeks.
    pub(super) fn seeks(&self) -> LatencySummary {
        summary(self.seek.as_ref())
    }

    /// Returns the mean number of flash reads of a get.
    pub(super) fn mean_reads(&self) -> f64 {
        let gets: u64 = self.reads_per_get.iter().sum();
        let reads: u64 = (0..).zip(&self.reads_per_get).map(|(reads, gets)| reads * gets).sum();
        reads as f64 / gets.max(1) as f64
    }

    /// Returns the maximum number of flash reads of a get.
    pub(super) fn most_reads(&self) -> usize {
        self.reads_per_get.iter().rposition(|gets| *gets > 0).unwrap_or(0)
    }

    /// Returns the pages read for `classes`.
    pub(super) fn pages_read(&self, classes: &[IoClass]) -> u64 {
        let of = |stats: &FlashStats, class| stats.of(class).pages_read;
        classes.iter().map(|class| of(&self.flash, *class) - of(&self.flash_before, *class)).sum()
    }

    /// Returns the pages programmed for `classes`.
    pub(super) fn pages_programmed(&self, classes: &[IoClass]) -> u64 {
        let of = |stats: &FlashStats, class| stats.of(class).pages_programmed;
        classes.iter().map(|class| of(&self.flash, *class) - of(&self.flash_before, *class)).sum()
    }

    /// Returns the share of client reads that found their die occupied by a program or an erase.
    pub(super) fn share_behind_writes(&self) -> f64 {
        let reads = |stats: &FlashStats, blocker| stats.waits(blocker).reads;
        let of = |blocker| reads(&self.flash, blocker) - reads(&self.flash_before, blocker);
        let behind = of(drives::nand::Blocker::Program) + of(drives::nand::Blocker::Erase);
        let all = behind + of(drives::nand::Blocker::None) + of(drives::nand::Blocker::Read);
        behind as f64 / all.max(1) as f64
    }
}

fn summary(histogram: Option<&Histogram<u64>>) -> LatencySummary {
    histogram.map(LatencySummary::of).unwrap_or_default()
}
