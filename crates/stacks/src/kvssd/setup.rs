//! The setup of a drive, and the parts that are created before its engine.

use std::fmt;
use std::rc::Rc;

use drives::firmware::Reserve;
use drives::nand::Flash;
use engine::{Cpu, Durability, OpenError, Planted, StoreId, Surroundings};
use runtime::{Cores, Handle, Nanos};

use super::profile::DeviceProfile;
use super::raw_flash::RawFlash;
use crate::design::{IndexOptions, IndexSetup};

/// Limits on key length.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum KeyFormat {
    /// 1 to 255 bytes, as in SNIA's KV API.
    #[default]
    Snia,
    /// 1 to 16 bytes, as fits in an NVMe command.
    Nvme,
}

impl KeyFormat {
    pub(crate) fn max_bytes(self) -> usize {
        match self {
            Self::Snia => engine::MAX_KEY_BYTES,
            Self::Nvme => 16,
        }
    }
}

/// Settings of a drive, besides its hardware.
#[derive(Clone, Debug)]
pub struct DriveOptions {
    /// The index, and its options.
    pub engine: IndexOptions,
    /// Limits on key length.
    pub key_format: KeyFormat,
    /// Key length that the index is sized for, in bytes.
    pub expected_key_bytes: u32,
    /// Value length that the index is sized for, in bytes.
    pub expected_value_bytes: u32,
    /// Iterators that may be open at a time.
    pub iterators: u32,
    /// Whether deleting a missing key is an error (NVMe feature "key value configuration").
    pub delete_must_exist: bool,
    /// A deliberate bug, for tests of the tests.
    pub planted: Planted,
}

impl DriveOptions {
    /// Returns options for `engine` with the sizes of the paper's workload and the defaults of the
    /// command set.
    pub fn new(engine: impl Into<IndexOptions>) -> Self {
        Self {
            engine: engine.into(),
            key_format: KeyFormat::Snia,
            expected_key_bytes: 32,
            expected_value_bytes: 1024,
            iterators: 16,
            delete_must_exist: false,
            planted: Planted::default(),
        }
    }
}

/// Why a design cannot be set up on a drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SetupError {
    /// The dumps of the drive's memory would leave too few superblocks.
    TooSmall {
        /// Superblocks of the drive.
        superblocks: u32,
        /// Superblocks reserved for dumps.
        reserved: u32,
    },
    /// The engine does not fit.
    Engine(OpenError),
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooSmall { superblocks, reserved } => write!(
                f,
                "the drive is too small for its memory: when power fails, memtables and index are \
                 written to flash that is kept free for them, {reserved} superblocks (an erase block \
                 of every die), and at least {MIN_SUPERBLOCKS} more are needed, but there are \
                 {superblocks}; give it more flash (blocks_per_plane), less memory (index_bytes) or \
                 smaller memtables (memtable_bytes)"
            ),
            Self::Engine(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SetupError {}

impl From<OpenError> for SetupError {
    fn from(error: OpenError) -> Self {
        Self::Engine(error)
    }
}

/// Superblocks that clients never fill: those that flush, compaction and garbage collection leave
/// free for each other, and those that memtables need (docs/decisions/0010).
const SPARE_SUPERBLOCKS: u32 = 6;

/// Fewest superblocks of an engine.
const MIN_SUPERBLOCKS: u32 = 8;

/// The parts that are created before the engine.
pub(crate) struct Parts {
    pub handle: Handle,
    pub flash: Flash,
    pub reserve: Reserve,
    pub medium: RawFlash,
    pub cores: Rc<Cores>,
}

impl Parts {
    pub(crate) fn new(
        handle: Handle,
        profile: &DeviceProfile,
        options: &DriveOptions,
        flash: Flash,
    ) -> Result<Self, SetupError> {
        let geometry = &profile.flash.geometry;
        let reserve = Reserve::new(geometry, superblocks_for_dump(profile, &options.engine));
        let (superblocks, reserved) = (geometry.blocks_per_die(), reserve.superblocks());
        if reserved + MIN_SUPERBLOCKS > superblocks {
            return Err(SetupError::TooSmall { superblocks, reserved });
        }
        let medium = RawFlash::new(flash.clone(), reserve.superblocks());
        let controller = &profile.controller;
        let quantum = Nanos::from_micros_f64(controller.quantum_us);
        let cores = Rc::new(Cores::new(handle.clone(), controller.cores, quantum));
        Ok(Self { handle, flash, reserve, medium, cores })
    }

    pub(crate) fn setup(
        &self,
        profile: &DeviceProfile,
        options: &DriveOptions,
    ) -> IndexSetup<RawFlash> {
        IndexSetup {
            handle: self.handle.clone(),
            medium: self.medium.clone(),
            surroundings: Surroundings {
                index_dram_bytes: profile.dram.index_bytes,
                iterator_dram_bytes: profile.dram.iterator_bytes,
                expected_key_bytes: options.expected_key_bytes,
                expected_value_bytes: options.expected_value_bytes,
            },
            cpu: Cpu { cores: Rc::clone(&self.cores), costs: profile.controller.costs.clone() },
            accelerator: profile.accelerator.clone(),
            planted: options.planted,
            id: StoreId(self.handle.rng("store identity").next_u64() as u32),
        }
    }
}

/// Returns the superblocks for one dump. The dump includes counters for each superblock, and a bit
/// for each page.
fn superblocks_for_dump(profile: &DeviceProfile, index: &IndexOptions) -> u32 {
    if index.durability() == Durability::Log {
        return 0;
    }
    let geometry = &profile.flash.geometry;
    let pages = u64::from(geometry.dies()) * u64::from(geometry.pages_per_die_block());
    let extents = u64::from(geometry.blocks_per_die()) * (48 + pages.div_ceil(8));
    let object = u64::from(profile.max_value_bytes()) + engine::MAX_KEY_BYTES as u64 + 32;
    let payload = geometry.page_bytes + geometry.spare_bytes;
    let bytes = index.dump_bytes(profile.dram.index_bytes, object, payload) + extents;
    Reserve::superblocks_for(geometry, bytes)
}

impl DeviceProfile {
    /// Returns the flash for pairs and index, in bytes: all except the space reserved for dumps at
    /// a power cut and for background work.
    pub fn usable_bytes(&self, index: &IndexOptions) -> u64 {
        let geometry = &self.flash.geometry;
        let reserved = 2 * superblocks_for_dump(self, index) + SPARE_SUPERBLOCKS;
        let usable = geometry.blocks_per_die().saturating_sub(reserved);
        geometry.capacity_bytes() / u64::from(geometry.blocks_per_die()) * u64::from(usable)
    }

    /// Returns the longest value that a drive accepts, in bytes.
    pub fn max_value_bytes(&self) -> u32 {
        engine::max_value_bytes(&super::raw_flash::shape(&self.flash.geometry, 0))
    }
}
