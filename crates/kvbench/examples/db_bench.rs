//! Runs the load and the overwrite that `docs/db_bench.md` measures with the real `RocksDB`, with
//! the options of `rocksdb` on a simulated drive.
//!
//! ```text
//! cargo run --release -p kvbench --example db_bench -- \
//!     [puts per second] [pairs] [merge ns per entry] [limit]
//! ```
//! Puts per second are the offered rate; 0 is as fast as one client can put. The merge time is that
//! of the processor for one entry: it determines how fast compaction is relative to the client. The
//! limit applies to the writes of flushes and compactions: a number of bytes per second for
//! `RocksDB`'s rate limiter (0 is no limit), or `silk:` and the drive's bandwidth in bytes per
//! second.

mod drive;

use drives::ssd::{Precondition, Ssd, SsdProfile};
use engine::{EngineStats, Options, Value, WriteOptions};
use runtime::{Handle, Nanos, Rng, Runtime};
use stacks::limiter::LimiterOptions;

use crate::drive::{PAGE_BYTES, Pair, Store};

const KEY_BYTES: u32 = 16;
const VALUE_BYTES: u32 = 400;
const PAIR: Pair = Pair { key_bytes: KEY_BYTES, value_bytes: VALUE_BYTES };

/// The arguments of the program.
#[derive(Clone, Copy)]
struct Asked {
    puts_per_second: u64,
    pairs: u64,
    merge_entry_ns: u64,
}

/// Returns the engine's options and the limit on its background I/O.
fn limits(text: &str) -> (Options, LimiterOptions) {
    let number = |text: &str| text.parse::<u64>().expect("a number of bytes a second");
    match text.strip_prefix("silk:") {
        Some(bandwidth) => {
            (Options::silk(), LimiterOptions::silk(number(bandwidth), "as asked for"))
        }
        None if number(text) == 0 => (Options::rocksdb(), LimiterOptions::rocksdb()),
        None => (Options::rocksdb(), LimiterOptions::rate_limiter(number(text))),
    }
}

/// A put that takes at least this long has stalled; a slow put takes a few hundred microseconds.
const STALL: Nanos = Nanos::from_millis(2);

/// Puts pairs with random keys at the offered rate. Returns the number of stalled puts, their total
/// duration and the longest of these durations.
async fn fill(store: &Store, handle: &Handle, asked: Asked, rng: &mut Rng) -> (u64, Nanos, Nanos) {
    let started = handle.now();
    let (mut stalls, mut stalled, mut longest) = (0, Nanos::ZERO, Nanos::ZERO);
    for put in 0..asked.pairs {
        if let Some(due) = (put * 1_000_000_000).checked_div(asked.puts_per_second) {
            handle.sleep_until(started + Nanos(due)).await;
        }
        let key = format!("{:016}", rng.below(asked.pairs));
        let value = Value::Synthetic { seed: put, len: VALUE_BYTES };
        let began = handle.now();
        let done = store.put(key.as_bytes(), value, WriteOptions::default(), Nanos::ZERO).await;
        done.unwrap_or_else(|error| panic!("put {put}: {error}; {}", store.background()));
        let took = handle.now() - began;
        if took >= STALL {
            (stalls, stalled, longest) = (stalls + 1, stalled + took, longest.max(took));
        }
    }
    (stalls, stalled, longest)
}

/// Prints a line about the work since `before`, per byte of user data.
fn show(what: &str, store: &Store, before: &EngineStats, user_bytes: u64) {
    let now = store.stats();
    let per_byte = |now: u64, before: u64| ((now - before) * PAGE_BYTES) as f64 / user_bytes as f64;
    let jobs: Vec<u64> =
        now.compactions.iter().zip(&before.compactions).map(|(now, then)| now - then).collect();
    let mib: Vec<u64> =
        store.levels().iter().map(|(pages, _)| (pages * PAGE_BYTES) >> 20).collect();
    let (new, old) = (now.tables, before.tables);
    println!(
        "{what}: flushed {:.3}, compaction wrote {:.2} and read {:.2}; {} flushes, compactions from L0 \
         on {jobs:?}, {} tables moved, {} within L0, at most {} in L0; {} writes stalled for {:.2} s; \
         levels {mib:?} MiB",
        per_byte(new.flushed_pages, old.flushed_pages),
        per_byte(new.written_pages, old.written_pages),
        per_byte(new.read_pages, old.read_pages),
        now.flushes - before.flushes,
        new.moves - old.moves,
        new.intra_l0 - old.intra_l0,
        new.most_in_l0,
        now.stalls - before.stalls,
        (now.stalled - before.stalled).as_secs_f64(),
    );
}

fn main() {
    let number = |at: usize, default: u64| {
        std::env::args().nth(at).map_or(default, |text| text.parse().expect("a number"))
    };
    let asked = Asked {
        puts_per_second: number(1, 0),
        pairs: number(2, 5_000_000),
        merge_entry_ns: number(3, 2_000),
    };
    let profile = SsdProfile::load("baseline-15gb").expect("built in");
    let limit = std::env::args().nth(4).unwrap_or_else(|| "0".to_owned());
    let (options, limits) = limits(&limit);
    let rt = Runtime::new(1);
    let handle = rt.handle();
    let ssd = Ssd::new(&handle, &profile, Precondition::Empty);
    rt.block_on(async move {
        let medium = drive::limited(&handle, &ssd, &profile, &limits);
        let merge_ns = asked.merge_entry_ns as f64;
        let store = drive::open(&handle, medium.clone(), options, PAIR, merge_ns);
        let user_bytes = asked.pairs * u64::from(KEY_BYTES + VALUE_BYTES);
        let rng = &mut Rng::new(7);
        for phase in ["fillrandom", "overwrite"] {
            let (before, started) = (store.stats(), handle.now());
            let (stalls, stalled, longest) = fill(&store, &handle, asked, rng).await;
            let seconds = (handle.now() - started).as_secs_f64();
            println!(
                "{phase}: {:.0} puts per second; {stalls} puts of {STALL} or more, {:.2} s in all, at \
                 most {:.2} s",
                asked.pairs as f64 / seconds,
                stalled.as_secs_f64(),
                longest.as_secs_f64(),
            );
            show("  at the last put", &store, &before, user_bytes);
            let put = handle.now();
            store.flush().await;
            store.settle().await;
            println!("  settled after {:.0} s", (handle.now() - put).as_secs_f64());
            show("  settled", &store, &before, user_bytes);
            println!("  {:?}", medium.stats());
        }
    });
}
