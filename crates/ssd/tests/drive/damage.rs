//! Damage: a block whose page cannot be read is reported, never passed off as what it was before,
//! and stays so until it is written again. Others are unharmed.

use std::collections::BTreeSet;

use flash::PageAddress;
use runtime::{Nanos, Rng};
use ssd::{Block, BlockDevice, DeviceError, Fault, Precondition, Ssd, SsdProfile};

use crate::harness::{Machine, planted, set_id};
use crate::small;
use crate::world::encode;

/// In the first half nothing is written after the beginning; the second is overwritten.
const BLOCKS: u64 = 4_000;

fn profile(has_capacitors: bool) -> SsdProfile {
    let mut profile = small::profile(1);
    profile.flash.geometry.pages_per_block = 24;
    profile.flash.geometry.blocks_per_plane = 14;
    // What nobody writes moves as well.
    profile.background.wear_spread = 1;
    profile.flash.read_disturb = None;
    profile.background.reclaim_reads = 1 << 40;
    profile.background.critical_reads = 1 << 41;
    profile.buffer.has_capacitors = has_capacitors;
    profile.user_bytes = BLOCKS * 4_096;
    profile
}

/// What block `lba` holds after `round`.
fn contents(lba: u64, round: u64) -> Block {
    encode(round + 1, 0, lba, false)
}

async fn write(ssd: &Ssd, lbas: impl Iterator<Item = u64>, round: u64) {
    for lba in lbas {
        ssd.write(set_id(0), lba, vec![contents(lba, round)]).await.expect("there is room");
    }
    ssd.flush(set_id(0)).await.expect("it never fails");
}

/// Overwrites the second half often enough for everything to be collected, and waits for that.
async fn churn(ssd: &Ssd, handle: runtime::Handle) {
    let before = moved(ssd);
    for round in 2..8 {
        // Every other block of the first half as well: superblocks there have something to gain.
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

/// Flips a bit in some pages that hold the second version of odd blocks of the first half. Gives
/// the blocks that were harmed.
fn damage(ssd: &Ssd, rng: &mut Rng) -> BTreeSet<u64> {
    ssd.flash(set_id(0)).expect("it is there").with_array(|array| {
        let mut harmed = BTreeSet::new();
        for page in (0..array.geometry().pages()).map(PageAddress) {
            let Ok(image) = array.read(page) else { continue };
            let holds = blocks_of(image.bytes());
            let is_wanted = |lba: &u64| *lba < BLOCKS / 2 && holds_second(image.bytes(), *lba);
            if holds.iter().any(is_wanted) && rng.chance(0.03) {
                assert!(array.flip_bit(page, rng.next_u64()));
                harmed.extend(holds.into_iter().filter(is_wanted));
            }
        }
        assert!(harmed.len() > 10, "only {harmed:?} were harmed");
        harmed
    })
}

/// Blocks whose numbers stand in the header of a data page.
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

/// Every block of the first half: odd ones have their second version or are lost, even ones what
/// `even` says.
async fn check(ssd: &Ssd, lost: &BTreeSet<u64>, even: u64) -> Result<(), String> {
    for lba in 0..BLOCKS / 2 {
        let round = if lba % 2 == 0 { even } else { 1 };
        let is_lost = lost.contains(&lba) && round == 1;
        let unreadable = DeviceError::Unreadable { set: set_id(0), block: lba };
        let expected = if is_lost { Err(unreadable) } else { Ok(vec![contents(lba, round)]) };
        let found = ssd.read(set_id(0), lba, 1).await;
        if found != expected {
            let stamp = found.map(|blocks| blocks[0].bytes().first().copied());
            return Err(format!("block {lba}, lost: {is_lost}: {stamp:?}"));
        }
    }
    Ok(())
}

/// Writes a drive twice over, harms it, has it collected, cuts its power.
pub(crate) fn damage_is_kept_apart(seed: u64, fault: Option<Fault>) -> Result<(), String> {
    let mut rng = Rng::derive(seed, "damage");
    let profile = profile(rng.chance(0.5));
    let machine = Machine::format(seed, &profile, Precondition::Empty, planted(fault));
    let (ssd, handle) = (machine.ssd.clone(), machine.rt.handle());
    let mut rng_of_damage = Rng::new(rng.next_u64());
    let lost = machine.rt.block_on(async move {
        write(&ssd, 0..BLOCKS, 0).await;
        write(&ssd, 0..BLOCKS, 1).await;
        // What was written last is in superblocks that have no summary yet.
        write(&ssd, BLOCKS / 2..BLOCKS, 1).await;
        let lost = damage(&ssd, &mut rng_of_damage);
        check(&ssd, &lost, 1).await?;
        churn(&ssd, handle).await;
        check(&ssd, &lost, 2).await?;
        Ok::<_, String>(lost)
    })?;
    let stats = machine.ssd.report(set_id(0)).expect("it is there").firmware;
    let still_lost = lost.iter().filter(|lba| *lba % 2 == 1).count() as u64;
    if stats.blocks_lost < still_lost {
        return Err(format!("{still_lost} lost blocks were to be moved: {stats:?}"));
    }
    let (image, _) = machine.power_cut(&mut rng);
    let machine = Machine::recover(seed, &profile, image, planted(fault));
    let (ssd, handle) = (machine.ssd.clone(), machine.rt.handle());
    machine.rt.block_on(async move {
        check(&ssd, &lost, 2).await?;
        churn(&ssd, handle).await;
        check(&ssd, &lost, 2).await?;
        // Written or discarded they are like others again.
        let mut odd = lost.iter().copied().filter(|lba| lba % 2 == 1);
        let discarded = odd.next().expect("some were harmed");
        ssd.discard(set_id(0), discarded, 1).await.expect("it never fails");
        let zeros = ssd.read(set_id(0), discarded, 1).await;
        if zeros != Ok(vec![Block::ZERO]) {
            return Err(format!("block {discarded} was discarded: {zeros:?}"));
        }
        write(&ssd, lost.iter().copied().filter(|lba| lba % 2 == 1), 1).await;
        check(&ssd, &BTreeSet::new(), 2).await
    })
}

#[test]
fn damage_stays_where_it_is() {
    for seed in 0..6 {
        damage_is_kept_apart(seed, None).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}
