//! Fuzz tests of recoveries from flash with arbitrary contents in some pages, under valid
//! checksums: the drive recovers or reports an error, and answers every Get.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use drives::nand::{NandArray, PageAddress};
use engine::Value;
use runtime::{Nanos, PageImage, Rng};
use stacks::kvssd::StoreMode;
use testkit::trial::{Names, World};

use crate::harness::Machine;
use crate::model::number;
use crate::shape::Shape;
use crate::trial::start_clients;

/// Recoveries of each kind of drive, unless `LEVELHEAD_RECOVERIES` sets another number.
const INPUTS: u64 = 400;
/// Recoveries from the same flash contents.
const BATCH: u64 = 40;

/// Flash contents after a power cut: every readable page.
type Left = Vec<(PageAddress, PageImage)>;

fn left_of(shape: &Shape, seed: u64) -> Left {
    let machine = Machine::format(seed, &shape.device, shape.options());
    let world = World::new(shape.keys, Names::Usual);
    start_clients(&machine, &world, shape, &mut Rng::new(seed));
    machine.rt.run_until(Nanos::from_millis(60));
    let mut array = machine.power_cut(&mut Rng::new(seed)).array;
    let pages = (0..array.geometry().pages()).map(PageAddress);
    pages.filter_map(|page| Some((page, array.read(page).ok()?))).collect()
}

/// Restores the checksum of a possible page of the engine or of a dump.
fn seal(bytes: &mut [u8], is_dump: bool) {
    let stored = bytes.get(20..22).map(|length| u16::from_le_bytes([length[0], length[1]]));
    let length = if is_dump { bytes.len() } else { stored.map_or(0, usize::from) };
    if (24..=bytes.len()).contains(&length) {
        let crc = crc32c::crc32c(&bytes[4..length]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
    }
}

/// Returns the flash contents with some pages changed.
fn changed(left: &Left, shape: &Shape, rng: &mut Rng) -> NandArray {
    let mut array = NandArray::new(&shape.device.flash.geometry);
    let unit = shape.device.flash.geometry.program_unit();
    let end = |page: PageAddress| PageAddress(page.0 + unit);
    let mut next = PageAddress(0);
    for (page, _) in left {
        // Unreadable pages in between are programmed as empty.
        let first = PageAddress(page.0 - page.0 % unit);
        if first >= next {
            program_up_to(&mut array, first, unit);
            next = end(first);
        }
    }
    for (page, image) in left {
        array.replace(*page, image.clone());
    }
    for _ in 0..=rng.below(3) {
        let (page, image) = &left[rng.below(left.len() as u64) as usize];
        let (_, other) = &left[rng.below(left.len() as u64) as usize];
        let mut bytes = image.bytes().to_vec();
        let is_dump = bytes.get(4..8) == Some(b"PMUD");
        testkit::fuzz::mutate(&mut bytes, other.bytes(), rng);
        seal(&mut bytes, is_dump);
        array.replace(*page, PageImage::new(&bytes));
    }
    array
}

/// Programs the missing units of a block up to and including a unit: pages are programmed in order.
fn program_up_to(array: &mut NandArray, first: PageAddress, unit: u32) {
    let (block, _) = array.geometry().locate(first);
    let begin = (0..=first.0).rev().map(PageAddress);
    let in_block = |page: &PageAddress| array.geometry().locate(*page).0 == block;
    let begin = begin.take_while(in_block).last().expect("the page itself");
    let done = array.programmed_pages(block);
    for page in (begin.0 + done..=first.0).step_by(unit as usize) {
        array.program(PageAddress(page), vec![PageImage::new(&[]); unit as usize]);
    }
}

fn recover(seed: u64, shape: &Shape, array: NandArray) -> bool {
    let Ok(machine) = Machine::recover(seed, &shape.device, shape.options(), array) else {
        return false;
    };
    let drive = machine.drive.clone();
    let keys = shape.keys;
    machine.rt.block_on(async move {
        for key in (0..keys).step_by(7) {
            let _ = drive.retrieve(&Names::Usual.of(key), u32::MAX).await;
        }
        for key in (0..keys).step_by(3) {
            let value = Value::Bytes(vec![key as u8; 200].into());
            let _ = drive.store(&Names::Usual.of(key), value, StoreMode::Upsert).await;
            let _ = drive.delete(&Names::Usual.of(key / 2)).await;
        }
    });
    true
}

fn fuzz_recovery(test: &str, shape_of: impl Fn(u64) -> Shape) {
    let seeds = match number("LEVELHEAD_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("LEVELHEAD_RECOVERIES").unwrap_or(INPUTS),
    };
    let (mut came_back, count) = (0, seeds.end - seeds.start);
    let mut left: Option<(u64, Left)> = None;
    for seed in seeds {
        let batch = seed / BATCH;
        let shape = Shape { keys: 400, is_filled: false, ..shape_of(batch) };
        let known = left.take().filter(|(of, _)| *of == batch);
        let (_, pages) = left.insert(known.unwrap_or_else(|| (batch, left_of(&shape, batch))));
        let array = changed(pages, &shape, &mut Rng::derive(seed, "recovery"));
        let recovery = AssertUnwindSafe(|| recover(seed, &shape, array));
        came_back += u64::from(catch_unwind(recovery).unwrap_or_else(|panic| {
            eprintln!("replay: LEVELHEAD_SEED={seed} cargo test -p stacks --test kvssd {test}");
            resume_unwind(panic)
        }));
    }
    println!("kvssd {test}: {count} recoveries, {came_back} drives came back");
    assert!(came_back > 0 || count < INPUTS, "no drive comes back");
}

#[test]
fn fuzz_recovery_from_a_dump() {
    fuzz_recovery("fuzz_recovery_from_a_dump", Shape::of_seed);
}

#[test]
fn fuzz_recovery_from_a_log() {
    fuzz_recovery("fuzz_recovery_from_a_log", Shape::of_log_seed);
}

#[test]
fn fuzz_recovery_of_a_hash_table() {
    fuzz_recovery("fuzz_recovery_of_a_hash_table", Shape::of_hash_seed);
}
