//! A small drive for tests: small enough that all mechanisms of a large drive occur within a few
//! thousand commands.

use drives::nand::{CutReport, Flash, NandArray};
use engine::{Durability, Engine, Fault, Filters, Granularity, HashOptions, Options, TableOptions};
use runtime::{JoinHandle, Rng, Runtime};
use stacks::design::IndexOptions;
use stacks::kvssd::{DeviceProfile, DriveOptions, KvDrive, PoweredOff, RawFlash, RecoverError};
use testkit::trial::Complaint;

use crate::answers::of_recovery;

/// 2 channels x 2 dies x 32 blocks x 8 pages of 1 KiB: 32 superblocks of 32 KiB.
pub(crate) fn small_device() -> DeviceProfile {
    let mut device = DeviceProfile::load("pink-zcu102").expect("built in");
    let geometry = &mut device.flash.geometry;
    geometry.channels = 2;
    geometry.dies_per_channel = 2;
    geometry.blocks_per_plane = 32;
    geometry.pages_per_block = 8;
    geometry.page_bytes = 1024;
    // Header and directory, beyond a page of the paper.
    geometry.spare_bytes = 48;
    geometry.transfer_bytes = 1100;
    device.flash.timing.program_us = vec![300.0, 500.0];
    device.flash.timing.erase_us = 900.0;
    device.dram.index_bytes = 34 << 10;
    device.dram.iterator_bytes = 256 << 10;
    device
}

/// Same as [`small_device`], with two planes, one-shot programming of three pages, and suspension.
pub(crate) fn small_tlc_device() -> DeviceProfile {
    let mut device = small_device();
    let geometry = &mut device.flash.geometry;
    geometry.planes_per_die = 2;
    geometry.pages_per_block = 6;
    geometry.blocks_per_plane = 24;
    geometry.one_shot = true;
    geometry.bits_per_cell = 3;
    device.flash.timing.read_us = vec![49.0, 58.0, 67.0];
    device.flash.timing.program_us = vec![900.0];
    let datacenter = DeviceProfile::load("datacenter-tlc-1.92tb").expect("built in");
    device.flash.suspend = datacenter.flash.suspend;
    device
}

/// `PinK` with memtables and levels to match.
pub(crate) fn small_lsm() -> Options {
    Options { memtable_bytes: 4 << 10, ..Options::pink() }
}

/// Levels of tables to match.
pub(crate) fn small_tables() -> Options {
    Options {
        levels: 3,
        inline_up_to: u32::MAX,
        pinned_levels: None,
        range_pointers: false,
        filters: Filters::Bits(10),
        compaction: Granularity::Leveled,
        durability: Durability::Log,
        tables: TableOptions {
            table_bytes: 16 << 10,
            level_base_bytes: 32 << 10,
            level_multiplier: 3.0,
            l0_compaction_trigger: 2,
            l0_slowdown_trigger: 6,
            l0_stop_trigger: 9,
            max_compaction_bytes: 200 << 10,
            readahead_bytes: 4 << 10,
            write_bytes: 4 << 10,
            ..TableOptions::default()
        },
        ..small_lsm()
    }
}

/// Drive options with [`small_lsm`].
pub(crate) fn small_options() -> DriveOptions {
    small(small_lsm())
}

/// A design of an LSM-tree with memtables that suit a small drive.
pub(crate) fn small_design(design: &Options) -> DriveOptions {
    small(Options { memtable_bytes: 4 << 10, ..design.clone() })
}

/// Returns the options of a drive's LSM-tree.
pub(crate) fn tree_of(options: &mut DriveOptions) -> &mut Options {
    options.engine.lsm_mut().expect("it has an LSM-tree")
}

/// Expected sizes that suit a small drive.
pub(crate) fn small(index: impl Into<IndexOptions>) -> DriveOptions {
    let options = DriveOptions::new(index);
    DriveOptions { expected_key_bytes: 30, expected_value_bytes: 120, ..options }
}

/// The device with memory for seven of about two dozen bucket pages.
pub(crate) fn for_hash(mut device: DeviceProfile) -> DeviceProfile {
    device.dram.index_bytes = 8 << 10;
    device
}

/// The hash table with memtables to match the small drive.
pub(crate) fn small_hash() -> HashOptions {
    HashOptions { buffer_entries: 40, buffer_bytes: 4 << 10, ..HashOptions::published() }
}

/// Drive options with a hash table instead of `PinK`.
pub(crate) fn small_hash_options() -> DriveOptions {
    small(small_hash())
}

/// Small options with a deliberate bug.
pub(crate) fn with_fault(fault: Option<Fault>) -> DriveOptions {
    DriveOptions { planted: fault.into(), ..small_options() }
}

/// Returns the LSM-tree of a drive.
pub(crate) fn tree(drive: &KvDrive) -> &Engine<RawFlash> {
    drive.engine().lsm().expect("it has an LSM-tree")
}

/// A drive and its runtime.
pub(crate) struct Machine {
    pub rt: Runtime,
    pub drive: KvDrive,
}

impl Machine {
    pub(crate) fn format(seed: u64, device: &DeviceProfile, options: DriveOptions) -> Self {
        let rt = Runtime::new(seed);
        let drive = KvDrive::format(&rt.handle(), device, options).expect("it fits");
        Self { rt, drive }
    }

    /// Cuts the power; all tasks are dropped.
    pub(crate) fn power_cut(self, rng: &mut Rng) -> PoweredOff {
        self.drive.power_cut(rng)
    }

    /// Powers up after a cut. Returns an error if the drive does not recover.
    pub(crate) fn recover(
        seed: u64,
        device: &DeviceProfile,
        options: DriveOptions,
        array: NandArray,
    ) -> Result<Self, Complaint> {
        Comeback::begin(seed, device, options, array).finish()
    }
}

/// A drive in recovery, and its runtime.
pub(crate) struct Comeback {
    rt: Runtime,
    flash: Flash,
    recovering: JoinHandle<Result<KvDrive, RecoverError>>,
}

impl Comeback {
    pub(crate) fn begin(
        seed: u64,
        device: &DeviceProfile,
        options: DriveOptions,
        array: NandArray,
    ) -> Self {
        let rt = Runtime::new(seed);
        let flash = Flash::new(rt.handle(), &device.flash, array);
        let (handle, device, watched) = (rt.handle(), device.clone(), flash.clone());
        let recovering = rt.handle().spawn("recovery", async move {
            KvDrive::recover(&handle, &device, options, watched).await
        });
        Self { rt, flash, recovering }
    }

    pub(crate) fn finish(self) -> Result<Machine, Complaint> {
        let Self { rt, recovering, .. } = self;
        let drive = rt.block_on(recovering).map_err(|error| of_recovery(&error))?;
        Ok(Machine { rt, drive })
    }

    /// Runs until the flash has received that many operations. Returns false if the recovery ended
    /// before.
    pub(crate) fn run_to(&self, operations: u64) -> bool {
        self.run_until(|flash| flash.submitted() >= operations)
    }

    /// Runs until `is_there`. Returns false if the recovery ended before.
    pub(crate) fn run_until(&self, is_there: impl Fn(&Flash) -> bool) -> bool {
        self.rt.run_until_true(|| self.recovering.is_finished() || is_there(&self.flash));
        !self.recovering.is_finished()
    }

    /// Cuts the power. Until the drive takes commands, the dump it recovers from remains valid.
    pub(crate) fn power_cut(self, rng: &mut Rng) -> Result<(NandArray, CutReport), Complaint> {
        let Some(recovered) = self.recovering.take() else { return Ok(self.flash.power_cut(rng)) };
        let drive = recovered.map_err(|error| of_recovery(&error))?;
        let off = drive.power_cut(rng);
        Ok((off.array, off.cut))
    }
}
