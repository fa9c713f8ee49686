//! Checks that a process with a store and a writer at full speed, with `trim_heap`, uses no more
//! memory than the rule in the documentation of [`Options`] allows. The rule is for glibc's
//! allocator.
//!
//! Another process loads the store and is killed when the log has its maximum length. So the memory
//! in use when the writer starts was allocated during recovery, by a thread that frees nothing
//! afterwards.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use levelhead::{Batch, Durability, Options, Store};

use crate::scratch::{Scratch, open, small, told_while_told, wanted};

/// The size of a store and of its memory.
struct Size {
    name: &'static str,
    memory_mib: u64,
    memtable_mib: u64,
    /// Keys in the store: their index takes about two thirds of the memory.
    keys: u32,
    /// Memtables that the writer fills: enough to replace much of the index.
    memtables: u64,
}

const SIZES: [Size; 3] = [
    Size { name: "small", memory_mib: 16, memtable_mib: 4, keys: 70_000, memtables: 16 },
    Size { name: "middle", memory_mib: 64, memtable_mib: 16, keys: 290_000, memtables: 8 },
    Size { name: "large", memory_mib: 170, memtable_mib: 32, keys: 790_000, memtables: 5 },
];

/// Long keys make the index large quickly.
const KEY_BYTES: u32 = 128;
/// Memtables that the loading process fills before it is killed.
const LAST_MEMTABLES: u64 = 3;
/// Keys in a batch of the load. The values are short, so that loading is fast.
const BATCH: u32 = 500;
/// The environment variables that configure the processes.
const SIZE: &str = "LEVELHEAD_MEMORY_SIZE";
const PLACE: &str = "LEVELHEAD_MEMORY_PLACE";

impl Size {
    fn told() -> Option<&'static Self> {
        let name: String = wanted(SIZE)?;
        SIZES.iter().find(|size| size.name == name)
    }

    fn options(&self) -> Options {
        Options {
            capacity_bytes: 4 << 30,
            memory_bytes: self.memory_mib << 20,
            value_cache_bytes: self.memory_mib << 18,
            memtable_bytes: self.memtable_mib << 20,
            durability: Durability::None,
            trim_heap: true,
            expected_key_bytes: KEY_BYTES,
            expected_value_bytes: 1024,
            ..small()
        }
    }

    fn key(&self, n: u32) -> Vec<u8> {
        let (number, digits) = (n.wrapping_mul(2_654_435_761) % self.keys, KEY_BYTES as usize - 4);
        format!("user{number:0digits$}").into_bytes()
    }

    /// Fills memtables with values of 1 KiB.
    fn fill(&self, store: &Store, memtables: u64) {
        for n in 0..((memtables * self.memtable_mib) << 10) as u32 {
            store.put(&self.key(n.wrapping_mul(31)), &[n as u8; 1024]).expect("there is room");
        }
    }

    /// Returns the memory that the rule in the documentation of [`Options`] allows, in MiB.
    fn allowed(&self) -> u64 {
        self.memory_mib + 4 * self.memtable_mib + 32
    }
}

/// Returns the peak resident memory of this process, in MiB.
fn most_resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("this is Linux");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("the kernel says it");
    let kib = line.split_whitespace().nth(1).expect("a number follows");
    kib.parse::<u64>().expect("it is one") / 1024
}

/// Loads a store and waits to be killed.
#[test]
#[ignore = "another test runs it, in a process of its own"]
fn loads() {
    let Some(size) = Size::told() else { return };
    let place: String = wanted(PLACE).expect("it was told");
    let store = open(place.as_ref(), &size.options());
    let mut batch = Batch::new();
    for n in 0..size.keys {
        batch.put(&size.key(n), &[n as u8; 64]);
        if batch.len() as u32 == BATCH || n + 1 == size.keys {
            store.write(&batch).expect("there is room");
            batch.clear();
        }
    }
    size.fill(&store, LAST_MEMTABLES);
    println!("acknowledged 0");
    thread::park();
}

/// Puts values of 1 KiB, reads on another thread, and prints the memory used.
#[test]
#[ignore = "another test runs it, in a process of its own"]
fn puts_and_says_what_it_takes() {
    let Some(size) = Size::told() else { return };
    let place: String = wanted(PLACE).expect("it was told");
    let store = open(place.as_ref(), &size.options());
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for n in (0..).step_by(7) {
                store.get(&size.key(n)).expect("it can be read");
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        size.fill(&store, size.memtables);
        is_over.store(true, Ordering::Relaxed);
    });
    println!("acknowledged {}", most_resident());
}

/// Runs the test `name` in a separate process on a store of that size, and kills it after its first
/// output. Returns the number printed.
fn said(name: &str, size: &Size, scratch: &Scratch) -> u64 {
    let told = [(SIZE, size.name.as_ref()), (PLACE, scratch.path().as_os_str())];
    let said = told_while_told(name, &told, |_| false);
    said.expect("the other process came to its end").into()
}

#[test]
fn a_process_takes_no_more_than_is_said() {
    let takes = |size: &Size| {
        let scratch = Scratch::new();
        said("memory::loads", size, &scratch);
        said("memory::puts_and_says_what_it_takes", size, &scratch)
    };
    let taken: Vec<u64> = SIZES.iter().map(takes).collect();
    let allowed: Vec<u64> = SIZES.iter().map(Size::allowed).collect();
    println!("{taken:?} MiB, {allowed:?} MiB are allowed");
    let is_kept = taken.iter().zip(&allowed).all(|(taken, allowed)| taken <= allowed);
    assert!(is_kept, "{taken:?} MiB, {allowed:?} MiB are allowed");
}
