//! More writes than fit one group of the log, all arriving while another group is written.

use engine::{Durability, LogSync, Options, Value};
use runtime::Rng;
use stacks::kvssd::StoreOptions;

use crate::harness::{Machine, small, small_device};

const VALUE_BYTES: u32 = 2 << 20;
const VALUES: u64 = 60;

#[test]
fn a_group_of_the_log_never_has_more_pages_than_can_be_numbered() {
    let mut device = small_device();
    device.flash.geometry.pages_per_block = 4_096;
    device.flash.geometry.blocks_per_plane = 400;
    device.dram.index_bytes = 64 << 20;
    let engine = Options { memtable_bytes: 256 << 20, ..Options::pink() };
    let options = || {
        let mut options = small(engine.clone());
        options.engine = options.engine.with_journal(Durability::Log, LogSync::None);
        options
    };
    let machine = Machine::format(1, &device, options());
    let drive = machine.drive.clone();
    machine.rt.block_on(async move {
        for key in 0..VALUES {
            let value = Value::Synthetic { seed: key, len: VALUE_BYTES };
            // All arrive while the first one is written, and the last one waits for all.
            let sync = (key + 1 == VALUES).then_some(LogSync::Group);
            let options = StoreOptions { sync, ..StoreOptions::default() };
            drive.store(&key.to_be_bytes(), value, options).await.expect("there is room");
        }
    });
    let off = machine.power_cut(&mut Rng::new(2));
    let machine = Machine::recover(3, &device, options(), off.array).expect("it comes back");
    let drive = machine.drive.clone();
    machine.rt.block_on(async move {
        for key in 0..VALUES {
            let found = drive.retrieve(&key.to_be_bytes(), u32::MAX).await.expect("it is there");
            assert_eq!(found.value, Value::Synthetic { seed: key, len: VALUE_BYTES });
        }
    });
}
