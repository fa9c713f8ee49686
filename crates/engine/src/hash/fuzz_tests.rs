//! Fuzz tests: arbitrary bytes, also with a valid checksum, for every decoder of the hash table. A
//! decoder either rejects them or returns a value that can be read to its end.

use runtime::{PageImage, Rng};
use testkit::fuzz::{Answer, Target, unsealed};

use super::bucket::{BucketFormat, Slot};
use super::dump::{Image, restore};
use crate::format::page::{StoreId, reseal};
use crate::medium::PageNo;
use crate::specimens::{SHAPE, extents, keys, memtables, pointers, sealed, walk_extents};

fn fuzz(
    name: &str,
    seal: &dyn Fn(&mut Vec<u8>),
    encoding: &dyn Fn(&mut Rng) -> Vec<u8>,
    check: &dyn Fn(&[u8]) -> Answer,
) {
    Target { test: ("engine", name), encoding, seal, check }.run();
}

#[test]
fn fuzz_bucket_page() {
    let format = BucketFormat::new(&SHAPE, pointers());
    let encoding = |rng: &mut Rng| {
        let mut slots = format.blank();
        for _ in 0..rng.below(100) {
            let pointer = pointers().pointer(PageNo(rng.below(700) as u32), 0, 1, 1);
            let slot = match rng.below(256) as u8 {
                0 => Slot::Deleted,
                signature => Slot::Held { signature, pointer },
            };
            format.set(&mut slots, rng.below(u64::from(format.slots)) as u32, slot);
        }
        sealed(BucketFormat::encode(&slots, 5))
    };
    fuzz("fuzz_bucket_page", &|bytes| reseal(bytes), &encoding, &|bytes| {
        let image = PageImage::new(bytes);
        let Some(slots) = format.decode(&image, 5) else { return Answer::Refused };
        let mut again: Box<[u8]> = format.blank();
        for index in 0..format.slots {
            let slot = format.get(slots, index);
            match slot {
                Slot::LeadsNowhere => continue, // reported when it is used
                Slot::Held { pointer, .. } => {
                    let (page, _) = pointers().locate(pointer);
                    assert!(SHAPE.extent_of(page).0 < SHAPE.extents);
                }
                Slot::Deleted | Slot::Empty => {}
            }
            if slot != Slot::Empty {
                format.set(&mut again, index, slot);
            }
            assert_eq!(format.get(&again, index), slot);
        }
        Answer::Taken
    });
}

#[test]
fn fuzz_hash_dump() {
    let pages = 6;
    let encoding = |rng: &mut Rng| {
        let pointer = pointers().pointer(PageNo(rng.below(700) as u32), 1, 2, 1);
        let page = |rng: &mut Rng| rng.chance(0.5).then(|| PageNo(rng.below(768) as u32));
        let image = Image {
            id: StoreId(7),
            sequence: 100,
            uprooted: &keys(rng, 4).into_iter().map(|key| (key.into(), pointer)).collect(),
            longest_search: 9,
            keys: rng.below(90),
            directory: &(0..pages).map(|_| page(rng)).collect::<Vec<_>>(),
            dirty: vec![(2, &[0; 30][..]), (4, &[0; 30][..])],
            extents: &extents(rng),
        };
        image.encode(&memtables(rng), true, pointers())
    };
    fuzz("fuzz_hash_dump", &unsealed, &encoding, &|bytes| {
        let Some(restored) = restore(bytes, SHAPE, pointers(), pages) else {
            return Answer::Refused;
        };
        walk_extents(&restored.extents);
        for pointer in restored.uprooted.values() {
            let _ = pointers().locate(*pointer);
        }
        for page in restored.directory.iter().flatten() {
            let _ = restored.extents.generation(*page);
        }
        let image = Image {
            id: restored.id,
            sequence: restored.sequence,
            uprooted: &restored.uprooted,
            longest_search: restored.longest_search,
            keys: restored.keys,
            directory: &restored.directory,
            dirty: restored.dirty.iter().map(|(page, s)| (*page, &s[..])).collect(),
            extents: &restored.extents,
        };
        let again = image.encode(&restored.memtables, true, pointers());
        assert!(restore(&again, SHAPE, pointers(), pages).is_some());
        Answer::Taken
    });
}
