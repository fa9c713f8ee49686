//! The device of a store's pages: its files, with writes that are kept in memory or refused if the
//! store was opened to be read.

pub(crate) mod open_files;

use std::pin::Pin;

use block::nvme::{PerSetLog, PlmConfig, SetId, WindowSelect};
use block::{Block, BlockDevice, DeviceError, Force, SetShape};
use files::{FileDevice, Locks, Trouble, Waits};
use runtime::{FileRead, IoClass};

use crate::read_only_writes::Kept;

/// The files, one set each.
#[derive(Clone)]
pub(crate) struct Device {
    files: FileDevice,
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

impl Device {
    /// Wraps files that are written to.
    pub(crate) fn new(files: FileDevice) -> Self {
        Self { files, writes: Writes::ToFiles }
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

    /// Finds out whether the drives support windows.
    ///
    /// # Errors
    /// Returns the reason why they do not, as text.
    pub(crate) async fn look_for_windows(&self) -> Result<(), String> {
        self.files.look_for_windows().await
    }
}

/// A command: in flight to the files, or completed in memory.
enum Command<F, T> {
    Sent(F),
    Completed(Result<T, DeviceError>),
}

impl<T, F: Future<Output = Result<T, DeviceError>>> Command<F, T> {
    /// Waits for the result. Boxed, so that callers do not reserve space for the state of commands;
    /// the allocation is cheap compared to the I/O.
    fn result(self) -> Pin<Box<impl Future<Output = Result<T, DeviceError>>>> {
        Box::pin(async {
            match self {
                Self::Sent(sent) => sent.await,
                Self::Completed(result) => result,
            }
        })
    }
}

impl BlockDevice for Device {
    fn sets(&self) -> Vec<SetShape> {
        self.files.sets()
    }

    fn read(
        &self,
        set: SetId,
        first: u64,
        blocks: u32,
        class: IoClass,
    ) -> impl Future<Output = Result<Vec<Block>, DeviceError>> + use<> {
        let read = self.files.read(set, first, blocks, class);
        let kept = match &self.writes {
            Writes::Kept(kept) => kept.of(set, first, blocks),
            Writes::ToFiles | Writes::Refused => Vec::new(),
        };
        Box::pin(async move {
            let mut read = match read.await {
                // All of these blocks are in memory, so the read error does not matter.
                Err(_) if !kept.is_empty() && kept.len() == blocks as usize => {
                    vec![Block::ZERO; blocks as usize]
                }
                read => read?,
            };
            for (at, block) in kept {
                read[at] = block;
            }
            Ok(read)
        })
    }

    /// Returns `None` with writes in memory, as a direct file read would bypass them.
    fn file_read(&self, set: SetId, first: u64, blocks: u32) -> Option<FileRead> {
        match self.writes {
            Writes::ToFiles => self.files.file_read(set, first, blocks),
            Writes::Kept(_) | Writes::Refused => None,
        }
    }

    fn write(
        &self,
        set: SetId,
        first: u64,
        blocks: Vec<Block>,
        class: IoClass,
        force: Force,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        let command = match &self.writes {
            Writes::ToFiles => Command::Sent(self.files.write(set, first, blocks, class, force)),
            Writes::Kept(kept) => Command::Completed(kept.write(set, first, blocks)),
            Writes::Refused => Command::Completed(Err(DeviceError::ReadOnly(set))),
        };
        command.result()
    }

    fn flush(&self, set: SetId) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        let command = match &self.writes {
            Writes::ToFiles => Command::Sent(self.files.flush(set)),
            Writes::Kept(kept) => Command::Completed(kept.check(set)),
            Writes::Refused => Command::Completed(Ok(())), // Nothing was written.
        };
        command.result()
    }

    fn discard(
        &self,
        set: SetId,
        first: u64,
        blocks: u64,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        let command = match &self.writes {
            Writes::ToFiles => Command::Sent(self.files.discard(set, first, blocks)),
            // The files ignore discards, too.
            Writes::Kept(kept) => Command::Completed(kept.check(set)),
            Writes::Refused => Command::Completed(Err(DeviceError::ReadOnly(set))),
        };
        command.result()
    }

    fn configure_plm(
        &self,
        set: SetId,
        config: PlmConfig,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        self.files.configure_plm(set, config)
    }

    fn plm_config(
        &self,
        set: SetId,
    ) -> impl Future<Output = Result<PlmConfig, DeviceError>> + use<> {
        self.files.plm_config(set)
    }

    fn select_window(
        &self,
        set: SetId,
        window: WindowSelect,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        self.files.select_window(set, window)
    }

    fn plm_log(
        &self,
        set: SetId,
        retains: bool,
    ) -> impl Future<Output = Result<PerSetLog, DeviceError>> + use<> {
        self.files.plm_log(set, retains)
    }
}
