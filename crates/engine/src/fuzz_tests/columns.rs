//! Columnar tables: the pages of a table, any of which may be replaced.

use runtime::{PageImage, Rng};
use testkit::fuzz::{Answer, unsealed};

use super::fuzz;
use crate::format::codec::{Reader, Writer};
use crate::format::columns::{
    AddressColumn, ColumnPages, KeyColumn, Measure, TableBuilder, filter_of, segments_of,
};
use crate::format::entry::IndexEntry;
use crate::format::meta_segment::MetaSegment;
use crate::format::pointer::Pointer;
use crate::medium::PageNo;
use crate::read::filter::{Filter, key_hash};
use crate::specimens::{SHAPE, keys, pointers};

#[test]
fn fuzz_columns() {
    let encoding = |rng: &mut Rng| {
        let measure = Measure::new(
            SHAPE.payload_bytes,
            pointers(),
            rng.below(9) as u32,
            rng.below(12) as u32,
        );
        let mut builder = TableBuilder::new(measure, pointers());
        for key in keys(rng, 200) {
            let pointer = match rng.below(8) {
                0 => Pointer::TOMBSTONE,
                _ => pointers().pointer(PageNo(rng.below(700) as u32), 1, rng.below(99), 1),
            };
            builder.push(&IndexEntry { key: &key, pointer, tail: &[] });
        }
        let built = builder.finish(false);
        let mut out = Writer::default();
        out.u32(built.columns.to_number());
        built.pages.iter().for_each(|page| out.string(page));
        out.finish()
    };
    fuzz("fuzz_columns", &unsealed, &encoding, &|bytes| {
        walk(bytes).map_or(Answer::Refused, |()| Answer::Taken)
    });
}

/// Runs all read operations on the pages of a table.
fn walk(bytes: &[u8]) -> Option<()> {
    let input = &mut Reader::new(bytes);
    let columns = ColumnPages::of_number(input.u32()?)?;
    let pages: Option<Vec<PageImage>> =
        (0..columns.all()).map(|_| input.string().map(PageImage::new)).collect();
    let pages = pages?;
    let (filter, behind) = pages.split_at(usize::from(columns.filter));
    if let Some(filter) = filter_of(filter).and_then(|bytes| Filter::from_bytes(&bytes)) {
        let _ = [0, 1, u64::MAX, key_hash(bytes)].map(|hash| filter.may_have(hash));
    }
    let (of_keys, of_addresses) = behind.split_at(usize::from(columns.keys));
    if let Some(keys) = KeyColumn::read(of_keys) {
        let found = keys.find(b"k").map(|at| keys.key(at).to_vec());
        assert!(found.is_none_or(|key| key == b"k"));
        let addresses = AddressColumn::read(of_addresses, pointers());
        let _ = addresses.map(|addresses| (addresses.get(0), addresses.get(usize::from(u16::MAX))));
    }
    let segments = segments_of(columns, behind, pointers(), SHAPE.payload_bytes)?;
    let mut before: Option<Vec<u8>> = None;
    for image in segments {
        let segment = MetaSegment::new(image.bytes(), pointers()).expect("it was just built");
        assert!(segment.len() > 0);
        for index in 0..segment.len() {
            let key = segment.key(index).to_vec();
            assert!(before.is_none_or(|before| before < key), "keys are in order");
            let _ = segment.mapping(index);
            before = Some(key);
        }
    }
    Some(())
}
