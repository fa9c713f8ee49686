//! The trait of block devices.

use runtime::{FileRead, IoClass};

use crate::contents::Block;
use crate::error::DeviceError;
use crate::nvme::{EventAggregate, PerSetLog, PlmConfig, SetId, Status, WindowSelect};

/// The properties of a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SetShape {
    /// The identifier of the set.
    pub id: SetId,
    /// Capacity in blocks of [`crate::BLOCK_BYTES`].
    pub blocks: u64,
    /// Optimal write size in bytes.
    pub optimal_write_bytes: u32,
    /// Whether the set has windows.
    pub has_windows: bool,
}

/// Whether a write must be durable when it is acknowledged (NVMe's Force Unit Access).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Force {
    /// The device chooses when the write becomes durable, at the latest at the next flush.
    No,
    /// The write is durable when it is acknowledged. Earlier writes need not be.
    Unit,
}

/// A block device of NVM sets. Each set is a namespace whose blocks are numbered from 0; work in
/// one set does not disturb another. A device without NVM sets has one set.
///
/// The call itself submits the command. The command proceeds whether or not its future is polled;
/// the future only waits for completion. Concurrent commands may execute in any order. To order two
/// commands, submit the second after the future of the first is ready. A future that was polled
/// once must be polled to completion.
///
/// Writes are atomic per block. Concurrent writes to the same block may be ordered either way. The
/// device decides whether an acknowledged write survives a power cut by itself. With
/// [`Force::Unit`], or after [`Self::flush`], it always survives.
///
/// Each read and write names its I/O class, for schedulers and statistics. A device may ignore the
/// class.
pub trait BlockDevice: 'static {
    /// Returns the sets, by ascending number.
    fn sets(&self) -> Vec<SetShape>;

    /// Reads `blocks` blocks from `first` on. Unwritten and discarded blocks read as zeros.
    fn read(
        &self,
        set: SetId,
        first: u64,
        blocks: u32,
        class: IoClass,
    ) -> impl Future<Output = Result<Vec<Block>, DeviceError>> + use<Self>;

    /// Returns a description of the same read, so that the caller can execute it without the
    /// device. `None` if its result could differ from that of [`Self::read`].
    fn file_read(&self, _set: SetId, _first: u64, _blocks: u32) -> Option<FileRead> {
        None
    }

    /// Writes consecutive blocks from `first` on.
    fn write(
        &self,
        set: SetId,
        first: u64,
        blocks: Vec<Block>,
        class: IoClass,
        force: Force,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<Self>;

    /// Completes when every write acknowledged before the call is durable.
    fn flush(&self, set: SetId) -> impl Future<Output = Result<(), DeviceError>> + use<Self>;

    /// Deallocates blocks. They read as zeros afterwards, unless the device had no space to record
    /// the discard.
    fn discard(
        &self,
        set: SetId,
        first: u64,
        blocks: u64,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<Self>;

    /// Enables or disables Predictable Latency Mode (Set Features 13h). Devices without windows
    /// refuse this command and the window commands below.
    fn configure_plm(
        &self,
        _set: SetId,
        _config: PlmConfig,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<Self> {
        async { Err(DeviceError::Refused(Status::InvalidField)) }
    }

    /// Returns the current configuration (Get Features 13h).
    fn plm_config(
        &self,
        _set: SetId,
    ) -> impl Future<Output = Result<PlmConfig, DeviceError>> + use<Self> {
        async { Err(DeviceError::Refused(Status::InvalidField)) }
    }

    /// Moves a set to a window (Set Features 14h) and completes when the set is in it. This may
    /// take long, because the set must first spend its minimum time in the current window.
    fn select_window(
        &self,
        _set: SetId,
        _window: WindowSelect,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<Self> {
        async { Err(DeviceError::Refused(Status::InvalidField)) }
    }

    /// Returns the current window of a set and its remaining budget (log page 0Ah). If `retains`,
    /// the events of the set stay pending.
    fn plm_log(
        &self,
        _set: SetId,
        _retains: bool,
    ) -> impl Future<Output = Result<PerSetLog, DeviceError>> + use<Self> {
        async { Err(DeviceError::Refused(Status::InvalidLogPage)) }
    }

    /// Returns the sets that have pending events (log page 0Bh).
    fn plm_events(&self) -> impl Future<Output = Result<EventAggregate, DeviceError>> + use<Self> {
        async { Ok(EventAggregate::default()) }
    }
}
