//! Tests of the erases of the reserved region.

use runtime::{Nanos, Rng, Runtime};

use super::fuzz_tests::profile;
use crate::firmware::reserve::*;

const GEOMETRY: Geometry = Geometry {
    channels: 1,
    dies_per_channel: 1,
    planes_per_die: 1,
    blocks_per_plane: 16,
    pages_per_block: 2,
    page_bytes: 256,
    spare_bytes: 0,
    transfer_bytes: 256,
    one_shot: false,
    bits_per_cell: 1,
};

const ERASE: Nanos = Nanos::from_micros(900);

/// Returns the time to erase a half that has room for eight blocks, after a dump of `bytes` bytes.
fn time_to_erase(bytes: usize) -> Nanos {
    let rt = Runtime::new(0);
    let reserve = Reserve::new(&GEOMETRY, 8);
    let flash = Flash::new(rt.handle(), &profile(GEOMETRY), NandArray::new(&GEOMETRY));
    let handle = rt.handle();
    rt.block_on(async move {
        reserve.store(&flash, 2, &vec![7; bytes]).await;
        let stored = handle.now();
        reserve.erase(&flash, 4).await;
        reserve.erase(&flash, 5).await;
        handle.now() - stored
    })
}

#[test]
fn only_blocks_that_hold_something_are_erased() {
    assert_eq!(time_to_erase(10), ERASE);
    assert_eq!(time_to_erase(3 * 232), Nanos(2 * ERASE.0));
}

/// Cuts the power halfway through the erase of a dump. Returns the cells, and the torn operations.
fn erase_cut_short(seed: u64, reserve: &Reserve) -> (NandArray, u32) {
    let rt = Runtime::new(seed);
    let flash = Flash::new(rt.handle(), &profile(GEOMETRY), NandArray::new(&GEOMETRY));
    let (stores, erases) = ((flash.clone(), reserve.clone()), (flash.clone(), reserve.clone()));
    rt.block_on(async move { stores.1.store(&stores.0, 2, &[7; 10]).await });
    rt.handle().spawn("erase", async move { erases.1.erase(&erases.0, 4).await });
    rt.run_until(rt.handle().now() + Nanos(ERASE.0 / 2));
    let (array, cut) = flash.power_cut(&mut Rng::new(seed));
    (array, cut.torn)
}

#[test]
fn a_block_whose_erase_was_cut_short_is_erased_again() {
    let reserve = Reserve::new(&GEOMETRY, 1);
    let mut cuts = (0..200).map(|seed| erase_cut_short(seed, &reserve));
    let (array, _) = cuts.find(|(_, torn)| *torn == 1).expect("some power cut tears it");
    let rt = Runtime::new(0);
    let flash = Flash::new(rt.handle(), &profile(GEOMETRY), array);
    rt.block_on(async move {
        reserve.erase(&flash, 4).await;
        reserve.store(&flash, 4, &[8; 10]).await;
        assert_eq!(reserve.read(&flash).await.map(|dump| dump.epoch), Some(4));
    });
}
