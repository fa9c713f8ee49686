//! Tests of columnar tables: built tables can be read, damaged ones are rejected.

use proptest::prelude::*;

use crate::format::columns::*;
use crate::format::meta_segment::MetaSegment;
use crate::medium::PageNo;
use crate::read::filter::{Filter, key_hash};
use crate::specimens::{SHAPE, pointers};

fn measure(address_bytes: u32, filter_bits: u32) -> Measure {
    Measure::new(SHAPE.payload_bytes, pointers(), address_bytes, filter_bits)
}

/// Builds a table of these keys; every fifth is deleted.
fn table(keys: &[Vec<u8>], measure: Measure) -> (BuiltTable, Vec<Pointer>) {
    let mut builder = TableBuilder::new(measure, pointers());
    let pointer = |n: u32| match n % 5 {
        4 => Pointer::TOMBSTONE,
        _ => pointers().pointer(PageNo(n % 700), 1, 7, 1),
    };
    let pointers: Vec<Pointer> = (0..keys.len() as u32).map(pointer).collect();
    for (key, pointer) in keys.iter().zip(&pointers) {
        builder.push(&IndexEntry { key, pointer: *pointer, tail: &[] });
    }
    (builder.finish(false), pointers)
}

fn images(built: &BuiltTable) -> Vec<PageImage> {
    built.pages.iter().map(|page| PageImage::new(page)).collect()
}

fn read(built: &BuiltTable, pages: &[PageImage]) -> Option<Vec<PageImage>> {
    let behind = &pages[usize::from(built.columns.filter)..];
    segments_of(built.columns, behind, pointers(), SHAPE.payload_bytes)
}

fn any_keys() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let key = prop_oneof![
        prop::collection::vec(any::<u8>(), 4),
        prop::collection::vec(any::<u8>(), 1..40),
        prop::collection::vec(any::<u8>(), 255),
    ];
    let alike = prop::collection::btree_set(prop::collection::vec(any::<u8>(), 4), 1..900);
    let any = prop::collection::btree_set(key, 1..300);
    prop_oneof![alike, any].prop_map(|keys| keys.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 128,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn a_table_gives_back_what_was_put_in(
        keys in any_keys(),
        address_bytes in prop::sample::select(vec![0, 8]),
        bits in prop::sample::select(vec![0, 1, 10, 32]),
    ) {
        let measure = measure(address_bytes, bits);
        let (built, pointers_in) = table(&keys, measure);
        let pages = images(&built);
        prop_assert_eq!(pages.len(), built.columns.all() as usize);
        prop_assert_eq!(ColumnPages::of_number(built.columns.to_number()), Some(built.columns));
        let key_bytes = keys.iter().map(|key| key.len() + 1).sum();
        prop_assert!(built.columns.all() <= measure.pages(keys.len(), key_bytes));
        prop_assert!(built.pages.iter().all(|page| page.len() <= SHAPE.payload_bytes as usize));
        // Checks lookups.
        let (filter, behind) = pages.split_at(usize::from(built.columns.filter));
        let (of_keys, of_addresses) = behind.split_at(usize::from(built.columns.keys));
        let column = KeyColumn::read(of_keys).expect("it is one");
        let addresses = AddressColumn::read(of_addresses, pointers()).expect("it is one");
        for (index, key) in keys.iter().enumerate() {
            prop_assert_eq!(column.find(key), Some(index));
            prop_assert_eq!(addresses.get(index), Some(pointers_in[index]));
        }
        prop_assert_eq!(addresses.get(keys.len()), None);
        prop_assert_eq!(bits > 0, !filter.is_empty());
        if bits > 0 {
            let filter = filter_of(filter).expect("it is one");
            let filter = Filter::from_bytes(&filter).expect("it has bits");
            prop_assert!(keys.iter().all(|key| filter.may_have(key_hash(key))));
        }
        // Checks a read of the whole table.
        let segments = read(&built, &pages).expect("it is a table");
        let of = |page: &PageImage| {
            let segment = MetaSegment::new(page.bytes(), pointers()).expect("it was built");
            (0..segment.len())
                .map(|index| (segment.key(index).to_vec(), segment.entry(index).pointer))
                .collect::<Vec<_>>()
        };
        let all: Vec<_> = segments.iter().flat_map(of).collect();
        prop_assert_eq!(all, keys.into_iter().zip(pointers_in).collect::<Vec<_>>());
    }

    #[test]
    fn a_page_that_is_missing_or_another_is_found_out(
        keys in any_keys(),
        at in any::<prop::sample::Index>(),
        other in any::<prop::sample::Index>(),
    ) {
        let (built, _) = table(&keys, measure(8, 0));
        let mut pages = images(&built);
        let (at, other) = (at.index(pages.len()), other.index(pages.len()));
        let swapped = at != other;
        pages.swap(at, other);
        prop_assert_eq!(read(&built, &pages).is_none(), swapped);
        pages.swap(at, other);
        pages.remove(at);
        prop_assert!(read(&built, &pages).is_none());
    }

    #[test]
    fn what_so_many_pages_hold_is_what_is_reckoned_with(
        pages in 3_u32..40, bits in prop::sample::select(vec![0, 10, 32]), len in 1_usize..256,
    ) {
        let measure = measure(8, bits);
        let most = (1..100_000).take_while(|n| measure.pages(*n, n * (1 + len)) <= pages).last();
        let most = most.unwrap_or(0);
        prop_assert!(most <= measure.most_entries(pages, usize::MAX / 64));
        prop_assert!(measure.bytes(most, most * (1 + len)) >= measure.least_bytes(pages));
    }
}

#[test]
fn a_table_of_the_board_has_as_many_pages_as_there() {
    // The published board has 4,096 entries in a page of filter, one of 4-byte keys and two of
    // 8-byte addresses; the last level has eight times as many.
    let measure = Measure { room: 16_640 - HEADER_BYTES, address_bytes: 8, filter_bits: 32 };
    assert_eq!(measure.pages(4_096, 4_096 * 4), 1 + 1 + 2);
    assert_eq!(measure.pages(32_768, 32_768 * 4), 8 + 8 + 16);
}
