//! The seam that volumes are built on: a block device of one or more sets, with windows.

use std::fmt;

use crate::block::Block;
use crate::nvme::{EventAggregate, PerSetLog, PlmConfig, SetId, Status, WindowSelect};

/// Why a command failed, and what the caller can do about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DeviceError {
    /// The device has no such set. Its sets are listed by [`BlockDevice::sets`].
    NoSuchSet(SetId),
    /// The blocks reach beyond the end of the set.
    OutOfRange {
        /// The set.
        set: SetId,
        /// The first block that was asked for.
        first: u64,
        /// How many.
        blocks: u64,
        /// Blocks that the set has.
        capacity: u64,
    },
    /// The flash has lost the block. Writing or discarding it makes it readable again.
    Unreadable {
        /// The set.
        set: SetId,
        /// The block.
        block: u64,
    },
    /// A window command was refused.
    Refused(Status),
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchSet(set) => write!(f, "the drive has no NVM set {set}"),
            Self::OutOfRange { set, first, blocks, capacity } => write!(
                f,
                "blocks {first} to {} are asked for, NVM set {set} has {capacity}",
                first.saturating_add(*blocks).saturating_sub(1)
            ),
            Self::Unreadable { set, block } => {
                write!(f, "block {block} of NVM set {set} cannot be read back as it was written")
            }
            Self::Refused(status) => status.fmt(f),
        }
    }
}

impl std::error::Error for DeviceError {}

/// What a set is like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SetShape {
    /// Its number.
    pub id: SetId,
    /// Its size in blocks of [`crate::BLOCK_BYTES`].
    pub blocks: u64,
    /// What it writes best, in bytes.
    pub optimal_write_bytes: u32,
    /// Whether it has windows.
    pub has_windows: bool,
}

/// A block device of NVM sets. Each set is a namespace with numbers from 0 on; nothing that one
/// does disturbs another.
///
/// A write is atomic by block. Writes under way at the same time to the same block may be ordered
/// either way. Whether an acknowledged write survives a power cut by itself, or only after
/// [`Self::flush`], is the device's affair; after a flush it does.
pub trait BlockDevice {
    /// The sets, by ascending number.
    fn sets(&self) -> Vec<SetShape>;

    /// Reads `blocks` blocks from `first` on. What was never written, or was discarded, is zeros.
    fn read(
        &self,
        set: SetId,
        first: u64,
        blocks: u32,
    ) -> impl Future<Output = Result<Vec<Block>, DeviceError>>;

    /// Writes blocks from `first` on.
    fn write(
        &self,
        set: SetId,
        first: u64,
        blocks: Vec<Block>,
    ) -> impl Future<Output = Result<(), DeviceError>>;

    /// Returns when everything that was acknowledged before is durable.
    fn flush(&self, set: SetId) -> impl Future<Output = Result<(), DeviceError>>;

    /// Says that blocks are not needed any more. They read as zeros from then on, unless the
    /// device had no room to remember that.
    fn discard(
        &self,
        set: SetId,
        first: u64,
        blocks: u64,
    ) -> impl Future<Output = Result<(), DeviceError>>;

    /// Turns predictable-latency mode on or off (Set Features 13h).
    fn configure_plm(
        &self,
        set: SetId,
        config: PlmConfig,
    ) -> impl Future<Output = Result<(), DeviceError>>;

    /// The configuration in force (Get Features 13h).
    fn plm_config(&self, set: SetId) -> impl Future<Output = Result<PlmConfig, DeviceError>>;

    /// Takes a set to a window; it is there when this returns, which may be long if the set has to
    /// stay where it is for a while (Set Features 14h).
    fn select_window(
        &self,
        set: SetId,
        window: WindowSelect,
    ) -> impl Future<Output = Result<(), DeviceError>>;

    /// The window a set is in, and what is left of it (log page 0Ah). `retains` leaves its events
    /// as they are.
    fn plm_log(
        &self,
        set: SetId,
        retains: bool,
    ) -> impl Future<Output = Result<PerSetLog, DeviceError>>;

    /// Sets that have events (log page 0Bh).
    fn plm_events(&self) -> impl Future<Output = EventAggregate>;
}
