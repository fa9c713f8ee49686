//! The load and the overwrite that `docs/db_bench.md` measures with the real `RocksDB`, by the preset
//! `rocksdb` on a simulated drive.
//!
//! ```text
//! cargo run --release -p lab --example db_bench -- [puts per second] [pairs] [merge ns per entry]
//! ```
//! Puts per second: 0 is as fast as one client can. The last number is what the processor takes to merge an
//! entry: it sets how fast compaction is beside the client.

use std::rc::Rc;

use block::nvme::SetId;
use engine::{Engine, Options, Setup};
use pages::{Cpu, CpuCosts, EngineStats, StoreId, Surroundings, Value, WriteOptions};
use runtime::{Cores, Handle, Nanos, Rng, Runtime};
use ssd::{Precondition, Ssd, SsdProfile};
use volume::{BlockRange, RangeOptions};

type Store = Engine<BlockRange<Ssd>>;

const KEY_BYTES: u32 = 16;
const VALUE_BYTES: u32 = 400;
const PAGE_BYTES: u64 = 8 << 10;
const EXTENT_PAGES: u32 = 1 << 10;

/// What the program was asked for.
#[derive(Clone, Copy)]
struct Asked {
    puts_per_second: u64,
    pairs: u64,
    merge_entry_ns: u64,
}

fn open(handle: &Handle, ssd: &Ssd, profile: &SsdProfile, asked: Asked) -> Store {
    let range = RangeOptions {
        set: SetId::new(1).expect("numbers begin with 1"),
        first_block: 0,
        page_blocks: 2,
        pages_per_extent: EXTENT_PAGES,
        extents: (profile.user_bytes / PAGE_BYTES / u64::from(EXTENT_PAGES)) as u32,
        parallelism: 64,
    };
    // Of a core of that machine; assumed.
    let costs = CpuCosts {
        memtable_ns: 3_000.0,
        prefix_compare_ns: 5.0,
        key_compare_ns: 20.0,
        merge_entry_ns: asked.merge_entry_ns as f64,
        filter_build_ns: 50.0,
        filter_probe_ns: 150.0,
        pack_object_ns: 100.0,
        hash_key_ns: 20.0,
        page_read_ns: 1_300.0,
    };
    let cores = Rc::new(Cores::new(handle.clone(), 4, Nanos::from_micros(10)));
    let setup = Setup {
        handle: handle.clone(),
        medium: BlockRange::new(ssd.clone(), range).expect("the drive has a set"),
        options: Options::rocksdb(),
        surroundings: Surroundings {
            index_dram_bytes: 1 << 30,
            iterator_dram_bytes: 0,
            expected_key_bytes: KEY_BYTES,
            expected_value_bytes: VALUE_BYTES,
        },
        cpu: Cpu { cores, costs },
        accelerator: None,
        planted: engine::Planted::default(),
        id: StoreId(1),
    };
    Engine::create(setup).unwrap_or_else(|error| panic!("{error}"))
}

/// Puts pairs with keys drawn at random, at the rate that is asked for.
async fn fill(store: &Store, handle: &Handle, asked: Asked, rng: &mut Rng) {
    let started = handle.now();
    for put in 0..asked.pairs {
        if let Some(due) = (put * 1_000_000_000).checked_div(asked.puts_per_second) {
            handle.sleep_until(started + Nanos(due)).await;
        }
        let key = format!("{:016}", rng.below(asked.pairs));
        let value = Value::Synthetic { seed: put, len: VALUE_BYTES };
        let done = store.put(key.as_bytes(), value, WriteOptions::default(), Nanos::ZERO).await;
        done.unwrap_or_else(|error| panic!("put {put}: {error}; {}", store.background()));
    }
}

/// One line of figures: what was done since `before`, by byte of user data.
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
    let rt = Runtime::new(1);
    let handle = rt.handle();
    let ssd = Ssd::new(&handle, &profile, Precondition::Empty);
    rt.block_on(async move {
        let store = open(&handle, &ssd, &profile, asked);
        let user_bytes = asked.pairs * u64::from(KEY_BYTES + VALUE_BYTES);
        let rng = &mut Rng::new(7);
        for phase in ["fillrandom", "overwrite"] {
            let (before, started) = (store.stats(), handle.now());
            fill(&store, &handle, asked, rng).await;
            let seconds = (handle.now() - started).as_secs_f64();
            println!("{phase}: {:.0} puts per second", asked.pairs as f64 / seconds);
            show("  at the last put", &store, &before, user_bytes);
            store.flush().await;
            store.settle().await;
            show("  settled", &store, &before, user_bytes);
        }
    });
}
