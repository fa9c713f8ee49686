//! A journal's own set that is lost, fresh, or of another store: the store does not open, and the
//! error gives the reason. If that set is lost during a run, with windows on the data sets, writes
//! fail with an error that names it, and reads continue.

use std::cell::RefCell;
use std::rc::Rc;

use drives::ssd::Planted;
use engine::{EngineError, Failure, LogSync, MediumError, OpenError, StoreId, Value};
use runtime::{Nanos, Rng, Runtime};
use stacks::host::{Arrangement, HostStore, JournalPlace, Sets, StorageError};
use torture::machine::Machine;
use torture::rack::{Rack, RackImage};
use torture::{Shape, Store, machine};

/// Returns a shape with the journal on the last set.
fn shape(arrangement: Arrangement, id: StoreId) -> Shape {
    let mut shape = Shape { id, ..Shape::of(5, arrangement, JournalPlace::OwnSet) };
    shape.usual_sizes(30, 1_000);
    shape
}

/// Returns the slot of the journal's set.
fn journal_slot(shape: &Shape) -> usize {
    shape.storage.drive.sets as usize - 1
}

/// Creates drives with a store, a part of whose data is only in the journal.
fn written(shape: &Shape, seed: u64) -> RackImage {
    let machine = Machine::format(seed, shape, None);
    let store = machine.store.clone();
    machine.rt.block_on(async move {
        // Before the first flush, a store has no data on its data sets.
        for n in (0_u32..).take_while(|_| store.stats().flushes < 2) {
            let value = Some(Value::from(&[7; 100][..]));
            let written = store.write(format!("key {:03}", n % 50).as_bytes(), value, None).await;
            written.expect("there is room");
        }
    });
    machine.power_cut(&mut Rng::new(seed))
}

/// Opens the store on drives that `change` composes from the recovered drives.
fn opened(
    shape: &Rc<Shape>,
    images: Vec<RackImage>,
    change: impl FnOnce(&runtime::Handle, &[Rack]) -> Rack + 'static,
) -> Result<Store, OpenError> {
    let rt = Runtime::new(9);
    let (handle, shape) = (rt.handle(), Rc::clone(shape));
    rt.block_on(async move {
        let mut racks = Vec::new();
        for image in images {
            racks.push(Rack::recover(&handle, image, Planted::default()).await);
        }
        machine::open(&handle, &shape, &change(&handle, &racks), None).await
    })
}

#[test]
fn a_journal_s_set_that_is_lost_or_another_s_is_named() {
    for arrangement in [Arrangement::Plain, Arrangement::Parity] {
        let shape = Rc::new(shape(arrangement, StoreId(7)));
        let slot = journal_slot(&shape);
        let there = || vec![written(&shape, 1)];
        let found = opened(&shape, there(), |_, racks| racks[0].clone());
        assert!(found.is_ok(), "{arrangement:?}: nothing is wrong");
        let found = opened(&shape, there(), move |_, racks| {
            racks[0].harm(slot, |ailment| ailment.is_away = true);
            racks[0].clone()
        });
        let lost = OpenError::JournalMedium(MediumError::Gone);
        assert_eq!(found.err(), Some(lost), "{arrangement:?}: it is lost");
        let found = opened(&shape, there(), move |handle, racks| {
            racks[0].with_fresh(handle, slot, Planted::default())
        });
        assert_eq!(found.err(), Some(OpenError::NoManifest), "{arrangement:?}: it is a fresh one");
        let other = self::shape(arrangement, StoreId(8));
        let both = vec![written(&shape, 1), written(&other, 2)];
        let found = opened(&shape, both, move |_, racks| racks[0].with_set_of(&racks[1], slot));
        assert_eq!(found.err(), Some(OpenError::ForeignJournal), "{arrangement:?}: another's");
    }
}

#[test]
fn a_volume_of_another_identity_in_the_journal_s_place_is_named() {
    let shape = shape(Arrangement::Striped, StoreId(7));
    let rt = Runtime::new(1);
    let handle = rt.handle();
    let rack = Rack::format(&handle, &shape.storage.drive, Planted::default());
    let (storage, options) = (shape.storage.clone(), shape.options(None));
    let error = rt.block_on(async move {
        let cores = storage.cores(&handle);
        let media = storage.volume(&handle, &cores, &rack, StoreId(1)).expect("they fit");
        let store = HostStore::create(&handle, &storage.host, &cores, media, options);
        let store = store.expect("it fits");
        let value = Value::from(&[7; 100][..]);
        store.put(b"key", value, Some(LogSync::Each)).await.expect("there is room");
        storage.recover_volume(&handle, &cores, &rack, StoreId(2)).await.err()
    });
    let error = error.expect("its headers have another identity");
    assert!(matches!(error, StorageError::Volume(Sets::Journal, _)), "{error}");
    assert!(error.to_string().contains("the drive's last one: member 0 holds another"), "{error}");
}

/// Creates a store with windows, a part of whose data is only in the journal. Also returns the
/// number of acknowledged keys. Returns `None` if the store is full before.
fn with_windows(seed: u64) -> Option<(Machine, Rc<Shape>, u32)> {
    let shape = Rc::new(Shape { id: StoreId(7), ..Shape::windows_of_seed(seed) });
    let machine = Machine::format(seed, &shape, None);
    let store = machine.store.clone();
    let written = machine.rt.block_on(async move {
        let is_enough = |n: &u32| store.stats().flushes >= 2 || *n > 400;
        let mut written = 0;
        for n in (0_u32..).take_while(|n| !is_enough(n)) {
            let put = store.write(&key(n), Some(value(n)), Some(LogSync::Group)).await;
            match put {
                Ok(()) => written = n + 1,
                Err(EngineError::Full(_)) => return None,
                Err(error) => panic!("seed {seed}: {error}"),
            }
        }
        Some(written)
    });
    written.map(|written| (machine, shape, written))
}

/// Returns the result of a write; `None` if it does not complete within 30 seconds.
fn write_in_time(machine: &Machine, sync: LogSync) -> Option<Result<(), EngineError>> {
    let (handle, store) = (machine.rt.handle(), machine.store.clone());
    let outcome = Rc::<RefCell<Option<_>>>::default();
    let tells = Rc::clone(&outcome);
    handle.spawn("write", async move {
        let done = store.write(b"one more", Some(value(0)), Some(sync)).await;
        *tells.borrow_mut() = Some(done);
    });
    let end = handle.now() + Nanos::from_millis(30_000);
    machine.rt.run_until_true(|| outcome.borrow().is_some() || handle.now() > end);
    outcome.borrow_mut().take()
}

fn key(n: u32) -> Vec<u8> {
    format!("{n:03}").into_bytes()
}

fn value(n: u32) -> Value {
    Value::from(&[n as u8; 100][..])
}

#[test]
fn a_journal_s_set_that_is_lost_in_a_run_with_windows_is_named_and_reads_go_on() {
    let stores = (0..).filter_map(|seed| Some((seed, with_windows(seed)?)));
    for (seed, (machine, shape, written)) in stores.take(12) {
        assert!(written > 10, "seed {seed}: {written} keys");
        let (slot, store) = (journal_slot(&shape), machine.store.clone());
        machine.rack.harm(slot, |ailment| ailment.is_away = true);
        let named = EngineError::ReadOnly(Failure::JournalMedium(MediumError::Gone));
        for sync in [LogSync::Each, LogSync::Group, LogSync::Interval, LogSync::None] {
            let done = write_in_time(&machine, sync);
            assert_eq!(done, Some(Err(named.clone())), "seed {seed}, {sync:?}");
        }
        let text = named.to_string();
        assert!(text.contains("log and manifest lie on a medium of their own"), "{text}");
        let reader = store.clone();
        machine.rt.block_on(async move {
            for n in 0..written {
                assert_eq!(reader.get(&key(n)).await, Ok(Some(value(n))), "seed {seed}, key {n}");
            }
        });
        let images = vec![machine.power_cut(&mut Rng::new(seed))];
        let found = opened(&shape, images, |_, racks| racks[0].clone());
        let lost = OpenError::JournalMedium(MediumError::Gone);
        assert_eq!(found.err(), Some(lost), "seed {seed}");
    }
}

#[test]
fn data_that_too_many_lost_sets_had_keep_a_store_from_opening() {
    let shape = Rc::new(shape(Arrangement::Parity, StoreId(7)));
    let found = opened(&shape, vec![written(&shape, 1)], |_, racks| {
        (0..2).for_each(|set| racks[0].harm(set, |ailment| ailment.is_away = true));
        racks[0].clone()
    });
    assert_eq!(found.err(), Some(OpenError::Medium(MediumError::Gone)));
}

#[test]
fn a_journal_s_set_that_takes_no_writes_while_a_store_is_opened_is_named() {
    for arrangement in [Arrangement::Plain, Arrangement::Parity] {
        let shape = Rc::new(shape(arrangement, StoreId(7)));
        let slot = journal_slot(&shape);
        let found = opened(&shape, vec![written(&shape, 1)], move |_, racks| {
            racks[0].harm(slot, |ailment| ailment.is_read_only = true);
            racks[0].clone()
        });
        let named = OpenError::JournalMedium(MediumError::ReadOnly);
        assert_eq!(found.err(), Some(named), "{arrangement:?}");
    }
}
