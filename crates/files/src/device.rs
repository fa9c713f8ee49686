//! The seam.

use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::rc::Rc;

use block::nvme::{PerSetLog, PlmConfig, SetId, WindowSelect};
use block::{Block, BlockDevice, DeviceError, Force, SetShape};
use runtime::{FileRead, Handle, IoClass};

use crate::locks::Locks;
use crate::open::{self, FileError, FileOptions};
use crate::plm::Plm;
use crate::room::{OnDisk, without_room};
use crate::set::Set;
use crate::trouble::{Trouble, Troubles};
use crate::waiting::Waits;
use crate::windows;

/// What is written best at a time: see `set.rs`.
const OPTIMAL_WRITE_BYTES: u32 = 128 << 10;

/// Files or drives as a block device, one for each set. Clones are handles to the same.
///
/// As long as one is there nobody else can open the files.
#[derive(Clone)]
pub struct FileDevice {
    inner: Rc<Inner>,
}

struct Inner {
    sets: Vec<Rc<Set>>,
    troubles: Rc<Troubles>,
}

impl FileDevice {
    /// Makes files of `bytes` each that read as zeros, and gives them their room. They must not be there yet; a
    /// drive may be, and is discarded as a whole.
    ///
    /// # Errors
    /// [`FileError`]. Files that were made before the one that failed are there, and can be deleted.
    ///
    /// # Panics
    /// In virtual time, or if there are no paths or more than 65535.
    pub async fn create(
        handle: &Handle,
        paths: &[PathBuf],
        bytes: u64,
        options: FileOptions,
    ) -> Result<Self, FileError> {
        let troubles = Rc::<Troubles>::default();
        let sets = open::create(handle, paths, bytes, options, &troubles).await?;
        let device = Self { inner: Rc::new(Inner { sets, troubles }) };
        for set in device.inner.sets.iter().filter(|set| open::is_drive(&set.path)) {
            let discarded = set.discard(0, set.blocks).await;
            discarded.map_err(|_| FileError::of_trouble(&set.path, &device.troubles()))?;
        }
        Ok(device)
    }

    /// Opens what is there: files, or whole drives.
    ///
    /// # Errors
    /// [`FileError`].
    ///
    /// # Panics
    /// As [`Self::create`].
    pub async fn open(
        handle: &Handle,
        paths: &[PathBuf],
        options: FileOptions,
    ) -> Result<Self, FileError> {
        let troubles = Rc::<Troubles>::default();
        let sets = open::open(handle, paths, options, &troubles).await?;
        Ok(Self { inner: Rc::new(Inner { sets, troubles }) })
    }

    /// Gives each file the room for so many of its bytes that it has not yet. What was given stays with the files, unless discards give it back. Where a
    /// file system cannot do that, or fails, its file gets room as it is written, and that is told as a trouble. Drives have all of theirs.
    ///
    /// # Errors
    /// [`FileError::NoRoom`]: a disk has not as much. Then nothing was taken, unless others took some of it meanwhile.
    pub async fn preallocate(&self, bytes: u64) -> Result<(), FileError> {
        let is_due = |set: &&Rc<Set>| set.rooms.is_some() && !set.is_read_only.get();
        let due: Vec<_> = self.inner.sets.iter().filter(is_due).collect();
        let on_disks: Vec<_> =
            due.iter().map(|set| set.file.as_deref().and_then(OnDisk::of)).collect();
        if let Some(at) = without_room(&on_disks, bytes) {
            return Err(FileError::NoRoom { path: due[at].path.clone(), bytes });
        }
        for set in due {
            set.preallocate(bytes).await?;
        }
        Ok(())
    }

    /// What went wrong since this was last asked, the latest things of it, oldest first.
    pub fn troubles(&self) -> Vec<Trouble> {
        self.inner.troubles.take()
    }

    /// The latest of what went wrong, which stays there to be asked for.
    pub fn last_trouble(&self) -> Option<Trouble> {
        self.inner.troubles.last()
    }

    /// Whether writes for which the disk has no room wait from now on until there is some, and are tried again five times a second. Else they
    /// fail; so do those that wait when this is said.
    pub fn wait_for_room(&self, is_on: bool) {
        self.inner.troubles.waiting.is_on.set(is_on);
    }

    /// Whether a write that did not wait was refused for want of room since the device was opened.
    pub fn has_refused_for_room(&self) -> bool {
        self.inner.troubles.waiting.has_refused.get()
    }

    /// What waits for room.
    pub fn waits(&self) -> Waits {
        self.inner.troubles.waiting.waits()
    }

    /// Waits until something else waits for room than `known`.
    pub async fn waits_changed(&self, known: Waits) {
        let waiting = Rc::clone(&self.inner.troubles.waiting);
        waiting.changed.wait_until(|| waiting.waits() != known).await;
    }

    /// The locks on its files.
    pub fn locks(&self) -> Locks {
        Locks::of(self.inner.sets.iter().filter_map(|set| set.file.as_ref()))
    }

    /// Sets whose files are not there.
    pub fn lost(&self) -> Vec<SetId> {
        self.inner.sets.iter().filter(|set| set.file.is_none()).map(|set| set.id).collect()
    }

    /// Whether every set goes past the system's page cache.
    pub fn is_direct(&self) -> bool {
        self.inner.sets.iter().all(|set| set.is_direct)
    }

    pub(crate) fn all(&self) -> &[Rc<Set>] {
        &self.inner.sets
    }

    pub(crate) fn set(&self, id: SetId) -> Result<&Rc<Set>, DeviceError> {
        self.inner.sets.get(usize::from(id.get()) - 1).ok_or(DeviceError::NoSuchSet(id))
    }
}

/// Where each set lies, how large it is and how it is read.
impl fmt::Display for FileDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, set) in self.inner.sets.iter().enumerate() {
            let how = match (&set.file, set.is_direct) {
                (None, _) => "it is not there",
                (_, true) => "direct I/O",
                (_, false) => "through the system's page cache",
            };
            let separator = if n > 0 { "\n" } else { "" };
            let (id, path) = (set.id, set.path.display());
            write!(f, "{separator}set {id}: {path}, {} blocks of 4 KiB, {how}", set.blocks)?;
        }
        Ok(())
    }
}

impl BlockDevice for FileDevice {
    fn sets(&self) -> Vec<SetShape> {
        let shape = |set: &Rc<Set>| SetShape {
            id: set.id,
            blocks: set.blocks,
            optimal_write_bytes: OPTIMAL_WRITE_BYTES,
            has_windows: set.plm.borrow().is_some(),
        };
        self.inner.sets.iter().map(shape).collect()
    }

    fn read(
        &self,
        set: SetId,
        first: u64,
        blocks: u32,
        _: IoClass,
    ) -> impl Future<Output = Result<Vec<Block>, DeviceError>> + use<> {
        let read = self.set(set).map(|set| set.read(first, blocks));
        async move { read?.await }
    }

    fn file_read(&self, set: SetId, first: u64, blocks: u32) -> Option<FileRead> {
        self.set(set).ok()?.file_read(first, blocks)
    }

    fn write(
        &self,
        set: SetId,
        first: u64,
        blocks: Vec<Block>,
        class: IoClass,
        force: Force,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        let write = self.set(set).map(|set| set.write(first, &blocks, class, force));
        async move { write?.await }
    }

    fn flush(&self, set: SetId) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        let flush = self.set(set).map(Set::flush);
        async move { flush?.await }
    }

    fn discard(
        &self,
        set: SetId,
        first: u64,
        blocks: u64,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        let discard = self.set(set).map(|set| set.discard(first, blocks));
        async move { discard?.await }
    }

    fn configure_plm(
        &self,
        set: SetId,
        config: PlmConfig,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        self.window_command(set, move |plm| plm.configure(config))
    }

    fn plm_config(
        &self,
        set: SetId,
    ) -> impl Future<Output = Result<PlmConfig, DeviceError>> + use<> {
        self.window_command(set, Plm::config)
    }

    fn select_window(
        &self,
        set: SetId,
        window: WindowSelect,
    ) -> impl Future<Output = Result<(), DeviceError>> + use<> {
        self.window_command(set, move |plm| plm.select(window))
    }

    fn plm_log(
        &self,
        set: SetId,
        retains: bool,
    ) -> impl Future<Output = Result<PerSetLog, DeviceError>> + use<> {
        let log = self.window_command(set, move |plm| plm.log(retains));
        async move { Ok(windows::as_told(log.await?)) }
    }
}
