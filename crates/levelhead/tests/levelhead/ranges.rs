//! Many concurrent ranges and their memory.

use levelhead::{Durability, Options, Range, Store};

use crate::scratch::{Scratch, open, small};

const KEYS: u32 = 20_000;
const RANGES: u32 = 500;
/// The limits of their total memory in the documentation of [`Range`].
const MEMORY: u64 = 64 << 20;
const BEFORE_GROWTH_ENDS: u64 = 48 << 20;

fn key(n: u32) -> Vec<u8> {
    format!("key {n:06}").into_bytes()
}

fn store(scratch: &Scratch) -> Store {
    let options = Options { capacity_bytes: 256 << 20, ..small() };
    let store = open(scratch.path(), &options);
    for n in 0..KEYS {
        let n = n.wrapping_mul(7_919) % KEYS;
        let value = [n as u8; 1_000];
        store.put_with(&key(n), &value, Durability::None).expect("there is room");
    }
    store.settle();
    store
}

/// Reads `pairs` pairs of a range that has returned all pairs up to `from`. Returns the new
/// position.
fn take(range: &mut Range, from: u32, pairs: u32) -> u32 {
    for n in from..from + pairs {
        let pair = range.next().expect("there are more").expect("it is kept");
        assert_eq!(pair, (key(n).into(), vec![n as u8; 1_000]));
    }
    from + pairs
}

#[test]
fn hundreds_of_short_ranges_may_be_open_and_some_long_ones() {
    let scratch = Scratch::new();
    let store = store(&scratch);
    let mut ranges: Vec<(Range, u32)> = Vec::new();
    for n in 0..RANGES {
        let from = n * 30;
        let mut range = store.range(&key(from)[..]..);
        let at = take(&mut range, from, 3);
        let last = range.next_back().expect("there are more").expect("it is kept");
        assert_eq!(&last.0[..], key(KEYS - 1));
        ranges.push((range, at));
    }
    let inside = store.inside();
    assert_eq!(inside.snapshots, RANGES.into());
    // Four pairs were fetched from each end; each was a read of a page.
    assert!(
        inside.snapshot_bytes <= 2 * u64::from(RANGES) * (32 << 10),
        "{}",
        inside.snapshot_bytes
    );
    // Reads on in all ranges: some get more memory, and the others continue without.
    for _ in 0..3 {
        for (range, at) in &mut ranges {
            *at = take(range, *at, 300);
        }
        let taken = store.inside().snapshot_bytes;
        assert!(taken <= BEFORE_GROWTH_ENDS, "{taken} bytes");
    }
    // New ranges can start even when the memory for growth is used up.
    let mut others: Vec<Range> = (0..RANGES).map(|_| store.range(&key(7)[..]..)).collect();
    for range in &mut others {
        take(range, 7, 1);
    }
    assert!(store.inside().snapshot_bytes <= MEMORY);
    assert_eq!(store.inside().stats.snapshots_expired, 0);
    drop((ranges, others));
    assert_eq!(store.inside().snapshot_bytes, 0);
}

#[test]
fn a_long_range_gets_its_buffer_as_it_is_read_and_keys_alone_need_none() {
    let scratch = Scratch::new();
    let store = store(&scratch);
    let mut keys = store.range(..).keys();
    for n in 0..10_000 {
        assert_eq!(keys.next().expect("there are more").expect("it is kept")[..], key(n));
    }
    let inside = store.inside();
    assert_eq!(inside.snapshot_bytes, 16 << 10);
    let read = (inside.stats.iterators.value_prefetches, inside.stats.iterators.page_hits);
    assert_eq!(read, (0, 0), "values were read");
    drop(keys);
    let mut range = store.range(..);
    take(&mut range, 0, 3_000);
    assert_eq!(store.inside().snapshot_bytes, 2 << 20);
}
