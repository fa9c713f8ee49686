//! A journal's own set that is lost, fresh, or another store's: the store is refused, and the error says why.

use std::rc::Rc;

use host::{Arrangement, HostStore, JournalPlace, Sets, StorageError};
use pages::{LogSync, MediumError, OpenError, StoreId, Value};
use runtime::{Rng, Runtime};
use ssd::Planted;
use torture::machine::{self, Machine};
use torture::rack::{Rack, RackImage};
use torture::{Shape, Store};

/// A shape whose journal has the last set.
fn shape(arrangement: Arrangement, id: StoreId) -> Shape {
    let mut shape = Shape { id, ..Shape::of(5, arrangement, JournalPlace::OwnSet) };
    shape.usual_sizes(30, 1_000);
    shape
}

/// The journal's set.
fn journal_slot(shape: &Shape) -> usize {
    shape.storage.drive.sets as usize - 1
}

/// Drives with a store on them, some of which is in the journal only.
fn written(shape: &Shape, seed: u64) -> RackImage {
    let machine = Machine::format(seed, shape, None);
    let store = machine.store.clone();
    machine.rt.block_on(async move {
        // A store that has flushed nothing has nothing on the sets of its data.
        for n in (0_u32..).take_while(|_| store.stats().flushes < 2) {
            let value = Some(Value::from(&[7; 100][..]));
            let written = store.write(format!("key {:03}", n % 50).as_bytes(), value, None).await;
            written.expect("there is room");
        }
    });
    machine.power_cut(&mut Rng::new(seed))
}

/// What opening says of drives that `change` has made of those that were written.
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
