//! IterKVSSD's experiments (SYSTOR'23): seekrandom of `db_bench` on 3 M pairs with 4-byte keys, one
//! request at a time. Each stand holds values of one size in one layout; the degree and the prefetch
//! of the index are set between runs.

use design::{Design, IndexOptions};
use engine::{Engine, IteratorOptions};
use kvssd::{DeviceProfile, IteratorHandle, RawFlash};
use workload::{CoreWorkload, Properties};

use super::iter_measured::{Layout, LongRun, Measured, OnStand, Run, VersionMemory};
use super::jobs::{Job, run_all};
use super::stand::{Failure, Stand, StandSpec};
use super::{Plan, Scale};

/// The board of the paper's group.
pub(super) const DEVICE: &str = "cosmos-plus-4ch";
/// Value sizes of the paper, in bytes.
pub(super) const SIZES: [u64; 4] = [128, 4 << 10, 16 << 10, 128 << 10];
/// Scan lengths of the paper: pairs of a range query.
const LENGTHS: [u64; 5] = [128, 256, 512, 1024, 2048];
/// Degrees of the paper.
pub(super) const DEGREES: std::ops::RangeInclusive<u32> = 0..=8;
/// The scan length at which degrees are compared.
pub(super) const DEGREE_SCAN: u64 = 1024;
/// Long enough, the paper says, that segments are read on the way.
pub(super) const LONG_SCAN: u64 = 200_000;
/// Iterators of the experiment on version memory.
pub(super) const ITERATORS: usize = 16;

/// How large the experiments are.
pub(super) struct Size {
    pub records: u64,
    /// Range queries of each run.
    pub queries: u64,
    /// Long range queries.
    pub long_queries: u64,
}

impl Size {
    pub(super) fn of(scale: Scale) -> Self {
        match scale {
            Scale::Quick => Self { records: 500_000, queries: 50, long_queries: 3 },
            Scale::Paper => Self { records: 3_000_000, queries: 100, long_queries: 20 },
        }
    }
}

/// Bytes of a summary entry as published.
pub(super) const SUMMARY_ENTRY_BYTES: u64 = 44;

enum Outcome {
    Stand(Box<OnStand>),
    Versions(u64, Vec<VersionMemory>),
}

/// Runs all experiments.
pub(super) fn measure(plan: &Plan<'_>) -> Result<Measured, Failure> {
    let (scale, seed) = (plan.scale, plan.seed);
    // The longest first, so that threads end together.
    let mut jobs: Vec<Job<'_, Outcome>> = Vec::new();
    for size in SIZES.into_iter().rev() {
        for layout in Layout::ALL {
            let name = format!("values of {size} B, {} layout", layout.name());
            let run = move || on_stand(scale, seed, size, layout);
            jobs.push(Job::new(name, move || Ok(Outcome::Stand(Box::new(run()?)))));
        }
    }
    jobs.push(Job::new("memory of versions", move || versions(scale, seed)));
    let mut measured = Measured { stands: Vec::new(), segments: 0, versions: Vec::new() };
    for outcome in run_all(jobs, plan.threads, plan.watcher)? {
        match outcome {
            Outcome::Stand(stand) => measured.stands.push(*stand),
            Outcome::Versions(segments, versions) => {
                (measured.segments, measured.versions) = (segments, versions);
            }
        }
    }
    measured.stands.sort_by_key(|stand| (stand.size, stand.layout.name()));
    Ok(measured)
}

fn spec(scale: Scale, seed: u64, value_bytes: u64, layout: Layout) -> Result<StandSpec, Failure> {
    let records = Size::of(scale).records;
    Ok(StandSpec {
        index: Design::load("iterkvssd").map_err(|error| error.to_string())?.index(),
        device: DeviceProfile::load(DEVICE).map_err(|error| error.to_string())?,
        records: seekrandom(records, value_bytes, layout, 128, 1)?,
        outstanding: 1,
        seed,
    })
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
    let IndexOptions::Lsm(of_design) = Design::load("iterkvssd").expect("it is built in").index()
    else {
        unreachable!("iterators need an order of keys")
    };
    IteratorOptions { index_prefetch, value_prefetch: degree, ..of_design.iterators }
}

fn on_stand(scale: Scale, seed: u64, size: u64, layout: Layout) -> Result<OnStand, Failure> {
    let sizes = Size::of(scale);
    let (mut stand, _) = Stand::load(&spec(scale, seed, size, layout)?)?;
    let mut run = |degree: u32, length: u64| -> Result<Run, Failure> {
        tree(&stand).set_iterator_options(options(true, degree));
        let workload = seekrandom(sizes.records, size, layout, length, sizes.queries)?;
        let phase = stand.run(workload)?;
        let bytes_per_second = phase.pairs_per_second * size as f64;
        let (seek, next) = (phase.seeks(), phase.nexts());
        Ok(Run { degree, length, bytes_per_second, seek, next })
    };
    let by_degree = DEGREES.map(|degree| run(degree, DEGREE_SCAN)).collect::<Result<_, _>>()?;
    let both = [0, *DEGREES.end()].into_iter();
    let by_length = both
        .flat_map(|degree| LENGTHS.map(|length| (degree, length)))
        .map(|(degree, length)| run(degree, length))
        .collect::<Result<_, _>>()?;
    let baseline = long_run(&mut stand, &sizes, size, layout, false)?;
    let with_index = long_run(&mut stand, &sizes, size, layout, true)?;
    Ok(OnStand { size, layout, by_degree, by_length, baseline, with_index })
}

/// Long scans without value prefetch.
fn long_run(
    stand: &mut Stand,
    sizes: &Size,
    size: u64,
    layout: Layout,
    index_prefetch: bool,
) -> Result<LongRun, Failure> {
    tree(stand).set_iterator_options(options(index_prefetch, 0));
    let length = LONG_SCAN.min(sizes.records / 2);
    let phase = stand.run(seekrandom(sizes.records, size, layout, length, sizes.long_queries)?)?;
    let next = phase.next.ok_or("a long scan made no Next")?;
    Ok(LongRun {
        next,
        index_reads: phase.iterators.next_index_reads,
        late_prefetches: phase.iterators.index_prefetch_waits,
    })
}

/// Opens iterators one after the other; between two, a part of the pairs is overwritten at random.
fn versions(scale: Scale, seed: u64) -> Result<Outcome, Failure> {
    let spec = spec(scale, seed, 128, Layout::Random)?;
    let (mut stand, _) = Stand::load(&spec)?;
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
