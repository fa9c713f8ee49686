//! What a process with a store takes of memory beside a writer that goes flat out.

use levelhead::{Durability, Options};

use crate::scratch::{Scratch, killed_while, open, small};

const OPTIONS: [u64; 3] = [16 << 20, 4 << 20, 4 << 20];
const PUTS: u32 = 160_000;
const KEYS: u32 = 60_000;

fn key(n: u32) -> Vec<u8> {
    format!("user{:028}", n.wrapping_mul(2_654_435_761) % KEYS).into_bytes()
}

/// Most resident memory of this process so far, in MiB.
fn most_resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("this is Linux");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("the kernel says it");
    let kib = line.split_whitespace().nth(1).expect("a number follows");
    kib.parse::<u64>().expect("it is one") / 1024
}

/// Puts values of 1 KiB, reads some, and says how much memory that took.
#[test]
#[ignore = "another test runs it, in a process of its own"]
fn puts_and_says_what_it_takes() {
    let scratch = Scratch::new();
    let [memory_bytes, value_cache_bytes, memtable_bytes] = OPTIONS;
    let options = Options {
        capacity_bytes: 1 << 30,
        memory_bytes,
        value_cache_bytes,
        memtable_bytes,
        durability: Durability::None,
        expected_key_bytes: 32,
        expected_value_bytes: 1024,
        ..small()
    };
    let store = open(scratch.path(), &options);
    for n in 0..PUTS {
        store.put(&key(n), &[n as u8; 1024]).expect("there is room");
        if n % 8 == 0 {
            let found = store.get(&key(n / 2)).expect("it can be read");
            assert!(found.is_some_and(|value| value.len() == 1024));
        }
    }
    println!("acknowledged {}", most_resident());
}

/// By the rule in the documentation of [`Options`].
#[test]
fn a_process_takes_no_more_than_is_said() {
    let [memory_bytes, _, memtable_bytes] = OPTIONS;
    let allowed = (memory_bytes + 4 * memtable_bytes + (32 << 20)) >> 20;
    let taken = killed_while("memory::puts_and_says_what_it_takes", u64::MAX);
    let taken = taken.expect("the other process came to its end");
    println!("{taken} MiB, {allowed} MiB are allowed");
    assert!(u64::from(taken) <= allowed, "{taken} MiB, {allowed} MiB are allowed");
}
