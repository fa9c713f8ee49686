//! Fuzz tests of page decoders.

use runtime::{PageImage, Rng};
use testkit::fuzz::{Answer, unsealed};

use super::fuzz;
use crate::format::data_page::{Found, Outgoing};
use crate::format::page::{Identity, Page, PageKind, reseal};
use crate::format::value::Value;
use crate::format::{data_page, page};
use crate::medium::PageNo;
use crate::specimens::{IS, SHAPE, keys, pointers, sealed, value};
use crate::wal::group_pages;
use crate::wal::group_pages::GroupId;

/// Joins parts, each preceded by its length: several pages as one input.
fn joined(parts: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let with_length = |part: Vec<u8>| {
        let length = (part.len() as u16).to_le_bytes();
        length.into_iter().chain(part).collect::<Vec<u8>>()
    };
    parts.into_iter().flat_map(with_length).collect()
}

fn split(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
        let (part, tail) = rest.split_at(length);
        parts.push(part.to_vec());
        bytes = tail;
    }
    parts
}

fn reseal_each(bytes: &mut Vec<u8>) {
    let mut pages = split(bytes);
    for page in &mut pages {
        reseal(page);
    }
    *bytes = joined(pages);
}

#[test]
fn fuzz_page() {
    let encoding = |rng: &mut Rng| {
        let body = testkit::fuzz::noise(rng);
        let (small, large) = (rng.next_u64() as u16, rng.next_u64() as u32);
        let mut page = page::start(PageKind::Data, 3, small, large, body.len());
        page.extend_from_slice(&body);
        sealed(page)
    };
    fuzz("fuzz_page", &|bytes| reseal(bytes), &encoding, &|bytes| {
        let image = PageImage::new(bytes);
        let Some(parsed) = Page::parse(bytes) else { return Answer::Refused };
        let own = Identity { page: IS.page, ..page::stamp(bytes).expect("it is a page") };
        if page::check(&image, own).is_err() {
            return Answer::Refused;
        }
        let Page { kind, entries, small, large, .. } = parsed;
        let mut again = page::start(kind, entries, small, large, parsed.body().len());
        again.extend_from_slice(parsed.body());
        assert_eq!(page::seal(again, own).bytes(), parsed.bytes);
        Answer::Taken
    });
}

/// Returns a data page with several objects.
fn data_page_of(rng: &mut Rng) -> Vec<u8> {
    let keys = keys(rng, 12);
    let values: Vec<Value> = keys.iter().map(|_| value(rng, 40)).collect();
    let object = |(key, value)| Outgoing { key, sequence: 9, value };
    let objects: Vec<_> = keys.iter().map(|key| &key[..]).zip(&values).map(object).collect();
    sealed(data_page::build(&objects).0)
}

#[test]
fn fuzz_data_page() {
    fuzz("fuzz_data_page", &|bytes| reseal(bytes), &data_page_of, &|bytes| {
        let _ = data_page::find(bytes, 0, b"k00000001");
        let _ = data_page::tail_part(bytes, 1);
        let Some(objects) = data_page::objects(bytes) else { return Answer::Refused };
        let is_data = Page::parse(bytes).is_some_and(|page| page.kind == PageKind::Data);
        let mut values = Vec::new();
        for (piece, head) in &objects {
            let pages = data_page::pages_if_placed(&SHAPE, *piece, head);
            if let Some(pages) = pages {
                let pointer = pointers().pointer(PageNo(5), *piece, 9, pages);
                assert_eq!(pointers().locate(pointer), (PageNo(5), *piece));
            }
            if is_data {
                values.push(head.value().expect("it is in the page"));
                assert!(data_page::find(bytes, *piece, head.key).is_some());
            }
        }
        if is_data {
            let again: Vec<_> = objects
                .iter()
                .zip(&values)
                .map(|((_, head), value)| Outgoing {
                    key: head.key,
                    sequence: head.sequence,
                    value,
                })
                .collect();
            let (page, pieces) = data_page::build(&again);
            assert!(pieces.iter().zip(&objects).all(|(piece, (known, _))| piece == known));
            let page = page::finish(page);
            assert_eq!(data_page::objects(&page).map(|objects| objects.len()), Some(objects.len()));
        }
        Answer::Taken
    });
}

#[test]
fn fuzz_large_object() {
    let encoding = |rng: &mut Rng| {
        let (key, value) = (keys(rng, 1).remove(0), value(rng, 6_000));
        let object = Outgoing { key: &key, sequence: 4, value: &value };
        joined(data_page::build_large(&object, SHAPE.payload_bytes).into_iter().map(sealed))
    };
    fuzz("fuzz_large_object", &reseal_each, &encoding, &|bytes| {
        let pages = split(bytes);
        let Some((first, tails)) = pages.split_first() else { return Answer::Refused };
        let Some(objects) = data_page::objects(first) else { return Answer::Refused };
        let Some((_, head)) = objects.first() else { return Answer::Refused };
        let Some(Found::Large(found, claimed)) = data_page::find(first, 0, head.key) else {
            return Answer::Refused;
        };
        let has_all = data_page::pages_if_placed(&SHAPE, 0, &found) == Some(claimed);
        let part = |(number, tail): (u32, &'_ Vec<u8>)| {
            data_page::tail_part(tail, number).map(<[u8]>::to_vec)
        };
        let parts = (1..claimed).zip(tails).map(part).collect::<Option<Vec<_>>>();
        let Some(parts) = parts.filter(|_| has_all) else { return Answer::Refused };
        let parts: Vec<&[u8]> = parts.iter().map(|part| &part[..]).collect();
        let value = found.value_with(&parts);
        assert!(value.as_ref().is_none_or(|value| value.len() == found.value_len));
        value.is_some().into()
    });
}

#[test]
fn fuzz_pointer() {
    let encoding = |rng: &mut Rng| {
        let mut bytes = Vec::new();
        let pages = 1 + rng.below(32) as u32;
        let pointer = pointers().pointer(PageNo(rng.below(768) as u32), 2, rng.next_u64(), pages);
        pointers().encode(pointer, &mut bytes);
        bytes
    };
    fuzz("fuzz_pointer", &unsealed, &encoding, &|bytes| {
        let format = pointers();
        let Some(stored) = bytes.get(..format.bytes) else { return Answer::Refused };
        let pointer = format.decode(bytes);
        let mut again = Vec::new();
        format.encode(pointer, &mut again);
        assert_eq!(again, stored);
        if !pointer.is_tombstone() {
            let (page, piece) = format.locate(pointer);
            assert!(SHAPE.extent_of(page).0 < SHAPE.extents && piece < 3);
            let pages = format.most_pages(pointer).unwrap_or(1);
            let _ = (format.pages_read(pages), format.is_of(pointer, 1));
        }
        Answer::Taken
    });
}

#[test]
fn fuzz_groups() {
    let encoding = |rng: &mut Rng| {
        let mut pages = Vec::new();
        for number in 4..4 + rng.below(4) {
            let id = GroupId { epoch: rng.below(3) as u32, number };
            let bytes = testkit::fuzz::noise(rng);
            pages.extend(group_pages::encode(PageKind::Log, id, &bytes, rng.below(3_000), 300));
        }
        joined(pages.into_iter().map(sealed))
    };
    fuzz("fuzz_groups", &reseal_each, &encoding, &|bytes| {
        let pages = split(bytes);
        let decode = |page: &Vec<u8>| group_pages::decode(&PageImage::new(page), PageKind::Log);
        let decoded: Vec<_> = pages.iter().filter_map(decode).collect();
        for takes_torn in [false, true] {
            let found = group_pages::assemble(decoded.clone(), 4, takes_torn);
            let held: usize = found.whole.iter().map(Vec::len).sum();
            assert!(held <= bytes.len() && found.whole.len() <= decoded.len());
        }
        (decoded.len() == pages.len()).into()
    });
}
