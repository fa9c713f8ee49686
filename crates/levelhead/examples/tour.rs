//! A tour of a store: uses each part of the API once.
//!
//! ```text
//! cargo run -p levelhead --example tour -- DIRECTORY
//! ```
//! The directory must not exist. It is kept afterwards for inspection
//! (`levelhead stats --store DIRECTORY/store`).

use std::error::Error;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::thread;

use levelhead::{Batch, Durability, Options, Store, Verified, repair};

type Pair = (Box<[u8]>, Vec<u8>);
type Pairs = Vec<Pair>;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args().nth(1).map(PathBuf::from);
    let directory = directory.ok_or("name a directory that is not there")?;
    if directory.exists() {
        return Err(format!("{} is there already", directory.display()).into());
    }
    let path = directory.join("store");
    let options = Options { capacity_bytes: 1 << 30, ..Options::default() };
    assert!(!Store::is_in(&[&path])?);
    let store = Store::open(&path, &options)?;
    assert!(Store::is_in(&[&path])?);

    points(&store)?;
    batches(&store)?;
    ranges(&store)?;
    snapshots(&store)?;
    other_threads(&store)?;
    background(&store)?;
    copies(&store, &directory, &options)?;
    store.close()?;
    several_directories(&directory, &options)?;
    println!("all of it works; see {}", directory.display());
    Ok(())
}

/// Operations on single keys.
fn points(store: &Store) -> Result<(), Box<dyn Error>> {
    store.put(b"apple", b"red")?; // Durable on return.
    store.put_with(b"pear", b"green", Durability::None)?; // Durable some time later ...
    store.sync()?; // ... and now.
    assert_eq!(store.get(b"apple")?.as_deref(), Some(&b"red"[..]));
    assert_eq!(store.multi_get(&["pear", "plum"])?, [Some(b"green".to_vec()), None]);
    assert!(store.exists(b"pear")?);
    store.delete(b"pear")?;
    store.delete_with(b"plum", Durability::Interval)?; // Deleting a missing key is not an error.
    let longest = vec![7; store.max_value_bytes() as usize];
    store.put(b"long", &longest)?;
    assert!(store.put(b"long", &[&longest[..], &[7]].concat()).is_err());
    store.delete(b"long")?;
    assert!(store.get(b"").is_err() && store.put(&[b'k'; 256], b"").is_err());
    Ok(())
}

/// Atomic batches.
fn batches(store: &Store) -> Result<(), Box<dyn Error>> {
    let mut batch = Batch::new();
    batch.put(b"from", b"90");
    batch.put(b"to", b"110");
    assert_eq!((batch.len(), batch.is_empty()), (2, false));
    store.write(&batch)?;
    batch.clear();
    batch.delete(b"from");
    batch.delete(b"to");
    batch.put(b"transfers", b"1");
    batch.makes_room(); // A full store accepts this batch, too.
    store.write_with(&batch, Durability::Each)?;
    assert_eq!(store.get(b"from")?, None);
    Ok(())
}

/// Counts the items and returns the first error. `count` alone would count an error as an item.
fn count<T>(
    mut found: impl Iterator<Item = Result<T, levelhead::Error>>,
) -> Result<usize, levelhead::Error> {
    found.try_fold(0, |count, one| one.map(|_| count + 1))
}

/// Keys in order, with all kinds of bounds, from both ends.
fn ranges(store: &Store) -> Result<(), Box<dyn Error>> {
    for day in 1..=9 {
        store.put(format!("day {day}").as_bytes(), day.to_string().as_bytes())?;
    }
    let (third, fifth) = (&b"day 3"[..], &b"day 5"[..]);
    assert_eq!(count(store.range(third..fifth))?, 2);
    assert_eq!(count(store.range(third..=fifth))?, 3);
    assert_eq!(count(store.range((Bound::Excluded(third), Bound::Included(fifth))))?, 2);
    assert_eq!(count(store.range((Bound::Excluded(third), Bound::Excluded(fifth))))?, 1);
    let up: Pairs = store.range(third..=fifth).collect::<Result<_, _>>()?;
    let mut down: Pairs = store.range(third..=fifth).rev().collect::<Result<_, _>>()?;
    down.reverse();
    assert_eq!(up, down);
    let mut days = store.prefix(b"day ");
    let (first, last) = (days.next().ok_or("none")??, days.next_back().ok_or("none")??);
    assert_eq!((&*first.0, &*last.0), (&b"day 1"[..], &b"day 9"[..]));
    // Keys alone cost no read if the index is in memory.
    assert_eq!(count(store.range(..).keys())?, 11);
    println!("a range holds {} bytes of pairs ahead at most", levelhead::Range::MOST_FETCHED_BYTES);
    Ok(())
}

/// Snapshots: the store as it was.
fn snapshots(store: &Store) -> Result<(), Box<dyn Error>> {
    let before = store.snapshot()?;
    store.put(b"apple", b"green")?;
    assert_eq!(before.get(b"apple")?.as_deref(), Some(&b"red"[..]));
    assert!(before.exists(b"transfers")?);
    assert_eq!(count(before.range(..=&b"apple"[..]))?, 1);
    assert_eq!(count(before.range(..).keys().rev())?, 11);
    assert_eq!(count(before.prefix(b"app"))?, 1);
    Ok(())
}

/// A store is a handle that any thread can use. No method returns a future: asynchronous programs
/// call them from threads that may block, as for file I/O
/// (`tokio::task::spawn_blocking(move || store.get(b"apple"))`).
fn other_threads(store: &Store) -> Result<(), Box<dyn Error>> {
    let handle = store.clone();
    let reader = thread::Builder::new().spawn(move || handle.get(b"apple"))?;
    assert_eq!(reader.join().map_err(|_| "it panicked")??.as_deref(), Some(&b"green"[..]));
    Ok(())
}

/// Background work, and calls that wait for it or start it.
fn background(store: &Store) -> Result<(), Box<dyn Error>> {
    store.settle();
    store.compact()?;
    let (statistics, inside) = (store.statistics(), store.inside());
    println!(
        "{} gets found something; {} pairs take {} bytes of the files",
        statistics.gets_found,
        inside.entries(),
        inside.used_bytes
    );
    assert_eq!((inside.entries(), inside.entries_above_last()), (11, 0));
    Ok(())
}

/// Verification, checkpoint and repair.
fn copies(store: &Store, directory: &Path, options: &Options) -> Result<(), Box<dyn Error>> {
    let report = store.verify(|progress| match progress {
        Verified::Pairs(pairs) => println!("{pairs} pairs checked"),
        Verified::Stripes { parts, all } => println!("stripes of {parts} parts of {all}"),
        _ => {}
    })?;
    assert!(report.pairs == 11 && report.findings.is_empty());
    let (copy, saved) = (directory.join("copy"), directory.join("saved"));
    assert_eq!(store.checkpoint(&copy, options, |_| ())?.pairs, 11);
    let report = repair(&[&copy], &saved, options, |_| ())?;
    assert!(report.pairs == 11 && report.salvaged.is_none(), "the copy opens");
    Ok(())
}

/// A store over three directories, of which one may be lost.
fn several_directories(directory: &Path, options: &Options) -> Result<(), Box<dyn Error>> {
    let directories = ["a", "b", "c"].map(|name| directory.join(name));
    let store = Store::open_over(&directories, options)?;
    store.put(b"apple", b"red")?;
    store.close()?;
    std::fs::remove_dir_all(&directories[1])?;
    let store = Store::open_over(&directories, options)?;
    assert_eq!(store.lost(), [directories[1].clone()]);
    assert!(store.exists(b"apple")?);
    // Dropping the store also makes it durable, but only `close` returns the error.
    store.close()?;
    Ok(())
}
