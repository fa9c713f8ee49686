//! Meta segments.

use runtime::Rng;
use testkit::fuzz::Answer;

use super::fuzz;
use crate::format::entry::{Mapping, NewEntry};
use crate::format::inlining::Inlining;
use crate::format::meta_segment::{MetaSegment, MetaSegmentBuilder};
use crate::format::page::reseal;
use crate::format::pointer::Pointer;
use crate::format::value::Value;
use crate::medium::PageNo;
use crate::specimens::{SHAPE, keys, pointers, sealed};

#[test]
fn fuzz_meta_segment() {
    let encoding = |rng: &mut Rng| {
        let mut builder = MetaSegmentBuilder::new(pointers(), SHAPE.payload_bytes);
        let inline = rng.below(3);
        for key in keys(rng, 60) {
            let pointer = match rng.below(8) {
                0 => Pointer::TOMBSTONE,
                _ => pointers().pointer(PageNo(rng.below(700) as u32), 1, rng.below(99), 1),
            };
            let value = value(rng, inline == 2);
            let is_inline = rng.below(3) < inline && inlining().takes(key.len(), value.len());
            let entry = if is_inline {
                NewEntry::inline(key.into(), &value)
            } else {
                NewEntry::of_pointer(key.into(), pointer)
            };
            let _ = builder.push(&entry.as_ref());
        }
        sealed(builder.finish())
    };
    fuzz("fuzz_meta_segment", &|bytes| reseal(bytes), &encoding, &|bytes| {
        if !MetaSegment::is_sound(bytes, pointers(), &inlining()) {
            return Answer::Refused;
        }
        walk_segment(MetaSegment::new(bytes, pointers()).expect("it is sound"));
        Answer::Taken
    });
}

fn value(rng: &mut Rng, are_alike: bool) -> Value {
    let len = if are_alike { 20 } else { rng.below(60) as u32 };
    if are_alike || rng.chance(0.5) {
        Value::Synthetic { seed: rng.below(1000), len }
    } else {
        Value::from_bytes(&vec![7; len as usize])
    }
}

fn inlining() -> Inlining {
    Inlining::new(u32::MAX, SHAPE.payload_bytes)
}

/// Runs all read operations on a segment.
fn walk_segment(segment: MetaSegment<'_>) {
    let _ = segment.effort();
    let count = segment.len();
    let keys: Vec<&[u8]> = (0..count).map(|index| segment.key(index)).collect();
    let is_in_order = keys.is_sorted_by(|a, b| a < b);
    for (index, key) in keys.iter().enumerate() {
        let mapping = segment.mapping(index);
        assert_eq!(segment.entry(index).mapping(), mapping);
        if let Mapping::At(pointer) = mapping {
            let (page, piece) = pointers().locate(pointer);
            assert!(SHAPE.extent_of(page).0 < SHAPE.extents && piece < 3);
            let _ = (pointers().most_pages(pointer), pointers().is_of(pointer, 9));
        }
        assert!(segment.lower_bound(key) <= count);
        assert!(segment.gallop(segment.heads(), key, index) <= count);
        assert!(!is_in_order || segment.find(key) == Some(mapping));
    }
    assert!(segment.lower_bound(b"") <= count && segment.lower_bound(&[255; 300]) <= count);
    let mut builder = MetaSegmentBuilder::new(pointers(), SHAPE.payload_bytes);
    let taken = if count > 0 { builder.extend(&segment, 0..count) } else { 0 };
    let again = builder.finish();
    let again = MetaSegment::new(&again, pointers()).expect("it was just made");
    assert_eq!((again.len(), taken), (count, count), "what is in one page fits in one");
    assert!((0..taken).all(|index| again.entry(index) == segment.entry(index)));
}
