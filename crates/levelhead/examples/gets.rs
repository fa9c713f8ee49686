//! Uniform random gets from a store on files, alone and beside a writer: rates and percentiles.
//!
//! ```text
//! cargo run --release -p levelhead --example gets -- DIRECTORY [PAIRS] [SECONDS]
//! ```
//! Puts pairs of 32-byte keys and 1 KiB values if the directory has no store. Checks each value.

#![expect(clippy::disallowed_methods, reason = "it measures real time, on threads of its own")]
#![expect(clippy::disallowed_types, reason = "see above")]

use std::error::Error;
use std::fs::OpenOptions;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use levelhead::{Durability, Options, Store};

fn key(n: u64) -> [u8; 32] {
    let mut key = *b"user0000000000000000000000000000";
    let hashed = runtime::mix64(n);
    key[4..].copy_from_slice(format!("{hashed:020}{n:08}").as_bytes());
    key
}

fn value(n: u64, version: u64) -> Vec<u8> {
    let mut value = vec![0; 1024];
    for (i, word) in value.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&runtime::mix64(n ^ version << 40 ^ i as u64).to_le_bytes());
    }
    value[..8].copy_from_slice(&n.to_le_bytes());
    value
}

fn load(store: &Store, pairs: u64) -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    for n in 0..pairs {
        store.put_with(&key(n), &value(n, 0), Durability::Interval)?;
    }
    let loaded = begun.elapsed();
    store.settle();
    let rate = pairs as f64 / loaded.as_secs_f64();
    println!(
        "load: {rate:.0} puts/s; settled after {:.1} s",
        begun.elapsed().saturating_sub(loaded).as_secs_f64()
    );
    Ok(())
}

/// Returns a different number on each call, so that no two turns use the same random keys.
fn turn() -> u64 {
    static TURNS: AtomicU64 = AtomicU64::new(0);
    TURNS.fetch_add(1, Ordering::Relaxed) << 8
}

/// Runs gets on `threads` threads for `span`. Returns the latency of each, in nanoseconds.
fn gets(store: &Store, pairs: u64, threads: u64, span: Duration) -> Vec<u64> {
    let one = |thread: u64| {
        let mut rng = runtime::Rng::derive(thread + turn(), "gets");
        let (begun, mut taken) = (Instant::now(), Vec::new());
        while begun.elapsed() < span {
            let n = rng.below(pairs);
            let asked = Instant::now();
            let found = store.get(&key(n)).expect("it can be read").expect("it is there");
            taken.push(asked.elapsed().as_nanos() as u64);
            assert_eq!(found[..8], n.to_le_bytes(), "another one's value");
        }
        taken
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|thread| scope.spawn(move || one(thread))).collect();
        all.into_iter().flat_map(|thread| thread.join().expect("it ends")).collect()
    })
}

/// Measures multi-gets and ranges in both directions, in pairs per second.
fn many(store: &Store, pairs: u64, span: Duration) -> Result<(), levelhead::Error> {
    let mut rng = runtime::Rng::derive(7, "many");
    let (begun, mut count) = (Instant::now(), 0);
    while begun.elapsed() < span {
        let keys: Vec<_> = (0..64).map(|_| key(rng.below(pairs))).collect();
        count += store.multi_get(&keys)?.iter().flatten().count();
    }
    println!("64 keys at a time: {:.0} gets/s", count as f64 / begun.elapsed().as_secs_f64());
    for is_reversed in [false, true, false, true] {
        let (begun, mut count, mut range) = (Instant::now(), 0_u64, store.range(..));
        while begun.elapsed() < span {
            let Some(pair) = (if is_reversed { range.next_back() } else { range.next() }) else {
                break;
            };
            pair?;
            count += 1;
        }
        let rate = count as f64 / begun.elapsed().as_secs_f64();
        println!("a range, {}: {rate:.0} pairs/s", if is_reversed { "down" } else { "up" });
    }
    Ok(())
}

/// Measures the lower bound of a get: one read of a random page of the store's file, past the page
/// cache.
fn reads(file: &Path, threads: u64, span: Duration) -> std::io::Result<Vec<u64>> {
    const PAGE: usize = 4096;
    const DIRECT: i32 = 0x4000;
    let file = OpenOptions::new().read(true).custom_flags(DIRECT).open(file)?;
    let pages = file.metadata()?.blocks() * 512 / PAGE as u64;
    let one = |thread: u64| {
        let mut page = runtime::PageImage::zeroed(PAGE, PAGE);
        let bytes = page.bytes_mut().expect("nobody shares it");
        let mut rng = runtime::Rng::derive(thread + turn(), "reads");
        let (begun, mut taken) = (Instant::now(), Vec::new());
        while begun.elapsed() < span {
            let at = rng.below(pages) * PAGE as u64;
            let asked = Instant::now();
            file.read_exact_at(bytes, at).expect("it can be read");
            taken.push(asked.elapsed().as_nanos() as u64);
        }
        taken
    };
    Ok(std::thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|thread| scope.spawn(move || one(thread))).collect();
        all.into_iter().flat_map(|thread| thread.join().expect("it ends")).collect()
    }))
}

/// Alternates gets and plain reads every tenth of a second, because the speed of a drive changes
/// from one second to the next.
fn in_turns(
    store: &Store,
    file: &Path,
    pairs: u64,
    threads: u64,
    span: Duration,
) -> Result<(), Box<dyn Error>> {
    const TURN: Duration = Duration::from_millis(100);
    let (mut of_reads, mut of_gets) = (Vec::new(), Vec::new());
    for _ in 0..(span.as_millis() / TURN.as_millis()).max(1) {
        of_reads.extend(reads(file, threads, TURN)?);
        of_gets.extend(gets(store, pairs, threads, TURN));
    }
    say(&format!("{threads} threads, nothing but reads"), of_reads, span);
    say(&format!("{threads} threads"), of_gets, span);
    Ok(())
}

fn say(what: &str, mut taken: Vec<u64>, span: Duration) {
    taken.sort_unstable();
    let at = |share: f64| taken[((taken.len() - 1) as f64 * share) as usize] as f64 / 1e3;
    println!(
        "{what}: {:.0} gets/s, p50 {:.1} us, p99 {:.1}, p99.9 {:.1}, longest {:.0}",
        taken.len() as f64 / span.as_secs_f64(),
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    );
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = PathBuf::from(arguments.next().ok_or("which directory?")?);
    let pairs = arguments.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let seconds = arguments.next().map_or(Ok(5.0), |text| text.parse())?;
    let span = Duration::from_secs_f64(seconds);
    let store = Store::open(&directory, &Options { value_cache_bytes: 0, ..Options::default() })?;
    if store.get(&key(pairs - 1))?.is_none() {
        load(&store, pairs)?;
    }
    for threads in [1, 2] {
        in_turns(&store, &directory.join("data"), pairs, threads, span)?;
    }
    many(&store, pairs, span)?;
    for (what, pause) in
        [("5,000 puts/s", Duration::from_micros(200)), ("a writer flat out", Duration::ZERO)]
    {
        let (is_over, before) = (AtomicBool::new(false), store.statistics().writes);
        let taken = std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut rng = runtime::Rng::derive(9, "puts");
                let (begun, mut due) = (Instant::now(), Duration::ZERO);
                while !is_over.load(Ordering::Relaxed) {
                    let n = rng.below(pairs);
                    let put = store.put_with(&key(n), &value(n, 1), Durability::Interval);
                    put.expect("there is room");
                    due += pause;
                    std::thread::sleep(due.saturating_sub(begun.elapsed()));
                }
            });
            let taken = gets(&store, pairs, 1, span);
            is_over.store(true, Ordering::Relaxed);
            taken
        });
        let puts = (store.statistics().writes - before) as f64 / seconds;
        say(&format!("beside {what} ({puts:.0} puts/s)"), taken, span);
    }
    println!("{:?}", store.statistics());
    store.close()?;
    Ok(())
}
