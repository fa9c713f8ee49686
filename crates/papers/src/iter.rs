//! IterKVSSD's experiments (SYSTOR'23): seekrandom of `db_bench` on 3 M pairs with 4-byte keys, one
//! outstanding request. Each stand holds values of one size in one layout; the prefetch degree and
//! the index prefetch change between runs.

mod bounds;
mod measured;
pub(crate) mod report;
mod size;

use engine::{ColumnOptions, Engine, IteratorOptions, Options};
use runtime::IoClass;
use serde::{Deserialize, Serialize};
use serde_json::json;
use stacks::design::{Design, IndexOptions};
use stacks::kvssd::{DeviceProfile, IteratorHandle, RawFlash};
use workload::{CoreWorkload, Properties};

use crate::failure::Failure;
use crate::iter::bounds::Board;
use crate::iter::measured::{
    Index, Layout, LongRun, LongRuns, Measured, OnStand, Run, Swept, Tail, VersionMemory,
};
use crate::iter::size::{
    DEGREE_SCAN, DEGREES, FIXED_BESIDE_READ_US, FIXED_US, ITERATORS, LENGTHS, LONG_SCAN, READ_US,
    SIZES, SUMMARY_ENTRY_BYTES, SWEPT_BYTES, Size, TAIL_BYTES, device,
};
use crate::jobs::{Job, run_those_asked_for};
use crate::kept::kept;
use crate::plan::Plan;
use crate::settings;
use crate::stand::{Stand, StandSpec};

#[derive(Serialize, Deserialize)]
enum Outcome {
    Stand(Box<OnStand>),
    Tail(Box<Tail>),
    Swept(Swept),
    Versions(u64, Vec<VersionMemory>),
}

/// Runs all experiments, or those that the plan selects. Returns `None` if some were not run.
pub(super) fn measure(plan: &Plan<'_>) -> Result<Option<Measured>, Failure> {
    measure_in(plan, Size::of(plan.scale))
}

fn measure_in(plan: &Plan<'_>, size: Size) -> Result<Option<Measured>, Failure> {
    Ok(run_those_asked_for(jobs(plan, size)?, plan)?.map(measured))
}

/// Returns all experiments, the longest first, so that the threads finish at about the same time.
fn jobs<'a>(plan: &Plan<'a>, size: Size) -> Result<Vec<Job<'a, Outcome>>, Failure> {
    let mut jobs = Vec::new();
    for bytes in SIZES.into_iter().rev() {
        for layout in Layout::ALL {
            jobs.push(stand_job(plan, size, bytes, layout)?);
        }
    }
    for layout in Layout::ALL {
        for fixed_us in FIXED_US {
            jobs.push(swept_job(plan, size, Times { fixed_us, read_us: None }, layout)?);
        }
        for read_us in READ_US {
            let times = Times { fixed_us: FIXED_BESIDE_READ_US, read_us: Some(read_us) };
            jobs.push(swept_job(plan, size, times, layout)?);
        }
        for index in Index::ALL {
            jobs.push(tail_job(plan, size, index, layout)?);
        }
    }
    let spec = spec(&size, plan.seed, 128, Layout::Random)?;
    jobs.push(job(plan, "memory of versions".to_owned(), size, spec, |spec| versions(&spec)));
    Ok(jobs)
}

/// Returns a job whose result depends on `spec` and on the size of the experiments.
fn job<'a>(
    plan: &Plan<'a>,
    name: String,
    size: Size,
    spec: StandSpec,
    run: impl FnOnce(StandSpec) -> Result<Outcome, Failure> + Send + 'a,
) -> Job<'a, Outcome> {
    let settings = json!({ "loaded": spec.settings(), "size": settings::plain(&size) });
    kept(plan.keeper, name, settings, move || run(spec))
}

fn stand_job<'a>(
    plan: &Plan<'a>,
    size: Size,
    bytes: u64,
    layout: Layout,
) -> Result<Job<'a, Outcome>, Failure> {
    let name = format!("values of {bytes} B, {} layout", layout.name());
    let spec = spec(&size, plan.seed, bytes, layout)?;
    let values = Values { records: size.records, size: bytes, layout };
    let run = move |spec| Ok(Outcome::Stand(Box::new(on_stand(&spec, &size, values)?)));
    Ok(job(plan, name, size, spec, run))
}

fn swept_job<'a>(
    plan: &Plan<'a>,
    size: Size,
    times: Times,
    layout: Layout,
) -> Result<Job<'a, Outcome>, Failure> {
    let name = format!("{}, {} layout", times.name(), layout.name());
    let mut spec = spec(&size, plan.seed, SWEPT_BYTES, layout)?;
    spec.device = times.of(spec.device);
    let values = Values { records: size.records, size: SWEPT_BYTES, layout };
    let run = move |spec| Ok(Outcome::Swept(swept(&spec, &size, values, times)?));
    Ok(job(plan, name, size, spec, run))
}

fn tail_job<'a>(
    plan: &Plan<'a>,
    size: Size,
    index: Index,
    layout: Layout,
) -> Result<Job<'a, Outcome>, Failure> {
    let name = format!("long scans, {}, {} layout", index.name(), layout.name());
    let options = with_index(index)?;
    let (levels, columns) = (options.levels, options.columns);
    let spec = StandSpec { index: options.into(), ..spec(&size, plan.seed, TAIL_BYTES, layout)? };
    let phases = columns.map_or_else(|| vec![1], |columns| phases(&columns, levels, &spec.device));
    let values = Values { records: size.records, size: TAIL_BYTES, layout };
    let run = move |spec| Ok(Outcome::Tail(Box::new(tail(&spec, &size, values, index, phases)?)));
    Ok(job(plan, name, size, spec, run))
}

/// Collects the outcomes by kind.
fn measured(done: Vec<Outcome>) -> Measured {
    let mut measured = Measured {
        stands: Vec::new(),
        tails: Vec::new(),
        swept: Vec::new(),
        segments: 0,
        versions: Vec::new(),
    };
    for outcome in done {
        match outcome {
            Outcome::Stand(stand) => measured.stands.push(*stand),
            Outcome::Tail(tail) => measured.tails.push(*tail),
            Outcome::Swept(swept) => measured.swept.push(swept),
            Outcome::Versions(segments, versions) => {
                (measured.segments, measured.versions) = (segments, versions);
            }
        }
    }
    measured.stands.sort_by_key(|stand| (stand.size, stand.layout.name()));
    measured
}

fn spec(size: &Size, seed: u64, value_bytes: u64, layout: Layout) -> Result<StandSpec, Failure> {
    Ok(StandSpec {
        index: index_of("iterkvssd")?.into(),
        device: device()?,
        records: seekrandom(size.records, value_bytes, layout, 128, 1)?,
        outstanding: 1,
        seed,
    })
}

fn index_of(design: &str) -> Result<Options, Failure> {
    match Design::load(design).map_err(|error| error.to_string())?.index() {
        IndexOptions::Lsm(options) => Ok(options),
        IndexOptions::Hash(_) => Err(format!("{design} has no order of keys")),
    }
}

/// Times of the board that no source publishes, in microseconds.
#[derive(Clone, Copy)]
struct Times {
    /// Time of firmware and host.
    fixed_us: f64,
    /// Time of a page read; `None` for the time of the profile.
    read_us: Option<f64>,
}

impl Times {
    fn name(self) -> String {
        let fixed = format!("firmware and host of {} us", self.fixed_us);
        self.read_us.map_or(fixed.clone(), |read_us| format!("{fixed}, tR of {read_us} us"))
    }

    /// Returns the board with these times. The ratio between the parts of firmware and host stays
    /// the same.
    fn of(self, mut device: DeviceProfile) -> DeviceProfile {
        let times = self.fixed_us / Board::new(&device).fixed_us;
        device.controller.command_us *= times;
        device.controller.pipeline_us *= times;
        device.host.latency_us *= times;
        if let Some(read_us) = self.read_us {
            device.flash.timing.read_us = vec![read_us];
        }
        device
    }
}

/// Returns the options of the design with a form of the index.
fn with_index(index: Index) -> Result<Options, Failure> {
    let mut tables = index_of("iterkvssd-tables")?;
    let columns = tables.columns.as_mut().expect("it has tables");
    match index {
        Index::Pages => return index_of("iterkvssd"),
        Index::Tables => {}
        Index::WithoutFilter => columns.iterators_read_filters = false,
        Index::SmallTables => columns.growth = 1,
    }
    Ok(tables)
}

fn seekrandom(
    records: u64,
    value_bytes: u64,
    layout: Layout,
    length: u64,
    queries: u64,
) -> Result<CoreWorkload, Failure> {
    let mut properties = workload::builtin("seekrandom").expect("it is built in");
    properties.set("insertorder", layout.insert_order());
    properties.set("levelhead.valuebytes", &value_bytes.to_string());
    properties.set("recordcount", &records.to_string());
    properties.set("operationcount", &queries.to_string());
    properties.set("seeknexts", &length.to_string());
    checked(&properties)
}

fn checked(properties: &Properties) -> Result<CoreWorkload, Failure> {
    CoreWorkload::from_properties(properties).map_err(|error| error.to_string())
}

fn options(index_prefetch: bool, degree: u32) -> IteratorOptions {
    let of_design = index_of("iterkvssd").expect("it is built in");
    IteratorOptions { index_prefetch, value_prefetch: degree, ..of_design.iterators }
}

#[derive(Clone, Copy)]
struct Values {
    records: u64,
    size: u64,
    layout: Layout,
}

impl Values {
    /// Returns a workload of range queries of `length` pairs.
    fn scans(self, length: u64, queries: u64) -> Result<CoreWorkload, Failure> {
        seekrandom(self.records, self.size, self.layout, length, queries)
    }
}

fn on_stand(spec: &StandSpec, size: &Size, values: Values) -> Result<OnStand, Failure> {
    let Size { queries, long_queries, .. } = *size;
    let (mut stand, _) = Stand::load(spec)?;
    let mut run = |degree, length| one_run(&mut stand, values, degree, length, queries);
    let by_degree = DEGREES.map(|degree| run(degree, DEGREE_SCAN)).collect::<Result<_, _>>()?;
    let both = [0, *DEGREES.end()].into_iter();
    let by_length = both
        .flat_map(|degree| LENGTHS.map(|length| (degree, length)))
        .map(|(degree, length)| run(degree, length))
        .collect::<Result<_, _>>()?;
    let mut run =
        |index_prefetch| long_run(&mut stand, values, options(index_prefetch, 0), long_queries);
    let (baseline, with_index) = (run(false)?, run(true)?);
    let Values { size, layout, .. } = values;
    Ok(OnStand { size, layout, by_degree, by_length, baseline, with_index })
}

/// Runs value prefetch on a board with other times.
fn swept(spec: &StandSpec, size: &Size, values: Values, times: Times) -> Result<Swept, Failure> {
    let most = Board::new(&spec.device).most_gain(values.size);
    let (mut stand, _) = Stand::load(spec)?;
    let runs = DEGREES.map(|degree| one_run(&mut stand, values, degree, DEGREE_SCAN, size.queries));
    let Times { fixed_us, read_us } = times;
    let runs = runs.collect::<Result<_, _>>()?;
    Ok(Swept { fixed_us, read_us, layout: values.layout, runs, most })
}

/// Runs long scans with a form of the index.
fn tail(
    spec: &StandSpec,
    size: &Size,
    values: Values,
    index: Index,
    phases: Vec<u32>,
) -> Result<Tail, Failure> {
    let (mut stand, load) = Stand::load(spec)?;
    let of_index = [IoClass::CompactionWrite, IoClass::GcWrite];
    let page_bytes = u64::from(spec.device.flash.geometry.page_bytes);
    let index_bytes = load.pages_programmed(&of_index) * page_bytes;
    Ok(Tail {
        index,
        layout: values.layout,
        runs: long_runs(&mut stand, values, size.tail_queries)?,
        phases,
        index_bytes_per_byte: index_bytes as f64 / load.user_bytes.max(1) as f64,
    })
}

/// Returns the number of pages in each phase of reading a full table of the last level.
fn phases(columns: &ColumnOptions, levels: u32, device: &DeviceProfile) -> Vec<u32> {
    let geometry = &device.flash.geometry;
    let pages =
        columns.pages_of_full_table(levels - 1, 4, geometry.page_bytes + geometry.spare_bytes);
    let first = usize::from(!columns.iterators_read_filters);
    pages[first..].to_vec()
}

fn one_run(
    stand: &mut Stand,
    values: Values,
    degree: u32,
    length: u64,
    queries: u64,
) -> Result<Run, Failure> {
    tree(stand).set_iterator_options(options(true, degree));
    let phase = stand.run(values.scans(length, queries)?)?;
    let bytes_per_second = phase.pairs_per_second * values.size as f64;
    let (seek, next) = (phase.seeks(), phase.nexts());
    Ok(Run { degree, length, bytes_per_second, seek, next })
}

/// Runs long scans with each combination of index prefetch and value prefetch.
fn long_runs(stand: &mut Stand, values: Values, queries: u64) -> Result<LongRuns, Failure> {
    let most = *DEGREES.end();
    let mut run =
        |index_prefetch, degree| long_run(stand, values, options(index_prefetch, degree), queries);
    Ok(LongRuns {
        baseline: run(false, 0)?,
        with_index: run(true, 0)?,
        ahead: run(false, most)?,
        ahead_with_index: run(true, most)?,
    })
}

fn long_run(
    stand: &mut Stand,
    values: Values,
    options: IteratorOptions,
    queries: u64,
) -> Result<LongRun, Failure> {
    tree(stand).set_iterator_options(options);
    let phase = stand.run(values.scans(LONG_SCAN.min(values.records / 2), queries)?)?;
    let next = phase.next.ok_or("a long scan made no Next")?;
    Ok(LongRun {
        next,
        index_reads: phase.iterators.next_index_reads,
        late_prefetches: phase.iterators.index_prefetch_waits,
    })
}

/// Opens iterators one after the other. After each, overwrites random pairs: as many writes as a
/// twentieth of the pairs.
fn versions(spec: &StandSpec) -> Result<Outcome, Failure> {
    let (mut stand, _) = Stand::load(spec)?;
    let mut overwrite = workload::builtin("a").expect("it is built in");
    let records = spec.records.record_count;
    for (name, value) in [
        ("recordcount", records.to_string()),
        ("operationcount", (records / 20).to_string()),
        ("readproportion", "0".to_owned()),
        ("updateproportion", "1".to_owned()),
        ("requestdistribution", "uniform".to_owned()),
        ("insertorder", "hashed".to_owned()),
        ("keyprefix", String::new()),
        ("levelhead.keybytes", "4".to_owned()),
        ("levelhead.keydigits", "binary".to_owned()),
        ("levelhead.valuebytes", "128".to_owned()),
    ] {
        overwrite.set(name, &value);
    }
    let mut measured = Vec::new();
    for count in 1..=ITERATORS {
        let created: Result<IteratorHandle, _> =
            stand.with(|drive| async move { drive.create_iterator(None).await });
        created.map_err(|status| status.to_string())?;
        stand.run(checked(&overwrite)?)?;
        let memory = tree(&stand).snapshot_memory();
        measured.push(VersionMemory {
            pooled: memory.descriptors + memory.views,
            memtables: memory.memtables,
            summaries: count as u64 * segments(&stand) * SUMMARY_ENTRY_BYTES,
        });
    }
    if stand.drive.engine_stats().snapshots_expired > 0 {
        return Err("an iterator expired: the device has too little memory for this".to_owned());
    }
    Ok(Outcome::Versions(segments(&stand), measured))
}

fn tree(stand: &Stand) -> &Engine<RawFlash> {
    stand.drive.engine().lsm().expect("iterators need an order of keys")
}

fn segments(stand: &Stand) -> u64 {
    tree(stand).levels().iter().map(|(segments, _)| segments).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubles::assert_goes_on;
    use crate::iter::report;
    use crate::plan::Paper;

    const TINY: Size = Size { records: 3_000, queries: 1, long_queries: 1, tail_queries: 1 };

    #[test]
    fn a_run_that_was_stopped_goes_on() {
        assert_goes_on(Paper::Iter, "sequential", |plan| {
            let measured = measure_in(plan, TINY)?;
            Ok(measured.map(|measured| report::report(plan, &measured)))
        });
    }
}
