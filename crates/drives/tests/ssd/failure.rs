//! Lost sets: failed, or not recovered after a power cut. The other sets continue.

use block::nvme::{PlmConfig, WindowSelect};
use block::{Block, BlockDevice, DeviceError, Force};
use drives::nand::{NandArray, PageAddress};
use drives::ssd::specimens::small;
use drives::ssd::{Precondition, SetFailure, Ssd, SsdImage, SsdProfile};
use runtime::{IoClass, Nanos, Rng};

use crate::harness::{ClientIo, Machine, planted, set_id};

const DATA: &[u8] = b"what was written";

async fn write(ssd: &Ssd, set: u16) {
    ssd.client_write(set_id(set), 3, vec![Block::new(DATA)]).await.expect("there is room");
}

async fn assert_alive(ssd: &Ssd, set: u16) {
    let found = ssd.client_read(set_id(set), 3, 1).await;
    assert_eq!(found, Ok(vec![Block::new(DATA)]), "set {set}");
}

async fn assert_gone(ssd: &Ssd, set: u16) {
    let id = set_id(set);
    let gone = DeviceError::Gone(id);
    let data = vec![Block::ZERO];
    assert_eq!(ssd.client_read(id, 3, 1).await.err(), Some(gone.clone()));
    let write = ssd.write(id, 3, data, IoClass::Flush, Force::Unit);
    assert_eq!(write.await.err(), Some(gone.clone()));
    assert_eq!(ssd.flush(id).await.err(), Some(gone.clone()));
    assert_eq!(ssd.discard(id, 3, 1).await.err(), Some(gone.clone()));
    assert_eq!(ssd.configure_plm(id, PlmConfig::default()).await.err(), Some(gone.clone()));
    assert_eq!(ssd.plm_config(id).await.err(), Some(gone.clone()));
    assert_eq!(ssd.select_window(id, WindowSelect::Dtwin).await.err(), Some(gone.clone()));
    assert_eq!(ssd.plm_log(id, true).await.err(), Some(gone));
}

fn failure(ssd: &Ssd, set: u16) -> Option<SetFailure> {
    ssd.report(set_id(set)).expect("it is reported, whatever has become of it").failure
}

#[test]
fn a_set_that_is_taken_away_answers_nothing_any_more() {
    let profile = small::profile(2);
    let machine = Machine::format(1, &profile, Precondition::Empty, planted(None));
    let (ssd, handle) = (machine.ssd.clone(), machine.rt.handle());
    machine.rt.block_on(async move {
        write(&ssd, 0).await;
        write(&ssd, 1).await;
        let of_lost = ssd.client_read(set_id(0), 3, 1);
        let of_other = ssd.client_read(set_id(1), 3, 1);
        ssd.fail_set(set_id(0)).expect("it is there");
        assert_eq!(of_lost.await.err(), Some(DeviceError::Gone(set_id(0))));
        assert_eq!(of_other.await, Ok(vec![Block::new(DATA)]));
        assert_gone(&ssd, 0).await;
        assert_alive(&ssd, 1).await;
        let before = handle.now();
        assert_eq!(ssd.flush(set_id(0)).await, Err(DeviceError::Gone(set_id(0))));
        assert!(handle.now() > before, "who tries again must not stop the clock");
        assert_eq!((failure(&ssd, 0), failure(&ssd, 1)), (Some(SetFailure::TakenAway), None));
    });
    let (image, _) = machine.power_cut(&mut Rng::new(1));
    let machine = Machine::recover(2, &profile, image, planted(None));
    let ssd = machine.ssd.clone();
    machine.rt.block_on(async move {
        assert_gone(&ssd, 0).await;
        assert_alive(&ssd, 1).await;
    });
}

/// Returns a drive of two sets after a power cut, with data in its buffers, or without capacitors
/// on flash. `cuts`: number of earlier power cuts.
fn cut(profile: &SsdProfile, cuts: u64) -> SsdImage {
    let mut machine = Machine::format(1, profile, Precondition::Empty, planted(None));
    for seed in 0..=cuts {
        let (ssd, handle) = (machine.ssd.clone(), machine.rt.handle());
        machine.rt.block_on(async move {
            for set in [0, 1] {
                ssd.client_write(set_id(set), 9, vec![Block::ZERO]).await.expect("there is room");
                ssd.discard(set_id(set), 9, 1).await.expect("it never fails");
                write(&ssd, set).await;
                ssd.flush(set_id(set)).await.expect("it never fails");
            }
            // Obsolete dumps are erased.
            handle.sleep(Nanos::from_millis(20)).await;
        });
        let (image, _) = machine.power_cut(&mut Rng::new(seed));
        if seed == cuts {
            return image;
        }
        machine = Machine::recover(seed, profile, image, planted(None));
    }
    unreachable!("the loop ends with a power cut")
}

/// Returns the pages of the reserved region that hold a dump.
fn dumped(array: &mut NandArray, profile: &SsdProfile) -> Vec<PageAddress> {
    const MAGIC: &[u8] = b"PMUD";
    let pages = (0..profile.flash_of_set().geometry.pages()).map(PageAddress);
    pages
        .filter(
            |page| matches!(array.read(*page), Ok(image) if image.bytes().get(4..8) == Some(MAGIC)),
        )
        .collect()
}

/// Recovers from `image` after `harm` was done to the dump of set 0. Returns why the set was lost,
/// if it was.
fn recover_with(
    profile: &SsdProfile,
    mut image: SsdImage,
    harm: impl FnOnce(&mut NandArray, &[PageAddress]),
) -> Option<SetFailure> {
    let array = image.array_mut(set_id(0)).expect("it is there");
    let pages = dumped(array, profile);
    assert!(!pages.is_empty(), "something was saved");
    harm(array, &pages);
    let machine = Machine::recover(9, profile, image, planted(None));
    let ssd = machine.ssd.clone();
    machine.rt.block_on(async move {
        assert_alive(&ssd, 1).await;
        match failure(&ssd, 0) {
            Some(_) => assert_gone(&ssd, 0).await,
            None => assert_alive(&ssd, 0).await,
        }
        failure(&ssd, 0)
    })
}

fn profile(has_capacitors: bool) -> SsdProfile {
    let mut profile = small::profile(2);
    profile.buffer.has_capacitors = has_capacitors;
    profile
}

#[test]
fn a_set_whose_dump_is_damaged_is_lost_and_says_so() {
    for has_capacitors in [true, false] {
        for cuts in 0..4 {
            let profile = profile(has_capacitors);
            let unharmed = recover_with(&profile, cut(&profile, cuts), |_, _| ());
            assert_eq!(unharmed, None);
            let failure = recover_with(&profile, cut(&profile, cuts), |array, pages| {
                assert!(array.flip_bit(pages[0], 77));
            });
            // Without capacitors the very first dump could have been in flight.
            let expected = (has_capacitors || cuts > 0).then_some(SetFailure::DumpDamaged);
            assert_eq!(failure, expected, "capacitors: {has_capacitors}, {cuts} power cuts before");
        }
    }
}

#[test]
fn a_set_whose_dump_is_missing_is_lost_and_says_so() {
    for cuts in 0..4 {
        let profile = profile(true);
        let failure = recover_with(&profile, cut(&profile, cuts), |array, pages| {
            for page in pages {
                let (block, _) = array.geometry().locate(*page);
                array.erase(block);
            }
        });
        assert_eq!(failure, Some(SetFailure::DumpMissing), "{cuts} power cuts before");
        let failure = recover_with(&profile, cut(&profile, cuts), |array, pages| {
            for page in pages {
                assert!(array.flip_bit(*page, 77));
            }
        });
        assert_eq!(failure, Some(SetFailure::DumpMissing), "{cuts} power cuts before");
    }
}
