//! Fuzz tests of the reserved region.

use runtime::{Rng, Runtime};
use testkit::fuzz::{Answer, Target};

use crate::firmware::reserve::*;
use crate::nand::{FlashProfile, Timing};

/// Two halves of 16 pages.
const GEOMETRY: Geometry = Geometry {
    channels: 1,
    dies_per_channel: 2,
    planes_per_die: 1,
    blocks_per_plane: 4,
    pages_per_block: 8,
    page_bytes: 256,
    spare_bytes: 0,
    transfer_bytes: 256,
    one_shot: false,
    bits_per_cell: 1,
};

fn seal(page: &mut [u8]) {
    if page.len() >= 8 {
        page[4..8].copy_from_slice(&MAGIC.to_le_bytes());
        let crc = crc32c::crc32c(&page[4..]);
        page[..4].copy_from_slice(&crc.to_le_bytes());
    }
}

#[test]
fn fuzz_dump_page() {
    let encoding = |rng: &mut Rng| {
        let bytes = testkit::fuzz::noise(rng);
        let index = rng.below(9) as u32;
        encode(&DumpPage { epoch: rng.below(9), index, total: 9, bytes: &bytes }).bytes().to_vec()
    };
    let check = |bytes: &[u8]| {
        let Some(page) = decode(bytes) else { return Answer::Refused };
        assert_eq!(encode(&page).bytes(), bytes);
        Answer::Taken
    };
    let test = ("firmware", "fuzz_dump_page");
    Target { test, encoding: &encoding, seal: &|page| seal(page), check: &check }.run();
}

/// Concatenates the pages of a half, each prefixed with its length: the input of mutations.
fn joined(pages: impl Iterator<Item = PageImage>) -> Vec<u8> {
    let with_length = |page: PageImage| {
        let length = (page.bytes().len() as u16).to_le_bytes();
        length.into_iter().chain(page.bytes().to_vec()).collect::<Vec<u8>>()
    };
    pages.flat_map(with_length).collect()
}

fn split(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut pages = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
        let (page, tail) = rest.split_at(length);
        pages.push(page.to_vec());
        bytes = tail;
    }
    pages
}

/// Restores the checksums of all pages after a mutation.
fn seal_each(bytes: &mut Vec<u8>) {
    let mut pages = split(bytes);
    for page in &mut pages {
        seal(page);
    }
    *bytes = joined(pages.into_iter().map(|page| PageImage::new(&page)));
}

pub(super) fn profile(geometry: Geometry) -> FlashProfile {
    FlashProfile {
        geometry,
        timing: Timing {
            read_us: vec![50.0],
            program_us: vec![300.0],
            erase_us: 900.0,
            command_us: 0.0,
            commands_on_channel: false,
            channel_mb_per_s: 400.0,
            background_deadline_us: 1_000.0,
        },
        suspend: None,
        overlap: None,
        errors: None,
        read_disturb: None,
    }
}

#[test]
fn fuzz_reserved_region() {
    let reserve = Reserve::new(&GEOMETRY, 1);
    let encoding = |rng: &mut Rng| {
        let dump: Vec<u8> = (0..rng.below(2_000)).map(|i| i as u8).collect();
        joined(reserve.units(2 * rng.below(9), &dump).flat_map(|(_, images)| images))
    };
    let check = |bytes: &[u8]| {
        let mut array = NandArray::new(&GEOMETRY);
        let (pages, per_half) = (split(bytes), reserve.pages() as usize);
        for (n, page) in pages.iter().take(2 * per_half).enumerate() {
            let (half, index) = ((n / per_half) as u64, (n % per_half) as u32);
            array.program(reserve.page(half, index), vec![PageImage::new(page)]);
        }
        let rt = Runtime::new(0);
        let flash = Flash::new(rt.handle(), &profile(GEOMETRY), array);
        let reserve = reserve.clone();
        let (dump, found) =
            rt.block_on(
                async move { (reserve.read(&flash).await, reserve.find(&flash, true).await) },
            );
        if let (Some(dump), Ok(Some(found))) = (&dump, &found) {
            assert_eq!((dump.epoch, &dump.bytes), (found.epoch, &found.bytes));
        }
        assert!(dump.as_ref().is_none_or(|dump| dump.bytes.len() <= bytes.len()));
        dump.is_some().into()
    };
    let test = ("firmware", "fuzz_reserved_region");
    Target { test, encoding: &encoding, seal: &seal_each, check: &check }.run();
}
