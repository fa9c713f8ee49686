//! Damage: a block with an unreadable page is reported as such, never returned in an older version,
//! until it is written again. Other blocks are unharmed.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use block::{Block, BlockDevice, DeviceError};
use drives::nand::{BlockAddress, NandArray, PageAddress, ReadDisturb};
use drives::ssd::specimens::small;
use drives::ssd::{Fault, Precondition, Ssd, SsdProfile};
use runtime::{Nanos, Rng};

use crate::harness::{ClientIo, Machine, planted, set_id};
use crate::model::number;
use crate::world::encode;

/// The first half is written at the beginning only, except that even blocks are written once more.
/// The second half is overwritten again and again.
const BLOCKS: u64 = 4_000;
/// Reads of a block before it loses data.
const LIMIT_READS: u64 = 30_000;

fn profile(has_capacitors: bool) -> SsdProfile {
    let mut profile = small::profile(1);
    profile.flash.geometry.pages_per_block = 24;
    profile.flash.geometry.blocks_per_plane = 14;
    // Cold data are moved too, for wear levelling.
    profile.background.wear_spread = 1;
    profile.flash.read_disturb = Some(ReadDisturb { limit_reads: LIMIT_READS });
    profile.background.reclaim_reads = LIMIT_READS - 2;
    profile.background.critical_reads = LIMIT_READS - 1;
    profile.buffer.has_capacitors = has_capacitors;
    profile.user_bytes = BLOCKS * 4_096;
    profile
}

/// Returns the contents of block `lba` after `round`.
fn contents(lba: u64, round: u64) -> Block {
    encode(round + 1, 0, lba, false)
}

async fn write(ssd: &Ssd, lbas: impl Iterator<Item = u64>, round: u64) {
    for lba in lbas {
        ssd.client_write(set_id(0), lba, vec![contents(lba, round)]).await.expect("there is room");
    }
    ssd.flush(set_id(0)).await.expect("it never fails");
}

/// Overwrites the second half until every superblock was collected, and waits for that.
async fn churn(ssd: &Ssd, handle: runtime::Handle) {
    let before = moved(ssd);
    for round in 2..8 {
        // Also every other block of the first half, so that superblocks there have space to gain.
        let first = (0..BLOCKS / 2).filter(|lba| lba % 2 == 0 && round == 2);
        write(ssd, first.chain(BLOCKS / 2..BLOCKS), round).await;
    }
    handle.sleep(Nanos::from_millis(500)).await;
    let after = moved(ssd);
    assert!(after > before + BLOCKS / 4, "{before} blocks were moved, and then {after}");
}

fn moved(ssd: &Ssd) -> u64 {
    ssd.report(set_id(0)).expect("it is there").firmware.slots_moved
}

/// Returns the odd blocks of the first half whose second version is in a page.
fn held(array: &mut NandArray, page: PageAddress) -> Vec<u64> {
    let Ok(image) = array.read(page) else { return Vec::new() };
    let is_wanted = |lba: &u64| *lba < BLOCKS / 2 && holds_second(image.bytes(), *lba);
    blocks_of(image.bytes()).into_iter().filter(is_wanted).collect()
}

/// Flips a bit in one of `one_in` pages that hold such versions. Returns the harmed blocks.
fn flip_bits(ssd: &Ssd, rng: &mut Rng, one_in: u64) -> BTreeSet<u64> {
    ssd.flash(set_id(0)).expect("it is there").with_array(|array| {
        let mut harmed = BTreeSet::new();
        for page in (0..array.geometry().pages()).map(PageAddress) {
            let held = held(array, page);
            if !held.is_empty() && rng.below(one_in) == 0 {
                assert!(array.flip_bit(page, rng.next_u64()));
                harmed.extend(held);
            }
        }
        harmed
    })
}

/// Makes all pages of one die unreadable, in some superblocks.
fn wear_out(ssd: &Ssd, rng: &mut Rng) -> BTreeSet<u64> {
    ssd.flash(set_id(0)).expect("it is there").with_array(|array| {
        let mut harmed = BTreeSet::new();
        // The summary is on the last dies.
        for block in (2..array.geometry().blocks_per_die()).map(BlockAddress) {
            let pages: Vec<_> = (0..array.programmed_pages(block))
                .map(|index| array.geometry().page(block, index))
                .collect();
            let held: Vec<u64> = pages.iter().flat_map(|page| held(array, *page)).collect();
            if !held.is_empty() && (harmed.is_empty() || rng.below(2) == 0) {
                (0..LIMIT_READS).for_each(|_| _ = array.read(pages[0]));
                harmed.extend(held);
            }
        }
        harmed
    })
}

/// Flips a bit in every summary page.
fn flip_summaries(ssd: &Ssd, rng: &mut Rng) {
    const KIND_OF_SUMMARY: u8 = 2;
    ssd.flash(set_id(0)).expect("it is there").with_array(|array| {
        let mut flipped = 0;
        for page in (0..array.geometry().pages()).map(PageAddress) {
            let Ok(image) = array.read(page) else { continue };
            if image.bytes().len() > 8 && image.bytes()[4] == KIND_OF_SUMMARY {
                array.flip_bit(page, rng.next_u64());
                flipped += 1;
            }
        }
        assert!(flipped > 4, "only {flipped} pages of summaries were found");
    });
}

/// Returns the block numbers in the header of a data page.
fn blocks_of(bytes: &[u8]) -> Vec<u64> {
    const KIND_OF_DATA: u8 = 1;
    if bytes.get(4) != Some(&KIND_OF_DATA) {
        return Vec::new();
    }
    let headers = bytes[8..].chunks_exact(16).take(4);
    let lba = |header: &[u8]| u64::from(u32::from_le_bytes(*header.first_chunk().expect("16")));
    headers.map(lba).filter(|lba| *lba < BLOCKS).collect()
}

fn holds_second(bytes: &[u8], lba: u64) -> bool {
    let second = contents(lba, 1);
    bytes.windows(second.bytes().len()).any(|window| window == second.bytes())
}

/// Expected contents of the first half.
#[derive(Clone, Default)]
struct Expected {
    /// Odd blocks that cannot be read.
    lost: BTreeSet<u64>,
    /// Odd blocks that may be unreadable.
    doubtful: BTreeSet<u64>,
    /// Version of even blocks.
    even: u64,
}

impl Expected {
    async fn check(&self, ssd: &Ssd) -> Result<(), String> {
        for lba in 0..BLOCKS / 2 {
            let round = if lba % 2 == 0 { self.even } else { 1 };
            let good = Ok(vec![contents(lba, round)]);
            let unreadable = Err(DeviceError::Unreadable { set: set_id(0), block: lba });
            let found = ssd.client_read(set_id(0), lba, 1).await;
            let is_right = match (self.lost.contains(&lba), self.doubtful.contains(&lba)) {
                _ if round > 1 => found == good,
                (true, _) => found == unreadable,
                (false, true) => found == good || found == unreadable,
                (false, false) => found == good,
            };
            if !is_right {
                let found = found.map(|blocks| blocks[0].bytes().first().copied());
                let is_lost = self.lost.contains(&lba);
                return Err(format!("block {lba}, lost: {is_lost}, version: {found:?}"));
            }
        }
        Ok(())
    }
}

/// Writes a drive twice. The last writes are in superblocks without summary; they are not in the
/// first half.
async fn write_twice(ssd: &Ssd) {
    write(ssd, 0..BLOCKS, 0).await;
    write(ssd, 0..BLOCKS, 1).await;
    write(ssd, BLOCKS / 2..BLOCKS, 1).await;
}

/// Checks that lost blocks become normal again when they are written or discarded.
async fn make_whole(ssd: &Ssd, lost: &BTreeSet<u64>) -> Result<(), String> {
    let mut odd = lost.iter().copied().filter(|lba| lba % 2 == 1);
    let discarded = odd.next().expect("some were harmed");
    ssd.discard(set_id(0), discarded, 1).await.expect("it never fails");
    let zeros = ssd.client_read(set_id(0), discarded, 1).await;
    if zeros != Ok(vec![Block::ZERO]) {
        return Err(format!("block {discarded} was discarded: {zeros:?}"));
    }
    write(ssd, lost.iter().copied().filter(|lba| lba % 2 == 1), 1).await;
    Expected { even: 2, ..Expected::default() }.check(ssd).await
}

/// Writes a drive, harms it, has it collected, cuts its power, and checks it after each step.
fn harmed(
    seed: u64,
    fault: Option<Fault>,
    harm: impl FnOnce(&Ssd, &mut Rng) -> BTreeSet<u64> + 'static,
) -> Result<(), String> {
    let mut rng = Rng::derive(seed, "damage");
    let profile = profile(rng.chance(0.5));
    let machine = Machine::format(seed, &profile, Precondition::Empty, planted(fault));
    let (ssd, handle) = (machine.ssd.clone(), machine.rt.handle());
    let mut rng_of_harm = Rng::new(rng.next_u64());
    let expected = machine.rt.block_on(async move {
        write_twice(&ssd).await;
        let lost = harm(&ssd, &mut rng_of_harm);
        assert!(lost.len() > 10, "only {lost:?} were harmed");
        let mut expected = Expected { lost, even: 1, ..Expected::default() };
        expected.check(&ssd).await?;
        churn(&ssd, handle).await;
        expected.even = 2;
        expected.check(&ssd).await?;
        Ok::<_, String>(expected)
    })?;
    let stats = machine.ssd.report(set_id(0)).expect("it is there").firmware;
    let still_lost = expected.lost.iter().filter(|lba| *lba % 2 == 1).count() as u64;
    if stats.blocks_lost < still_lost {
        return Err(format!("{still_lost} lost blocks were to be moved: {stats:?}"));
    }
    let (image, _) = machine.power_cut(&mut rng);
    let machine = Machine::recover(seed, &profile, image, planted(fault));
    let (ssd, handle) = (machine.ssd.clone(), machine.rt.handle());
    machine.rt.block_on(async move {
        expected.check(&ssd).await?;
        churn(&ssd, handle).await;
        expected.check(&ssd).await?;
        make_whole(&ssd, &expected.lost).await
    })
}

/// Same as [`harmed`], with random bit flips.
pub(crate) fn damage_is_kept_apart(seed: u64, fault: Option<Fault>) -> Result<(), String> {
    harmed(seed, fault, |ssd, rng| flip_bits(ssd, rng, 30))
}

fn trials() -> u64 {
    number("LEVELHEAD_TRIALS").map_or(6, |trials| trials / 5)
}

#[test]
fn flipped_bits_harm_their_page_only() {
    for seed in 0..trials() {
        damage_is_kept_apart(seed, None).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

#[test]
fn worn_out_pages_are_lost_and_no_others() {
    for seed in 0..trials() {
        harmed(seed, None, wear_out).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

#[test]
fn bits_may_flip_while_their_superblocks_are_collected() {
    for seed in 0..trials() {
        let mut rng = Rng::derive(seed, "damage");
        let profile = profile(seed % 2 == 0);
        let machine = Machine::format(seed, &profile, Precondition::Empty, planted(None));
        let (ssd, handle) = (machine.ssd.clone(), machine.rt.handle());
        let expected = machine.rt.block_on(async move {
            write_twice(&ssd).await;
            let doubtful = Rc::new(RefCell::new(BTreeSet::new()));
            let (gnawed, gnawer, clock) = (Rc::clone(&doubtful), ssd.clone(), handle.clone());
            let mut rng = Rng::derive(seed, "gnawing");
            handle.spawn("gnawer", async move {
                for _ in 0..40 {
                    clock.sleep(Nanos::from_millis(10)).await;
                    gnawed.borrow_mut().extend(flip_bits(&gnawer, &mut rng, 1_000));
                }
            });
            churn(&ssd, handle.clone()).await;
            let stats = ssd.report(set_id(0)).expect("it is there").firmware;
            assert!(stats.blocks_lost > 0, "{stats:?}");
            let doubtful = doubtful.borrow().clone();
            let expected = Expected { doubtful, even: 2, ..Expected::default() };
            expected.check(&ssd).await.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            expected
        });
        let (image, _) = machine.power_cut(&mut rng);
        let machine = Machine::recover(seed, &profile, image, planted(None));
        let ssd = machine.ssd.clone();
        let checked = machine.rt.block_on(async move { expected.check(&ssd).await });
        checked.unwrap_or_else(|error| panic!("seed {seed}, after recovery: {error}"));
    }
}

#[test]
fn damaged_summaries_harm_nothing() {
    let profile = profile(false);
    let machine = Machine::format(1, &profile, Precondition::Empty, planted(None));
    let ssd = machine.ssd.clone();
    machine.rt.block_on(async move {
        write_twice(&ssd).await;
        flip_summaries(&ssd, &mut Rng::new(1));
    });
    let (image, _) = machine.power_cut(&mut Rng::new(2));
    let machine = Machine::recover(2, &profile, image, planted(None));
    let (ssd, handle) = (machine.ssd.clone(), machine.rt.handle());
    machine.rt.block_on(async move {
        let mut expected = Expected { even: 1, ..Expected::default() };
        expected.check(&ssd).await.unwrap_or_else(|error| panic!("{error}"));
        churn(&ssd, handle).await;
        expected.even = 2;
        expected.check(&ssd).await.unwrap_or_else(|error| panic!("{error}"));
    });
}

/// Returns the unreadable blocks. Readable blocks must be zeros.
async fn unreadable(ssd: &Ssd) -> BTreeSet<u64> {
    let mut lost = BTreeSet::new();
    for lba in 0..BLOCKS {
        match ssd.client_read(set_id(0), lba, 1).await {
            Ok(found) => assert_eq!(found, [Block::ZERO], "block {lba}"),
            Err(error) => {
                assert_eq!(error, DeviceError::Unreadable { set: set_id(0), block: lba });
                lost.insert(lba);
            }
        }
    }
    lost
}

#[test]
fn what_was_there_from_the_beginning_can_be_lost_as_well() {
    for precondition in [Precondition::Sequential(1.0), Precondition::Random(1.0)] {
        let profile = profile(true);
        let machine = Machine::format(1, &profile, precondition, planted(None));
        let (ssd, handle) = (machine.ssd.clone(), machine.rt.handle());
        let lost = machine.rt.block_on(async move {
            ssd.flash(set_id(0)).expect("it is there").with_array(|array| {
                let page = array.geometry().page(BlockAddress(4), 0);
                (0..LIMIT_READS).for_each(|_| _ = array.read(page));
            });
            let lost = unreadable(&ssd).await;
            assert!(!lost.is_empty() && lost.len() < 200, "{} blocks were lost", lost.len());
            // The lost blocks are moved.
            handle.sleep(Nanos::from_millis(500)).await;
            let stats = ssd.report(set_id(0)).expect("it is there").firmware;
            assert!(stats.reclaims > 0 && stats.blocks_lost > 0, "{stats:?}");
            assert_eq!(unreadable(&ssd).await, lost);
            lost
        });
        let (image, _) = machine.power_cut(&mut Rng::new(1));
        let machine = Machine::recover(1, &profile, image, planted(None));
        let ssd = machine.ssd.clone();
        machine.rt.block_on(async move {
            assert_eq!(unreadable(&ssd).await, lost);
            for lba in lost {
                ssd.client_write(set_id(0), lba, vec![Block::ZERO]).await.expect("there is room");
            }
            assert_eq!(unreadable(&ssd).await, BTreeSet::new());
        });
    }
}
