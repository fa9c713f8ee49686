//! Specimens for fuzz tests of indexes: keys, values, memtables and extents generated from a seed,
//! for a small medium. Compiled for tests only.

use runtime::Rng;

use crate::format::page;
use crate::format::page::{Identity, StoreId};
use crate::format::pointer::PointerFormat;
use crate::format::value::Value;
use crate::manifest::changes::Counts;
use crate::medium::{PageNo, Shape, Stream};
use crate::memtable::{Entry, Memtables};
use crate::space::extents::Extents;

/// The shape of a small medium.
pub(crate) const SHAPE: Shape = Shape {
    payload_bytes: 1056,
    page_bytes: 1024,
    pages_per_extent: 32,
    extents: 24,
    grows_to: 0,
    append_unit: 1,
    parallelism: 4,
};

/// Returns the pointer format of that medium.
pub(crate) fn pointers() -> PointerFormat {
    PointerFormat::new(&SHAPE)
}

/// The identity of sealed pages.
pub(crate) const IS: Identity =
    Identity { page: PageNo(7), generation: 3, store: StoreId(0xABCD), run: 0 };

/// Returns a page as stored on the medium.
pub(crate) fn sealed(page: Vec<u8>) -> Vec<u8> {
    page::seal(page, IS).bytes().to_vec()
}

/// Returns a value of at most `most` bytes, real or synthetic.
pub(crate) fn value(rng: &mut Rng, most: u64) -> Value {
    let synthetic = Value::Synthetic { seed: rng.next_u64(), len: rng.below(most + 1) as u32 };
    if rng.chance(0.5) { synthetic } else { Value::from_bytes(&synthetic.to_bytes()) }
}

/// Returns keys in order, of one length or of several.
pub(crate) fn keys(rng: &mut Rng, most: u64) -> Vec<Vec<u8>> {
    let is_even = rng.chance(0.5);
    let first = rng.below(1 << 20);
    let key = |i: u64, rng: &mut Rng| {
        let long = if is_even { 12 } else { rng.below(60) as usize };
        let mut key = format!("k{:08}", first + 3 * i).into_bytes();
        key.resize(9 + long, b'x');
        key
    };
    (0..=rng.below(most)).map(|i| key(i, rng)).collect()
}

/// Returns a random entry: a value or a tombstone.
pub(crate) fn entry(rng: &mut Rng) -> Entry {
    rng.chance(0.8).then(|| value(rng, 60))
}

/// Returns memtables, of which the active one is empty.
pub(crate) fn memtables(rng: &mut Rng) -> Memtables {
    let mut memtables = Memtables::default();
    let mut sequence = 0;
    for _ in 0..=rng.below(2) {
        for key in keys(rng, 9) {
            sequence += 1;
            let entry = entry(rng);
            memtables.active.borrow_mut().insert(&key, sequence, entry, None);
        }
        memtables.freeze();
    }
    memtables
}

/// Returns extents that have been used.
pub(crate) fn extents(rng: &mut Rng) -> Extents {
    let mut extents = Extents::new(SHAPE);
    for stream in [Stream::Objects, Stream::Index] {
        for _ in 0..=rng.below(3) {
            extents.close(stream);
            let (id, _) = extents.next_free(|id| id.0 % 5).expect("few are in use");
            extents.open(id, stream);
            for _ in 0..rng.below(30) {
                let page = extents.next_unit(stream);
                if rng.chance(0.2) {
                    extents.add_hole(page);
                }
            }
            let items = rng.below(40) as u32;
            let counts = Counts { published: items, entered: items, dead: 0 };
            extents.count(id, counts, true).expect("as many live as were written");
        }
    }
    extents
}

/// Calls on `extents` the operations that a store uses.
pub(crate) fn walk_extents(extents: &Extents) {
    for (id, extent) in extents.iter() {
        assert!((0.0..=1.0).contains(&extents.utilisation(extent)), "{id:?} {extent:?}");
        let _ = (extents.is_open(id), extents.holds_index(id));
        let _ = extents.clone().resume_at(id, extent.cursor / 2);
        let _ = extents.clone().catch_up(id, extent.cursor + 1);
    }
    let _ = (extents.choose_victim(1.0, |_| true), extents.open_ones());
    let mut filled = extents.clone();
    for stream in Stream::ALL {
        while filled.room(stream) > 0 {
            let page = filled.next_unit(stream);
            assert!(SHAPE.extent_of(page).0 < SHAPE.extents);
        }
        filled.close(stream);
        if let Some((id, _)) = filled.next_free(|_| 0) {
            filled.open(id, stream);
        }
    }
}
