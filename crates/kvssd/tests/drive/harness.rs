//! A small drive for tests: small enough that everything a large one does happens within a few
//! hundred commands.

use engine::Options;
use kvssd::{DeviceProfile, DriveOptions};

/// 2 channels x 2 dies x 40 blocks x 16 pages of 4 KiB: 10 MiB in 40 superblocks of 64 pages.
pub(crate) fn small_device() -> DeviceProfile {
    let mut device = DeviceProfile::load("pink-zcu102").expect("built in");
    let geometry = &mut device.flash.geometry;
    geometry.channels = 2;
    geometry.dies_per_channel = 2;
    geometry.blocks_per_plane = 40;
    geometry.pages_per_block = 16;
    geometry.page_bytes = 1024;
    geometry.transfer_bytes = 1100;
    device.dram.index_bytes = 24 << 10;
    device
}

/// `PinK` with memtables and levels to match.
pub(crate) fn small_options() -> DriveOptions {
    let engine = Options {
        memtable_bytes: 6 << 10,
        ..Options::pink()
    };
    DriveOptions {
        expected_key_bytes: 8,
        expected_value_bytes: 100,
        ..DriveOptions::new(engine)
    }
}
