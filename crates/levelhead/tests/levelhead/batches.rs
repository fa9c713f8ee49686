//! Batches are atomic: for readers, for a full store, and after a kill.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use levelhead::{Batch, Durability, Error, Options, Store};

use crate::scratch::{Scratch, killed_while, open, small, wanted};

/// Writes of each batch, spread over the keys.
const WRITES: u32 = 40;

fn key(n: u32) -> Vec<u8> {
    format!("{:03} of a batch", n * 25 % 1_000).into_bytes()
}

/// Batch `n`: sets each key to a value that contains `n`, with a different length each time.
fn batch(n: u32) -> Batch {
    let mut batch = Batch::new();
    for at in 0..WRITES {
        let mut value = n.to_be_bytes().to_vec();
        value.resize(4 + (n as usize * 37 + at as usize * 11) % 900, 7);
        batch.put(&key(at), &value);
    }
    batch
}

/// Returns the number of the batch from which all keys are; `None` if the store is empty.
fn batch_of(store: &Store) -> Option<u32> {
    let pairs: Result<Vec<_>, Error> = store.range(..).collect();
    let pairs = pairs.expect("it can be read");
    let number = |value: &[u8]| u32::from_be_bytes(value[..4].try_into().expect("it says it"));
    let first = number(&pairs.first()?.1);
    assert_eq!(pairs.len(), WRITES as usize, "batch {first}");
    for (key, value) in &pairs {
        assert_eq!(number(value), first, "{}", key.escape_ascii());
    }
    Some(first)
}

#[test]
fn a_reader_sees_all_of_a_batch_or_nothing() {
    let scratch = Scratch::new();
    let (store, is_over) = (open(scratch.path(), &small()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..3_000 {
                store.write_with(&batch(n), Durability::Interval).expect("there is room");
            }
            is_over.store(true, Ordering::Relaxed);
        });
        let mut last = None;
        while !is_over.load(Ordering::Relaxed) {
            let seen = batch_of(&store);
            assert!(seen >= last, "{seen:?} after {last:?}");
            last = seen;
        }
    });
    assert_eq!(batch_of(&store), Some(2_999));
}

#[test]
fn a_batch_may_be_empty_and_hold_a_key_twice_but_not_more_than_half_a_memtable() {
    let scratch = Scratch::new();
    let store = open(scratch.path(), &small());
    store.write(&Batch::new()).expect("it is nothing");
    let mut twice = Batch::new();
    twice.put(b"k", b"first");
    twice.delete(b"k");
    twice.put(b"k", b"last");
    store.write(&twice).expect("there is room");
    assert_eq!(store.get(b"k").expect("it can be read").as_deref(), Some(&b"last"[..]));
    let half = small().memtable_bytes as usize / 2;
    let mut large = Batch::new();
    for n in 0..=half as u32 / 10_000 {
        large.put(&n.to_be_bytes(), &[1; 10_000]);
    }
    match store.write(&large) {
        Err(Error::Invalid(words)) => assert!(words.contains("make several of it"), "{words}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(store.range(..).count(), 1, "nothing of it is there");
    let mut with_a_bad_one = batch(1);
    with_a_bad_one.put(b"", b"no key is empty");
    assert!(matches!(store.write(&with_a_bad_one), Err(Error::Invalid(_))));
    assert_eq!(store.range(..).count(), 1, "nothing of it is there");
}

fn kill_path(parent: u32) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("killed-batches-{parent}"))
}

/// Small memtables, so that batches coincide with flushes.
fn options() -> Options {
    Options { memtable_bytes: 1 << 20, ..small() }
}

#[test]
#[ignore = "another test runs it, in a process of its own"]
fn writes_batches_until_it_is_killed() {
    let path = kill_path(std::os::unix::process::parent_id());
    if !path.with_extension("wanted").exists() {
        return;
    }
    let store = open(&path, &options());
    for n in batch_of(&store).map_or(0, |last| last + 1).. {
        let durability = if n % 3 == 0 { Durability::Group } else { Durability::Interval };
        store.write_with(&batch(n), durability).expect("there is room");
        if n % 3 == 0 {
            println!("acknowledged {n}");
        }
    }
}

#[test]
fn a_kill_leaves_all_of_a_batch_or_nothing() {
    const ROUNDS: usize = 6;
    let path = kill_path(std::process::id());
    let _ = std::fs::remove_dir_all(&path);
    std::fs::write(path.with_extension("wanted"), "").expect("it can be written");
    for round in 0..wanted("LEVELHEAD_ROUNDS").unwrap_or(ROUNDS) {
        let writing = "batches::writes_batches_until_it_is_killed";
        let last = killed_while(writing, 40 + 53 * (round as u64 % 7));
        let last = last.expect("some were acknowledged");
        let found = batch_of(&open(&path, &options())).expect("some were acknowledged");
        assert!(found >= last, "round {round}: batch {found} after {last} was acknowledged");
    }
    let _ = std::fs::remove_dir_all(&path);
    let _ = std::fs::remove_file(path.with_extension("wanted"));
}
