//! The seam itself.

use runtime::{FileRead, IoClass};

use crate::contents::Block;
use crate::error::DeviceError;
use crate::nvme::{EventAggregate, PerSetLog, PlmConfig, SetId, Status, WindowSelect};

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

/// Whether a write has to be durable by itself (NVMe's Force Unit Access).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Force {
    /// It is durable when the device likes, at the latest after the next flush.
    No,
    /// It is durable when it is acknowledged. What was written before need not be.
    Unit,
}

/// A block device of NVM sets. Each set is a namespace with numbers from 0 on; nothing that one
/// does disturbs another. A device that knows nothing of sets has one.
///
/// A command is submitted by the call: it is under way, and goes on, whether or not anybody looks at
/// the future, which only waits for the end. Commands that are under way at the same time may be
/// carried out in any order; one begins after another only if it is submitted after the other's
/// future was ready. A future is awaited to its end once it was polled.
///
/// A write is atomic by block. Writes under way at the same time to the same block may be ordered
/// either way. Whether an acknowledged write survives a power cut by itself, or only with
/// [`Force::Unit`] or after [`Self::flush`], is the device's affair; after those it does.
///
/// Every read and write says what it is for: schedulers and statistics go by it. A device may
/// ignore that.
pub trait BlockDevice: 'static {
    /// The sets, by ascending number.
    fn sets(&self) -> Vec<SetShape>;

    /// Reads `blocks` blocks from `first` on. What was never written, or was discarded, is zeros.
    fn read(
        &self,
        set: SetId,
        first: u64,
        blocks: u32,
        class: IoClass,
    ) -> impl Future<Output = Result<Vec<Block>, DeviceError>> + use<Self>;

    /// The same read for whoever is to carry it out without the device, if that gives what [`Self::read`] would.
    fn file_read(&self, _set: SetId, _first: u64, _blocks: u32) -> Option<FileRead> {
        None
    }

    /// Writes blocks from `first` on.
    fn write(
        &self,
        set: SetId,
        first: u64,
        blocks: Vec<Block>,
        class: IoClass,
        force: Force,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<Self>;

    /// Returns when everything that was acknowledged before is durable.
    fn flush(&self, set: SetId) -> impl Future<Output = Result<(), DeviceError>> + use<Self>;

    /// Says that blocks are not needed any more. They read as zeros from then on, unless the
    /// device had no room to remember that.
    fn discard(
        &self,
        set: SetId,
        first: u64,
        blocks: u64,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<Self>;

    /// Turns predictable-latency mode on or off (Set Features 13h). Devices without windows refuse
    /// this and the commands that follow.
    fn configure_plm(
        &self,
        _set: SetId,
        _config: PlmConfig,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<Self> {
        async { Err(DeviceError::Refused(Status::InvalidField)) }
    }

    /// The configuration in force (Get Features 13h).
    fn plm_config(
        &self,
        _set: SetId,
    ) -> impl Future<Output = Result<PlmConfig, DeviceError>> + use<Self> {
        async { Err(DeviceError::Refused(Status::InvalidField)) }
    }

    /// Takes a set to a window; it is there when this returns, which may be long if the set has to
    /// stay where it is for a while (Set Features 14h).
    fn select_window(
        &self,
        _set: SetId,
        _window: WindowSelect,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<Self> {
        async { Err(DeviceError::Refused(Status::InvalidField)) }
    }

    /// The window a set is in, and what is left of it (log page 0Ah). `retains` leaves its events
    /// as they are.
    fn plm_log(
        &self,
        _set: SetId,
        _retains: bool,
    ) -> impl Future<Output = Result<PerSetLog, DeviceError>> + use<Self> {
        async { Err(DeviceError::Refused(Status::InvalidLogPage)) }
    }

    /// Sets that have events (log page 0Bh).
    fn plm_events(&self) -> impl Future<Output = Result<EventAggregate, DeviceError>> + use<Self> {
        async { Ok(EventAggregate::default()) }
    }
}
