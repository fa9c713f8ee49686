//! What a store's pages are on: its files, and a simulated drive beside them if there is to be one.
//!
//! The simulated drive is given each command that the files are, in real time, and a command is over when both are done with it. What is
//! stored is in the files alone: the drive has zeros. So the store behaves as it would on such a drive, as far as the files are
//! the faster ones and the machine keeps up with the simulation.

use std::future::ready;
use std::pin::Pin;

use block::nvme::{PerSetLog, PlmConfig, SetId, WindowSelect};
use block::{BLOCK_BYTES, Block, BlockDevice, DeviceError, Force, SetShape};
use files::{FileDevice, Locks, Trouble, Waits};
use runtime::{FileRead, Handle, IoClass};
use ssd::{Precondition, Ssd, SsdProfile};

use crate::error::Error;
use crate::kept::Kept;

/// The files, one set each, and the drive with a set for each of them.
#[derive(Clone)]
pub(crate) struct Device {
    files: FileDevice,
    simulated: Option<Ssd>,
    writes: Writes,
}

/// Where writes go.
#[derive(Clone)]
enum Writes {
    ToFiles,
    /// To memory, of a store that is opened to be read only.
    Kept(Kept),
    /// Nowhere: each is refused, so that nothing of a damaged store is changed while it is read.
    Refused,
}

/// The drive of that name, a built-in one or a file, for a store over so many directories.
///
/// # Errors
/// [`Error::Invalid`]: there is none, or it has fewer sets.
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

/// The most bytes that a file may have beside that drive.
pub(crate) fn capacity_beside(profile: &SsdProfile) -> u64 {
    profile.blocks_per_set() * u64::from(BLOCK_BYTES)
}

impl Device {
    /// The files, beside a drive whose blocks were all written once, in order: those that the store wrote in an earlier life
    /// take the time of a read too.
    ///
    /// # Errors
    /// [`Error::Invalid`]: its sets are smaller than the files.
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

    /// The same, whose files are read only: what is written is kept in memory.
    pub(crate) fn read_only(self) -> Self {
        let writes = Writes::Kept(Kept::new(self.files.lost()));
        Self { writes, ..self }
    }

    /// The same, which refuses writes and discards.
    pub(crate) fn refusing_writes(self) -> Self {
        Self { writes: Writes::Refused, ..self }
    }

    /// Whether writes for which the disk has no room wait for some.
    pub(crate) fn wait_for_room(&self, is_on: bool) {
        self.files.wait_for_room(is_on);
    }

    /// Whether a write that did not wait was refused for want of room.
    pub(crate) fn has_refused_for_room(&self) -> bool {
        self.files.has_refused_for_room()
    }

    /// What waits for room, once that is something else than `known`.
    pub(crate) async fn waits_other_than(&self, known: Waits) -> Waits {
        self.files.waits_changed(known).await;
        self.files.waits()
    }

    /// The locks on the files.
    pub(crate) fn locks(&self) -> Locks {
        self.files.locks()
    }

    /// What the files have had to complain of since this was last asked.
    pub(crate) fn troubles(&self) -> Vec<Trouble> {
        self.files.troubles()
    }

    /// The latest of that, which stays there to be asked for.
    pub(crate) fn last_trouble(&self) -> Option<Trouble> {
        self.files.last_trouble()
    }

    /// Finds out whether the drives have windows. A simulated one says so of itself.
    ///
    /// # Errors
    /// Why they have none, in words.
    pub(crate) async fn look_for_windows(&self) -> Result<(), String> {
        match &self.simulated {
            Some(drive) if drive.profile().plm.is_some() => Ok(()),
            Some(drive) => Err(format!("{} has none", drive.profile().name)),
            None => self.files.look_for_windows().await,
        }
    }
}

/// A command under way. In a box: whoever asks makes no room for what only simulated drives need, and an allocation is little beside I/O.
type Command<T> = Pin<Box<dyn Future<Output = Result<T, DeviceError>>>>;

/// What a command gives once a simulated drive, if there is one, is done with it too. Both have it by now.
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

/// A command of windows goes to the drive that has them.
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
                // All of it is in memory.
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

    /// A simulated drive is not to be passed by, nor is what is in memory.
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
            Writes::Refused => beside(ready(Ok(())), simulated), // nothing was written
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
            // The files ignore discards as well.
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
