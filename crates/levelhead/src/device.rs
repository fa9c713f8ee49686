//! The device of a store's pages: its files, and optionally a simulated drive.
//!
//! The simulated drive receives each command that the files receive, in real time, and a command
//! ends when both have completed it. Only the files store data; the drive stores zeros. So the
//! store behaves as on such a drive, provided that the files are faster and the machine keeps up
//! with the simulation.

use std::future::ready;
use std::pin::Pin;

use block::nvme::{PerSetLog, PlmConfig, SetId, WindowSelect};
use block::{BLOCK_BYTES, Block, BlockDevice, DeviceError, Force, SetShape};
use files::{FileDevice, Locks, Trouble, Waits};
use runtime::{FileRead, Handle, IoClass};
use ssd::{Precondition, Ssd, SsdProfile};

use crate::error::Error;
use crate::kept::Kept;

/// The files, one set each, and the optional simulated drive with one set for each file.
#[derive(Clone)]
pub(crate) struct Device {
    files: FileDevice,
    simulated: Option<Ssd>,
    writes: Writes,
}

/// The destination of writes.
#[derive(Clone)]
enum Writes {
    ToFiles,
    /// Memory: the store was opened read-only.
    Kept(Kept),
    /// Writes are refused, so that a damaged store is not changed while it is read.
    Refused,
}

/// Loads the profile of a simulated drive, a built-in one or a file, for a store over `directories`
/// directories.
///
/// # Errors
/// Returns [`Error::Invalid`] if there is no such profile, or if the drive has fewer NVM sets than
/// the store has directories.
pub(crate) fn profile(name: Option<&str>, directories: usize) -> Result<Option<SsdProfile>, Error> {
    let Some(name) = name else { return Ok(None) };
    let profile = SsdProfile::load(name);
    let profile = profile.map_err(|error| Error::Invalid(format!("simulated_drive: {error}")))?;
    if (profile.sets as usize) < directories {
        let sets = profile.sets;
        return Err(Error::Invalid(format!(
            "simulated_drive: {name} has {sets} NVM sets, and each of the store's {directories} directories takes one"
        )));
    }
    Ok(Some(profile))
}

/// Returns the maximum size of a file beside that drive, in bytes.
pub(crate) fn capacity_beside(profile: &SsdProfile) -> u64 {
    profile.blocks_per_set() * u64::from(BLOCK_BYTES)
}

impl Device {
    /// Combines the files with a simulated drive all of whose blocks have been written once, in
    /// order, so that reads of blocks from earlier runs of the store take the time of a flash read,
    /// too.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if the drive's sets are smaller than the files.
    pub(crate) fn new(
        handle: &Handle,
        files: FileDevice,
        profile: Option<&SsdProfile>,
    ) -> Result<Self, Error> {
        let writes = Writes::ToFiles;
        let Some(profile) = profile else { return Ok(Self { files, simulated: None, writes }) };
        let bytes = |set: &SetShape| set.blocks * u64::from(BLOCK_BYTES);
        let (most, largest) =
            (capacity_beside(profile), files.sets().iter().map(bytes).max().unwrap_or(0));
        if largest > most {
            return Err(Error::Invalid(format!(
                "simulated_drive: a set of {} has {most} bytes, and a file of the store {largest}",
                profile.name
            )));
        }
        let simulated = Some(Ssd::new(handle, profile, Precondition::Sequential(1.0)));
        Ok(Self { files, simulated, writes })
    }

    /// Keeps later writes in memory; the files are only read.
    pub(crate) fn read_only(self) -> Self {
        let writes = Writes::Kept(Kept::new(self.files.lost()));
        Self { writes, ..self }
    }

    /// Refuses later writes and discards.
    pub(crate) fn refusing_writes(self) -> Self {
        Self { writes: Writes::Refused, ..self }
    }

    /// Sets whether writes wait when the disk is full.
    pub(crate) fn wait_for_room(&self, is_on: bool) {
        self.files.wait_for_room(is_on);
    }

    /// Whether a write failed because the disk was full, instead of waiting.
    pub(crate) fn has_refused_for_room(&self) -> bool {
        self.files.has_refused_for_room()
    }

    /// Waits until the set of writes that wait for disk space differs from `known`, and returns it.
    pub(crate) async fn waits_other_than(&self, known: Waits) -> Waits {
        self.files.waits_changed(known).await;
        self.files.waits()
    }

    /// Returns the locks on the files.
    pub(crate) fn locks(&self) -> Locks {
        self.files.locks()
    }

    /// Returns and clears the troubles of the files since the last call.
    pub(crate) fn troubles(&self) -> Vec<Trouble> {
        self.files.troubles()
    }

    /// Returns the latest trouble without clearing it.
    pub(crate) fn last_trouble(&self) -> Option<Trouble> {
        self.files.last_trouble()
    }

    /// Finds out whether the drives support windows. The profile of a simulated drive says so.
    ///
    /// # Errors
    /// Returns the reason why they do not, as text.
    pub(crate) async fn look_for_windows(&self) -> Result<(), String> {
        match &self.simulated {
            Some(drive) if drive.profile().plm.is_some() => Ok(()),
            Some(drive) => Err(format!("{} has none", drive.profile().name)),
            None => self.files.look_for_windows().await,
        }
    }
}

/// A command in flight. Boxed, so that callers do not reserve space for the state of simulated
/// drives; the allocation is cheap compared to the I/O.
type Command<T> = Pin<Box<dyn Future<Output = Result<T, DeviceError>>>>;

/// Waits for both futures, which are already in flight, and returns the result of the files.
fn beside<T: 'static, U: 'static>(
    files: impl Future<Output = Result<T, DeviceError>> + 'static,
    simulated: Option<impl Future<Output = Result<U, DeviceError>> + 'static>,
) -> Command<T> {
    let Some(simulated) = simulated else { return Box::pin(files) };
    Box::pin(async move {
        let given = files.await;
        simulated.await?;
        given
    })
}

/// Sends a window command to the device that implements windows.
macro_rules! of_windows {
    ($self:expr, $device:ident => $call:expr) => {{
        let command: Command<_> = if let Some($device) = &$self.simulated {
            Box::pin($call)
        } else {
            let $device = &$self.files;
            Box::pin($call)
        };
        command
    }};
}

impl BlockDevice for Device {
    fn sets(&self) -> Vec<SetShape> {
        let mut sets = self.files.sets();
        if let Some(drive) = &self.simulated {
            let has_windows = drive.profile().plm.is_some();
            for set in &mut sets {
                set.has_windows = has_windows;
            }
        }
        sets
    }

    fn read(
        &self,
        set: SetId,
        first: u64,
        blocks: u32,
        class: IoClass,
    ) -> impl Future<Output = Result<Vec<Block>, DeviceError>> + use<> {
        let simulated = self.simulated.as_ref().map(|drive| drive.read(set, first, blocks, class));
        let read = self.files.read(set, first, blocks, class);
        let Writes::Kept(kept) = &self.writes else { return beside(read, simulated) };
        let kept = kept.of(set, first, blocks);
        let with_kept = async move {
            let mut read = match read.await {
                // All of these blocks are in memory, so the read error does not matter.
                Err(_) if kept.len() == blocks as usize => vec![Block::ZERO; blocks as usize],
                read => read?,
            };
            for (at, block) in kept {
                read[at] = block;
            }
            Ok(read)
        };
        beside(with_kept, simulated)
    }

    /// Returns `None` with a simulated drive or with writes in memory, as a direct file read would
    /// bypass them.
    fn file_read(&self, set: SetId, first: u64, blocks: u32) -> Option<FileRead> {
        let is_all = self.simulated.is_none() && matches!(self.writes, Writes::ToFiles);
        if is_all { self.files.file_read(set, first, blocks) } else { None }
    }

    fn write(
        &self,
        set: SetId,
        first: u64,
        blocks: Vec<Block>,
        class: IoClass,
        force: Force,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        let simulated = self.simulated.as_ref().map(|drive| {
            let zeros = vec![Block::ZERO; blocks.len()];
            drive.write(set, first, zeros, class, force)
        });
        match &self.writes {
            Writes::Kept(kept) => beside(ready(kept.write(set, first, blocks)), simulated),
            Writes::Refused => beside(ready(Err(DeviceError::ReadOnly(set))), simulated),
            Writes::ToFiles => {
                beside(self.files.write(set, first, blocks, class, force), simulated)
            }
        }
    }

    fn flush(&self, set: SetId) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        let simulated = self.simulated.as_ref().map(|drive| drive.flush(set));
        match &self.writes {
            Writes::Kept(kept) => beside(ready(kept.check(set)), simulated),
            Writes::Refused => beside(ready(Ok(())), simulated), // Nothing was written.
            Writes::ToFiles => beside(self.files.flush(set), simulated),
        }
    }

    fn discard(
        &self,
        set: SetId,
        first: u64,
        blocks: u64,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        let simulated = self.simulated.as_ref().map(|drive| drive.discard(set, first, blocks));
        match &self.writes {
            // The files ignore discards, too.
            Writes::Kept(kept) => beside(ready(kept.check(set)), simulated),
            Writes::Refused => beside(ready(Err(DeviceError::ReadOnly(set))), simulated),
            Writes::ToFiles => beside(self.files.discard(set, first, blocks), simulated),
        }
    }

    fn configure_plm(
        &self,
        set: SetId,
        config: PlmConfig,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        of_windows!(self, device => device.configure_plm(set, config))
    }

    fn plm_config(
        &self,
        set: SetId,
    ) -> impl Future<Output = Result<PlmConfig, DeviceError>> + use<> {
        of_windows!(self, device => device.plm_config(set))
    }

    fn select_window(
        &self,
        set: SetId,
        window: WindowSelect,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        of_windows!(self, device => device.select_window(set, window))
    }

    fn plm_log(
        &self,
        set: SetId,
        retains: bool,
    ) -> impl Future<Output = Result<PerSetLog, DeviceError>> + use<> {
        of_windows!(self, device => device.plm_log(set, retains))
    }
}
