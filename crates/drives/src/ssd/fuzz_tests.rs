//! Fuzz tests of the decoders that recovery uses: pages, discarded ranges, dumps.

use std::ops::Range;

use block::Block;
use runtime::{PageImage, Rng};
use testkit::fuzz::{Answer, Target, unsealed};

use super::discards::Discards;
use super::page;
use super::page::{Lpn, Sequence, Versioned};
use super::set::Saved;

/// More slots than any page has.
const PLACES: u32 = 12;

fn seal(bytes: &mut [u8]) {
    if bytes.len() >= 4 {
        let crc = crc32c::crc32c(&bytes[4..]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
    }
}

fn fuzz(
    name: &str,
    seal: &dyn Fn(&mut Vec<u8>),
    encoding: &dyn Fn(&mut Rng) -> Vec<u8>,
    check: &dyn Fn(&[u8]) -> Answer,
) {
    Target { test: ("drives", name), encoding, seal, check }.run();
}

fn blocks(rng: &mut Rng) -> Vec<Versioned> {
    let block = |rng: &mut Rng| Versioned {
        lpn: Lpn(rng.below(5_000) as u32),
        sequence: Sequence(rng.next_u64() >> 8),
        block: rng.chance(0.9).then(|| Block::new(&testkit::fuzz::noise(rng))),
    };
    (0..4).map(|_| block(rng)).collect()
}

#[test]
fn fuzz_data_page() {
    let encoding = |rng: &mut Rng| page::data(&blocks(rng)).bytes().to_vec();
    fuzz("fuzz_data_page", &|bytes| seal(bytes), &encoding, &|bytes| {
        let image = PageImage::new(bytes);
        let slots: Vec<_> = (0..PLACES).filter_map(|place| page::slot(&image, place)).collect();
        for slot in &slots {
            let again = page::slot(&page::data(std::slice::from_ref(slot)), 0).expect("a page");
            assert_eq!(
                (again.lpn, again.sequence, again.block),
                (slot.lpn, slot.sequence, slot.block.clone())
            );
        }
        Answer::from(!slots.is_empty())
    });
}

#[test]
fn fuzz_summary_page() {
    let encoding = |rng: &mut Rng| {
        let entry = |rng: &mut Rng| (Lpn(rng.next_u64() as u32), Sequence(rng.next_u64()));
        let entries: Vec<_> = (0..rng.below(80)).map(|_| entry(rng)).collect();
        page::summary(&entries).bytes().to_vec()
    };
    fuzz("fuzz_summary_page", &|bytes| seal(bytes), &encoding, &|bytes| {
        let entries = page::read_summary(&PageImage::new(bytes));
        let again = entries.as_ref().map(|entries| page::read_summary(&page::summary(entries)));
        assert!(again.is_none_or(|again| again == entries));
        entries.is_some().into()
    });
}

fn discards(rng: &mut Rng) -> Discards {
    let mut discards = Discards::default();
    for sequence in 0..rng.below(20) {
        let start = rng.below(5_000) as u32;
        discards.add(start..start + rng.below(300) as u32, Sequence(sequence));
    }
    discards
}

/// Checks that discarded ranges are disjoint and not empty, and that lookups of their blocks agree
/// with them.
fn check_discards(discards: &Discards) {
    let ranges: Vec<Range<u32>> = discards.ranges().collect();
    assert!(ranges.iter().all(|range| range.start < range.end), "{ranges:?}");
    assert!(ranges.is_sorted_by(|a, b| a.end <= b.start), "{ranges:?}");
    for range in &ranges {
        assert_eq!(discards.get(Lpn(range.start)), discards.get(Lpn(range.end - 1)));
        assert!(discards.get(Lpn(range.start)) <= Some(discards.newest()));
    }
    let mut changed = discards.clone();
    if let Some(first) = ranges.first() {
        changed.landed(Lpn(first.start), usize::MAX);
        assert_eq!(changed.get(Lpn(first.start)), None);
        changed.add(first.clone(), Sequence(7));
        assert_eq!(changed.get(Lpn(first.start)), Some(Sequence(7)));
    }
}

#[test]
fn fuzz_discards() {
    let encoding = |rng: &mut Rng| discards(rng).encode();
    fuzz("fuzz_discards", &unsealed, &encoding, &|bytes| {
        let Some(discards) = Discards::decode(bytes) else { return Answer::Refused };
        check_discards(&discards);
        assert_eq!(Discards::decode(&discards.encode()), Some(discards));
        Answer::Taken
    });
}

#[test]
fn fuzz_dump() {
    let encoding = |rng: &mut Rng| {
        let buffered: Vec<_> = blocks(rng).into_iter().filter(|one| one.block.is_some()).collect();
        Saved { discards: discards(rng), buffered }.encode()
    };
    fuzz("fuzz_dump", &unsealed, &encoding, &|bytes| {
        let Some(saved) = Saved::decode(bytes) else { return Answer::Refused };
        check_discards(&saved.discards);
        let again = Saved::decode(&saved.encode()).expect("it was just encoded");
        assert_eq!(again.discards, saved.discards);
        assert_eq!(again.buffered.len(), saved.buffered.len());
        let pairs = again.buffered.iter().zip(&saved.buffered);
        assert!(
            pairs
                .clone()
                .all(|(a, b)| (a.lpn, a.sequence, &a.block) == (b.lpn, b.sequence, &b.block))
        );
        Answer::Taken
    });
}
