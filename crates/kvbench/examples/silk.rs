//! A load with peaks and valleys, as SILK requires: latencies with `RocksDB`'s scheduling, with a
//! fixed limit on background I/O, and with SILK's scheduling. `docs/db_bench.md` has the results.
//!
//! ```text
//! cargo run --release -p kvbench --example silk -- \
//!     [pairs] [cycles] [peak, operations per second] [valley]
//! ```
//! Half of the operations are gets of random keys, half are puts. Each operation has an intended
//! start, whether or not the previous one has ended, and its latency counts from that start. Peaks
//! and valleys last 5 s each.

mod drive;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use drives::ssd::{Precondition, Ssd, SsdProfile};
use engine::{Filters, Medium, Options, PageNo, Preemption, TableOptions, Value, WriteOptions};
use hdrhistogram::Histogram;
use runtime::{Handle, IoClass, Nanos, Rng, Runtime, join_all};
use stacks::limiter::LimiterOptions;

use crate::drive::{Drive, PAGE_BYTES, Pair, Store};

const PAIR: Pair = Pair { key_bytes: 16, value_bytes: 1_000 };
const CLIENTS: u64 = 256;
/// Duration of a peak, and of a valley.
const SPAN: Nanos = Nanos::from_millis(5_000);
const MERGE_ENTRY_NS: f64 = 1_000.0;

/// The arguments of the program.
#[derive(Clone, Copy)]
struct Asked {
    pairs: u64,
    cycles: u64,
    peak: u64,
    valley: u64,
}

/// Returns `options` with sizes divided by four, and with filters.
fn quarter(options: &Options) -> Options {
    let tables = TableOptions {
        table_bytes: 16 << 20,
        level_base_bytes: 64 << 20,
        max_compaction_bytes: 25 * (16 << 20),
        ..options.tables
    };
    Options { memtable_bytes: 16 << 20, filters: Filters::Bits(10), tables, ..options.clone() }
}

/// Measures the read bandwidth of a drive that was written once, in bytes per second: reads of
/// 2 MiB, as of compactions, eight at a time.
fn measured_bandwidth(profile: &SsdProfile) -> u64 {
    const SECONDS: u64 = 2;
    const RUN: u32 = 256;
    let rt = Runtime::new(1);
    let handle = rt.handle();
    let ssd = Ssd::new(&handle, profile, Precondition::Sequential(1.0));
    let medium = drive::limited(&handle, &ssd, profile, &LimiterOptions::rocksdb());
    let pages = Rc::new(Cell::new(0));
    for reader in 0..8 {
        let (medium, pages) = (medium.clone(), Rc::clone(&pages));
        handle.spawn("reader", async move {
            let shape = medium.shape();
            for run in (reader..shape.extents * shape.pages_per_extent / RUN).step_by(8) {
                medium.read_run(PageNo(run * RUN), RUN, IoClass::CompactionRead).await;
                pages.set(pages.get() + u64::from(RUN));
            }
        });
    }
    rt.run_until(Nanos::from_millis(1_000 * SECONDS));
    pages.get() * PAGE_BYTES / SECONDS
}

/// Latencies of gets and puts in peaks and in valleys, in nanoseconds.
struct Latencies([[Histogram<u64>; 2]; 2]);

impl Latencies {
    fn new() -> Self {
        let none = || Histogram::new_with_bounds(1, 1 << 40, 3).expect("three digits");
        Self([[none(), none()], [none(), none()]])
    }

    fn show(&self) {
        for (when, of) in ["peaks", "valleys"].into_iter().zip(&self.0) {
            for (what, latencies) in ["gets", "puts"].into_iter().zip(of) {
                let us = |quantile| latencies.value_at_quantile(quantile) as f64 / 1e3;
                println!(
                    "  {what} in {when}: {} of mean {:.0}, p50 {:.0}, p99 {:.0}, p99.9 {:.0}, max {:.0} us",
                    latencies.len(),
                    latencies.mean() / 1e3,
                    us(0.5),
                    us(0.99),
                    us(0.999),
                    latencies.max() as f64 / 1e3
                );
            }
        }
    }
}

fn key(rng: &mut Rng, asked: Asked) -> String {
    format!("{:016}", rng.below(asked.pairs))
}

async fn put(store: &Store, key: &str, seed: u64) {
    let value = Value::Synthetic { seed, len: PAIR.value_bytes };
    let done = store.put(key.as_bytes(), value, WriteOptions::default(), Nanos::ZERO).await;
    done.unwrap_or_else(|error| panic!("put: {error}; {}", store.background()));
}

/// Runs a client, which executes each `CLIENTS`-th operation of a span.
async fn run_client(
    store: Store,
    handle: Handle,
    asked: Asked,
    client: u64,
    latencies: Rc<RefCell<Latencies>>,
) {
    let rng = &mut handle.rng(&format!("client {client}"));
    let mut began = handle.now();
    for span in 0..2 * asked.cycles {
        let is_valley = (span % 2) as usize;
        let rate = [asked.peak, asked.valley][is_valley];
        let operations = (rate as f64 * SPAN.as_secs_f64()) as u64;
        for operation in (client..operations).step_by(CLIENTS as usize) {
            let due = began + Nanos(operation * 1_000_000_000 / rate);
            handle.sleep_until(due).await;
            let (key, is_put) = (key(rng, asked), rng.chance(0.5));
            if is_put {
                put(&store, &key, operation).await;
            } else {
                let found = store.get(key.as_bytes(), Nanos::ZERO).await;
                found.unwrap_or_else(|error| panic!("get: {error}"));
            }
            let latency = (handle.now() - due).0;
            latencies.borrow_mut().0[is_valley][usize::from(is_put)].saturating_record(latency);
        }
        began += SPAN;
    }
}

async fn run(store: Store, medium: Drive, handle: Handle, asked: Asked) {
    let rng = &mut Rng::new(7);
    for seed in 0..asked.pairs {
        put(&store, &key(rng, asked), seed).await;
    }
    store.flush().await;
    store.settle().await;
    let before = store.stats();
    let latencies = Rc::new(RefCell::new(Latencies::new()));
    let clients = (0..CLIENTS).map(|client| {
        let latencies = Rc::clone(&latencies);
        run_client(store.clone(), handle.clone(), asked, client, latencies)
    });
    join_all(clients).await;
    latencies.borrow().show();
    let (now, tables, old) = (store.stats(), store.stats().tables, before.tables);
    let mib = |pages: u64| (pages * PAGE_BYTES) >> 20;
    println!(
        "  flushed {} MiB, compaction wrote {} and read {} MiB; compactions {:?}; most in L0 {}; {} stops of {:.1} s \
         in all, {} given up after {} MiB; {} writes stalled, {:.2} s",
        mib(tables.flushed_pages - old.flushed_pages),
        mib(tables.written_pages - old.written_pages),
        mib(tables.read_pages - old.read_pages),
        now.compactions
            .iter()
            .zip(&before.compactions)
            .map(|(now, old)| now - old)
            .collect::<Vec<_>>(),
        tables.most_in_l0,
        tables.yields,
        tables.yielded_ns as f64 / 1e9,
        tables.discarded_jobs,
        mib(tables.discarded_written_pages + tables.discarded_read_pages),
        now.stalls - before.stalls,
        (now.stalled - before.stalled).as_secs_f64(),
    );
    println!("  {:?}", medium.stats());
}

fn main() {
    let number = |at: usize, default: u64| {
        std::env::args().nth(at).map_or(default, |text| text.parse().expect("a number"))
    };
    let asked = Asked {
        pairs: number(1, 200_000),
        cycles: number(2, 2),
        peak: number(3, 36_000),
        valley: number(4, 5_000),
    };
    // SILK was published on a drive of 200 MB/s; a drive of 3 GB/s would need a proportional load.
    let mut profile = SsdProfile::load("baseline-15gb").expect("built in");
    (profile.host.read_mb_per_s, profile.host.write_mb_per_s) = (200.0, 200.0);
    let bandwidth = measured_bandwidth(&profile);
    let source = "measured: compactions' reads of 2 MiB, eight at a time";
    println!("T is {} MB/s, {source}", bandwidth / 1_000_000);
    let silk = || LimiterOptions::silk(bandwidth, source);
    let keeping = || {
        let silk = Options::silk();
        let tables = TableOptions { preemption: Preemption::Keep, ..silk.tables };
        Options { tables, ..silk }
    };
    let variants = [
        ("rocksdb", Options::rocksdb(), LimiterOptions::rocksdb()),
        (
            "rocksdb, a quarter of T",
            Options::rocksdb(),
            LimiterOptions::rate_limiter(bandwidth / 4),
        ),
        ("silk", Options::silk(), silk()),
        ("silk that keeps", keeping(), silk()),
    ];
    for (name, options, limits) in variants {
        println!("{name}");
        let rt = Runtime::new(1);
        let handle = rt.handle();
        let ssd = Ssd::new(&handle, &profile, Precondition::Empty);
        let medium = drive::limited(&handle, &ssd, &profile, &limits);
        let store = drive::open(&handle, medium.clone(), quarter(&options), PAIR, MERGE_ENTRY_NS);
        rt.block_on(run(store, medium, handle.clone(), asked));
    }
}
