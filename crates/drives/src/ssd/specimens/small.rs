//! Drives small enough for tests.

use crate::nand::{FlashProfile, Geometry, ReadDisturb};
use crate::ssd::SsdProfile;

/// Returns a drive with `sets` sets of four dies each and 15 superblocks of 2,304 slots: all
/// mechanisms of a large drive in a few megabytes.
pub fn profile(sets: u32) -> SsdProfile {
    let mut profile = SsdProfile::load("vigil-15gb").expect("built in");
    "small".clone_into(&mut profile.name);
    profile.sets = sets;
    profile.controller.cores = sets;
    profile.flash = FlashProfile {
        geometry: Geometry {
            channels: 2 * sets,
            dies_per_channel: 2,
            planes_per_die: 2,
            blocks_per_plane: 20,
            pages_per_block: 48,
            page_bytes: 16_384,
            ..profile.flash.geometry.clone()
        },
        read_disturb: Some(ReadDisturb { limit_reads: 5_000 }),
        ..profile.flash
    };
    profile.background.reclaim_reads = 1_000;
    profile.background.critical_reads = 3_000;
    profile.background.discarded_ranges = 500;
    profile.buffer.bytes = u64::from(sets) * 100 * 4_096;
    profile.user_bytes = u64::from(sets) * 14_000 * 4_096;
    profile
}
