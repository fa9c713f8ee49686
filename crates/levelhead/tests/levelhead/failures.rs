//! Failures of the system: full disks, read-only file systems, drive errors. Each is reported, no
//! acknowledged write is lost, and nothing hangs.

use std::collections::BTreeMap;

use faultfs::{Fails, FaultFs, Faults, Kind};
use levelhead::{Durability, Error, Options, Store};
use runtime::Rng;

use crate::scratch::{by_threads, faulty, seeds, wanted};

/// Error numbers of the system.
const EIO: i32 = 5;
const ENOSPC: i32 = 28;
const EROFS: i32 = 30;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn options() -> Options {
    Options { durability: Durability::Group, ..by_threads() }
}

fn key(n: u64) -> Vec<u8> {
    format!("key {n:05}").into_bytes()
}

fn fails(kind: Kind, after: u64, times: u64, errno: i32) -> Faults {
    Faults { fails: vec![Fails { kind, after, times, errno }], ..Faults::default() }
}

/// Puts until one fails or all are done. Returns the acknowledged pairs and the error.
fn put_some(store: &Store, from: u64, to: u64) -> (Map, Option<Error>) {
    let mut map = Map::new();
    for n in from..to {
        let value = vec![n as u8; 900];
        if let Err(error) = store.put(&key(n), &value) {
            return (map, Some(error));
        }
        map.insert(key(n), value);
    }
    (map, None)
}

/// Checks that all acknowledged pairs exist.
fn check(store: &Store, map: &Map, what: &str) {
    for (key, value) in map {
        let found = store.get(key).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(found.as_ref(), Some(value), "{what}");
    }
}

fn opened(fs: &FaultFs) -> Store {
    Store::open(fs.path(), &options()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_full_disk_ends_writes_and_no_reads() {
    let Some(fs) = faulty(1) else { return };
    fs.set_faults(Faults { room: Some(12 << 20), ..Faults::default() });
    let store = opened(&fs);
    let (mut map, error) = put_some(&store, 0, 40_000);
    let error = error.expect("there is room for 12 MiB only");
    assert!(matches!(error, Error::ReadOnly(_) | Error::Full(_)), "{error:?}");
    check(&store, &map, "while the disk is full");
    assert!(store.put(b"more", b"x").is_err());
    drop(store);
    // The disk gets space again.
    fs.set_faults(Faults::default());
    let store = opened(&fs);
    check(&store, &map, "with room again");
    let (more, error) = put_some(&store, 50_000, 51_000);
    assert!(error.is_none(), "{error:?}");
    map.extend(more);
    check(&store, &map, "after more");
}

#[test]
fn a_disk_without_any_room_is_told_when_a_store_is_made() {
    let Some(fs) = faulty(1) else { return };
    fs.set_faults(Faults { room: Some(0), ..Faults::default() });
    let error = Store::open(fs.path(), &options()).map(drop).expect_err("there is no room");
    let words = error.to_string();
    assert!(words.contains("space") || words.contains("room"), "{words}");
    fs.set_faults(Faults::default());
    opened(&fs);
}

#[test]
fn a_directory_that_cannot_be_written_is_told() {
    let Some(fs) = faulty(1) else { return };
    fs.set_faults(fails(Kind::Name, 0, u64::MAX, EROFS));
    let error = Store::open(fs.path(), &options()).map(drop).expect_err("nothing can be made");
    assert!(error.to_string().contains("ead-only"), "{error}");
    fs.set_faults(Faults::default());
    let (map, _) = put_some(&opened(&fs), 0, 100);
    for kind in [Kind::Write, Kind::Sync] {
        fs.set_faults(fails(kind, 0, u64::MAX, EROFS));
        match Store::open(fs.path(), &options()) {
            // A store that cannot write its manifest does not open.
            Err(error) => assert!(!error.to_string().is_empty()),
            Ok(store) => {
                check(&store, &map, "read-only");
                store.put(b"x", b"y").expect_err("nothing can be written");
            }
        }
        fs.set_faults(Faults::default());
        check(&opened(&fs), &map, "with leave to write");
    }
}

/// Trials of the test; `LEVELHEAD_ROUNDS` sets another number.
const TRIALS: u64 = 40;

/// One request or many fail at some time. The callers receive errors, and all acknowledged writes
/// exist once the faults are gone.
fn one_trial(seed: u64, fs: &FaultFs) -> Result<(), String> {
    let rng = &mut Rng::derive(seed, "failures");
    let kinds = [Kind::Read, Kind::Write, Kind::Write, Kind::Sync, Kind::Discard, Kind::Name];
    let kind = kinds[rng.below(6) as usize];
    let errno = if kind == Kind::Write { [EIO, ENOSPC][rng.below(2) as usize] } else { EIO };
    let times = [1, 3, u64::MAX][rng.below(3) as usize];
    let most = [5, 60, 600][rng.below(3) as usize];
    let after = rng.below(most);
    let what = format!("{kind:?} {after} fails {times} times with {errno}");
    let mut map = Map::new();
    if rng.below(2) == 0 {
        map = put_some(&opened(fs), 0, rng.below(3_000)).0;
    }
    fs.set_faults(fails(kind, after, times, errno));
    if let Ok(store) = Store::open(fs.path(), &options()) {
        let (more, _) = put_some(&store, 10_000, 10_000 + rng.below(4_000));
        map.extend(more);
        for (key, value) in &map {
            match store.get(key) {
                Ok(found) if found.as_ref() == Some(value) => {}
                Ok(_) => return Err(format!("{what}: a get gives another answer")),
                Err(_) => {}
            }
        }
    }
    fs.set_faults(Faults::default());
    let store = Store::open(fs.path(), &options()).map_err(|error| format!("{what}: {error}"))?;
    for (key, value) in &map {
        match store.get(key) {
            Ok(found) if found.as_ref() == Some(value) => {}
            other => return Err(format!("{what}: afterwards a key has {other:.100?}")),
        }
    }
    let (_, error) = put_some(&store, 20_000, 20_100);
    error.map_or(Ok(()), |error| Err(format!("{what}: afterwards: {error}")))
}

#[test]
fn requests_may_fail_at_any_time() {
    for seed in seeds(wanted("LEVELHEAD_ROUNDS").unwrap_or(TRIALS)) {
        let Some(fs) = faulty(seed) else { return };
        if let Err(wrong) = one_trial(seed, &fs) {
            panic!(
                "seed {seed}: {wrong}\nLEVELHEAD_SEED={seed} cargo test -p levelhead --test levelhead -- --nocapture requests_may_fail"
            );
        }
    }
}

/// Polls until there is a result, for longer than a slow machine needs.
#[expect(clippy::disallowed_methods, reason = "the store tries again by itself, in real time")]
pub(crate) fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..3_000 {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("it never came");
}

#[test]
fn a_full_disk_that_gets_room_needs_no_new_opening() {
    let Some(fs) = faulty(3) else { return };
    fs.set_faults(Faults { room: Some(12 << 20), ..Faults::default() });
    let store = opened(&fs);
    let (mut map, error) = put_some(&store, 0, 40_000);
    let error = error.expect("there is room for 12 MiB only");
    assert!(matches!(error, Error::Full(_)), "{error:?}");
    assert!(error.to_string().contains("make room there"), "{error}");
    check(&store, &map, "while the disk is full");
    // Writes are refused instead of waiting for space.
    until(|| store.put(b"more", b"x").err());
    store.settle();
    store.compact().expect_err("there is no room");
    assert!(!store.statistics().troubles.is_empty());
    fs.set_faults(Faults::default());
    until(|| store.put(b"more", b"x").ok());
    map.insert(b"more".to_vec(), b"x".to_vec());
    store.delete(&key(0)).expect("it takes writes");
    map.remove(&key(0));
    let (more, error) = put_some(&store, 50_000, 55_000);
    assert!(error.is_none(), "{error:?}");
    map.extend(more);
    store.settle();
    check(&store, &map, "with room again");
    store.close().unwrap_or_else(|error| panic!("{error}"));
    let store = opened(&fs);
    check(&store, &map, "opened again");
    assert_eq!(store.get(&key(0)).expect("it can be read"), None);
}

#[test]
fn a_store_on_a_full_disk_can_be_closed() {
    let Some(fs) = faulty(4) else { return };
    fs.set_faults(Faults { room: Some(12 << 20), ..Faults::default() });
    let store = opened(&fs);
    let (map, error) = put_some(&store, 0, 40_000);
    assert!(matches!(error, Some(Error::Full(_))), "{error:?}");
    drop(store);
    fs.set_faults(Faults::default());
    check(&opened(&fs), &map, "with room again");
}
