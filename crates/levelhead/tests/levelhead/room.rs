//! Three directories of which one or all disks are full for a while. Writes are refused meanwhile
//! and then continue without reopening, no directory is given up, and no acknowledged write is
//! lost.

use std::collections::BTreeMap;
use std::path::PathBuf;

use faultfs::{FaultFs, Faults};
use levelhead::{DirectoryState, Durability, Error, Options, Store, Windows};

use crate::failing::{key, mend, three};
use crate::failures::until;
use crate::scratch::by_threads;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// The size of a disk that is soon full, in bytes.
const ROOM: u64 = 8 << 20;

fn open(directories: &[PathBuf], windows: Windows) -> Store {
    // A directory that is left out has a path other than the recorded one.
    let options =
        Options { durability: Durability::Group, degraded: true, windows, ..by_threads() };
    Store::open_over(directories, &options).unwrap_or_else(|error| panic!("{error}"))
}

/// Puts until one is refused or all are done, and records those acknowledged as durable.
fn put_some(store: &Store, map: &mut Map, numbers: std::ops::Range<u64>) -> Option<Error> {
    let mut waiting = Map::new();
    for n in numbers {
        let (key, value) = (key(n), vec![n as u8; 900]);
        let durability = if n % 8 == 7 { Durability::Group } else { Durability::None };
        if let Err(error) = store.put_with(&key, &value, durability) {
            return Some(error);
        }
        waiting.insert(key, value);
        if durability == Durability::Group {
            map.append(&mut waiting);
        }
    }
    None
}

/// Checks that all acknowledged pairs exist.
fn check(store: &Store, map: &Map, when: &str) {
    for (key, value) in map {
        let found = store.get(key).unwrap_or_else(|error| panic!("{when}: {error}"));
        assert_eq!(found.as_ref(), Some(value), "{when}, {}", key.escape_ascii());
    }
}

fn are_whole(store: &Store) -> bool {
    store.directories().iter().all(|(_, state)| *state == DirectoryState::Whole)
}

/// Fills a store over three directories on separate disks until a put is refused, because some
/// disks are full. Returns the store and its acknowledged pairs.
fn filled(
    (drives, directories): &(Vec<FaultFs>, Vec<PathBuf>),
    full: &[usize],
    windows: Windows,
) -> (Store, Map) {
    let (store, mut map) = (open(directories, windows), Map::new());
    for member in full {
        drives[*member].set_faults(Faults { room: Some(ROOM), ..Faults::default() });
    }
    let error = put_some(&store, &mut map, 0..60_000).expect("there is room for 8 MiB only");
    assert!(matches!(error, Error::Full(_)), "{full:?}: {error:?}");
    assert!(error.to_string().contains("make room there"), "{error}");
    (store, map)
}

#[test]
fn full_disks_of_three_that_get_room_need_no_new_opening() {
    let cases = [&[0][..], &[2], &[0, 1], &[0, 1, 2]].map(|full| (full, Windows::Off));
    for (full, windows) in cases.into_iter().chain([(&[1][..], Windows::Rails)]) {
        let Some(three) = three() else { return };
        let (store, mut map) = filled(&three, full, windows);
        let (drives, directories) = three;
        check(&store, &map, "while it is full");
        // Writes are refused instead of waiting for space.
        until(|| store.put(b"more", b"x").err());
        store.settle();
        store.compact().expect_err("there is no room");
        let troubles = store.statistics().troubles.join("\n");
        assert!(troubles.contains(&directories[full[0]].display().to_string()), "{troubles}");
        assert!(are_whole(&store), "{full:?}: {:?}", store.directories());
        mend(&drives);
        until(|| store.put(b"more", b"x").ok());
        map.insert(b"more".to_vec(), b"x".to_vec());
        store.delete(b"key 000001").expect("it takes writes");
        map.remove(&b"key 000001"[..]);
        let error = put_some(&store, &mut map, 100_000..103_000);
        assert!(error.is_none(), "{full:?}: {error:?}");
        store.settle();
        check(&store, &map, "with room again");
        assert!(are_whole(&store), "{full:?}: {:?}", store.directories());
        store.close().unwrap_or_else(|error| panic!("{error}"));
        // Each directory has all that it needs to stand in for another one.
        for gone in 0..3 {
            let mut others = directories.clone();
            others[gone] = others[gone].join("gone");
            let store = Store::open_over(
                &others,
                &Options { read_only: true, degraded: true, ..by_threads() },
            );
            let store = store.unwrap_or_else(|error| panic!("without {gone}: {error}"));
            check(&store, &map, "without one");
            assert_eq!(store.get(b"key 000001").expect("it can be read"), None);
        }
    }
}

#[test]
fn power_may_fail_while_disks_of_three_are_full() {
    for full in [&[1][..], &[0, 1, 2]] {
        let Some(three) = three() else { return };
        let (store, map) = filled(&three, full, Windows::Off);
        let (drives, directories) = three;
        drives.iter().for_each(FaultFs::cut);
        drop(store);
        drives.iter().for_each(FaultFs::power_on);
        mend(&drives);
        let store = open(&directories, Windows::Off);
        check(&store, &map, "after a cut");
        let error = put_some(&store, &mut Map::new(), 100_000..100_100);
        assert!(error.is_none(), "{full:?}: {error:?}");
    }
}

#[test]
fn a_store_on_full_disks_can_be_closed() {
    for full in [&[1][..], &[0, 1, 2]] {
        let Some(three) = three() else { return };
        let (store, map) = filled(&three, full, Windows::Off);
        let (drives, directories) = three;
        drop(store);
        mend(&drives);
        let store = open(&directories, Windows::Off);
        check(&store, &map, "with room again");
        until(|| are_whole(&store).then_some(()));
    }
}

/// The size of a value, in bytes; some thousands fill a store.
const LARGE: usize = 16 << 10;

/// Puts large values until one is refused or all are done. Returns the number of puts, and the
/// error.
fn put_large(store: &Store, numbers: std::ops::Range<u64>) -> (u64, Option<Error>) {
    for n in numbers.clone() {
        if let Err(error) = store.put_with(&key(n), &[n as u8; LARGE], Durability::None) {
            return (n - numbers.start, Some(error));
        }
    }
    (numbers.end - numbers.start, None)
}

fn check_large(store: &Store, numbers: impl Iterator<Item = u64>, when: &str) {
    for n in numbers {
        let found = store.get(&key(n)).unwrap_or_else(|error| panic!("{when}: {error}"));
        assert_eq!(found.as_deref(), Some(&[n as u8; LARGE][..]), "{when}, {n}");
    }
}

/// Lets other files use up the rest of the disks.
fn fill_up(drives: &[FaultFs]) {
    for drive in drives {
        drive.set_faults(Faults { room: Some(1), ..Faults::default() });
    }
}

/// A store with preallocated files takes deletes on a full disk, far more than memtables hold, and
/// takes puts again once these have freed space.
#[test]
fn deletes_go_on_where_a_store_has_its_room_beforehand() {
    for count in [1, 3] {
        let Some((drives, directories)) = three() else { return };
        let directories = &directories[..count];
        let options = Options { preallocate: true, ..by_threads() };
        let store = Store::open_over(directories, &options).expect("there is room");
        fill_up(&drives);
        let (there, error) = put_large(&store, 0..100_000);
        let error = error.expect("the store is full some time");
        assert!(error.to_string().contains("the store is full"), "{error}");
        let is_kept = |n: &u64| n.is_multiple_of(4);
        for n in (0..there).filter(|n| !is_kept(n)) {
            store.delete(&key(n)).unwrap_or_else(|error| panic!("delete {n}: {error}"));
        }
        // Deletes that are still in the memtable are considered when a put is refused.
        until(|| store.put(b"more", b"x").ok());
        let (more, error) = put_large(&store, there..there + there / 3);
        assert!(error.is_none(), "{count}: {more} of {}, {error:?}", there / 3);
        check_large(&store, (0..there).filter(is_kept).chain(there..there + more), "after deletes");
        store.close().expect("nothing waits");
        let store = Store::open_over(directories, &options).expect("it has its room");
        check_large(&store, (0..there).filter(is_kept).chain(there..there + more), "opened again");
    }
}

/// A store without preallocation gets all of its space when it is opened with it, or returns an
/// error if the disk has too little.
#[test]
fn a_store_that_is_there_gets_all_of_its_room() {
    let Some((drives, directories)) = three() else { return };
    let store = open(&directories, Windows::Off);
    assert!(put_large(&store, 0..200).1.is_none());
    store.close().expect("all is well");
    drives[1].set_faults(Faults { room: Some(40 << 20), ..Faults::default() });
    let options = Options { preallocate: true, ..by_threads() };
    let error = Store::open_over(&directories, &options).map(drop).expect_err("40 of 64 MiB");
    assert!(matches!(error, Error::Full(_)), "{error:?}");
    assert!(error.to_string().contains(&directories[1].display().to_string()), "{error}");
    mend(&drives);
    let store = Store::open_over(&directories, &options).expect("there is room");
    fill_up(&drives);
    assert!(put_large(&store, 200..2_000).1.is_none(), "it has its room");
    check_large(&store, 0..2_000, "with all of its room");
}

/// A store that could not grow, because the disk had too little space, opens with its former size
/// and all of its space.
#[test]
fn a_store_that_could_not_grow_opens_as_it_was() {
    let Some((drives, directories)) = three() else { return };
    let options = Options { preallocate: true, ..by_threads() };
    let store = Store::open_over(&directories, &options).expect("there is room");
    assert!(put_large(&store, 0..200).1.is_none());
    store.close().expect("all is well");
    drives[2].set_faults(Faults { room: Some(80 << 20), ..Faults::default() });
    let more = Options { capacity_bytes: 128 << 20, ..options.clone() };
    let error = Store::open_over(&directories, &more).map(drop).expect_err("80 of 128 MiB");
    assert!(matches!(error, Error::Full(_)), "{error:?}");
    assert!(drives.iter().all(|drive| drive.bytes_in_use() < 80 << 20), "nothing was taken");
    for options in [Options { capacity_bytes: 0, ..options.clone() }, options] {
        let store = Store::open_over(&directories, &options).expect("it has its room");
        check_large(&store, 0..200, "as it was");
    }
}
