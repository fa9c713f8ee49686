//! Stores with one failed append, or with one refused opening of an extent: nothing of the journal
//! is written after the failure, so that the medium can be opened again and has all acknowledged
//! writes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use engine::{Engine, Stream, Value, WriteOptions};
use runtime::{Nanos, Runtime};

use crate::memory::{Cells, Failing, MemoryMedium, SHAPE};
use crate::setup::logged;

/// The newest value of each key: acknowledged, and requested.
type Asked = Rc<RefCell<BTreeMap<u64, (u64, u64)>>>;

/// Runs clients until the store refuses writes, or for a long time.
fn write_until_refused(cells: &Rc<Cells>, failing: Failing) -> (Asked, MemoryMedium) {
    let rt = Runtime::new(3);
    let medium = MemoryMedium::new(&rt.handle(), cells, Some(failing));
    let engine = Engine::create(logged(&rt, medium.clone())).expect("it fits");
    let asked = Asked::default();
    let clients: Vec<_> = (0..4)
        .map(|client| {
            let (engine, asked) = (engine.clone(), Rc::clone(&asked));
            rt.handle().spawn("client", async move {
                for round in 1..150 {
                    let key = (round * 7 % 40) * 4 + client;
                    asked.borrow_mut().entry(key).or_default().1 = round;
                    let value = Value::Synthetic { seed: round, len: 100 };
                    let name = key.to_be_bytes();
                    if engine.put(&name, value, WriteOptions::default(), Nanos::ZERO).await.is_err()
                    {
                        return;
                    }
                    asked.borrow_mut().entry(key).or_default().0 = round;
                }
            })
        })
        .collect();
    rt.run_until(Nanos::from_millis(2_000));
    assert!(clients.iter().all(runtime::JoinHandle::is_finished), "{}", engine.background());
    (asked, medium)
}

/// Opens the medium and reads all keys back.
fn check(cells: &Rc<Cells>, asked: &Asked, what: &str) {
    let rt = Runtime::new(4);
    let medium = MemoryMedium::new(&rt.handle(), cells, None);
    let setup = logged(&rt, medium);
    let asked = asked.borrow().clone();
    let what = what.to_owned();
    rt.block_on(async move {
        let engine = Engine::open(setup).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        for (key, (acknowledged, newest)) in asked {
            let found = engine.get(&key.to_be_bytes(), Nanos::ZERO).await.expect("it is whole");
            let found = found.value.map_or(0, |value| match value {
                Value::Synthetic { seed, .. } => seed,
                Value::Bytes(_) => unreachable!("none was written"),
            });
            assert!(
                found == newest || found >= acknowledged && found <= newest,
                "{what}: key {key} has {found}, not {acknowledged} to {newest}"
            );
        }
    });
}

/// Injects the failure of `failing` into each of `count` stores. Returns the number of stores in
/// which it occurred.
fn try_all(count: u64, failing: impl Fn(u64) -> Failing) -> u32 {
    let mut failures = 0;
    for failing in (0..count).map(failing) {
        let what = format!("{failing:?}");
        let cells = Cells::new(SHAPE);
        let (asked, medium) = write_until_refused(&cells, failing);
        let late = medium.appended_after_failure();
        let late: Vec<_> = late.into_iter().filter(|stream| stream.is_journal()).collect();
        assert_eq!(late, [], "{what}");
        check(&cells, &asked, &what);
        failures += u32::from(medium.has_failed());
    }
    failures
}

#[test]
fn when_an_append_has_failed_nothing_of_the_journal_follows() {
    for stream in [Stream::Manifest, Stream::Log, Stream::Objects] {
        let failures = try_all(60, |append| Failing::Append(stream, append));
        assert!(failures > 40, "{failures} appends of {stream:?} failed");
    }
}

#[test]
fn when_an_opening_was_refused_nothing_of_the_journal_follows() {
    for stream in [Stream::Manifest, Stream::Log, Stream::Objects, Stream::Index] {
        let failures = try_all(6, |opening| Failing::Opening(stream, opening));
        assert!(failures > 1, "{failures} openings for {stream:?} were refused");
    }
}
