//! The block device.

mod windows;

use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::rc::Rc;

use block::nvme::{PerSetLog, PlmConfig, SetId, WindowSelect};
use block::{Block, BlockDevice, DeviceError, Force, SetShape};
use runtime::{FileRead, Handle, IoClass};

use crate::error::FileError;
use crate::locks::Locks;
use crate::open;
use crate::options::FileOptions;
use crate::plm::Plm;
use crate::room::{OnDisk, without_room};
use crate::set::Set;
use crate::trouble::{Trouble, Troubles};
use crate::waiting::Waits;
use crate::windows::as_told;

/// The optimal write size in bytes: see `set.rs`.
const OPTIMAL_WRITE_BYTES: u32 = 128 << 10;

/// A block device on files or drives, one per set. Clones are handles to the same device.
///
/// While a handle exists, no other process can open the files.
#[derive(Clone)]
pub struct FileDevice {
    inner: Rc<Inner>,
}

struct Inner {
    sets: Vec<Rc<Set>>,
    troubles: Rc<Troubles>,
}

impl FileDevice {
    /// Creates files of `bytes` bytes each that read as zeros, and allocates their space as
    /// configured. A file must not exist yet. An existing drive is accepted and discarded as a
    /// whole.
    ///
    /// # Errors
    /// Returns a [`FileError`]. Files created before the failure remain and can be deleted.
    ///
    /// # Panics
    /// Panics in virtual time, or if there are no paths or more than 65535.
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

    /// Opens existing files or whole drives.
    ///
    /// # Errors
    /// Returns a [`FileError`].
    ///
    /// # Panics
    /// Panics under the conditions of [`Self::create`].
    pub async fn open(
        handle: &Handle,
        paths: &[PathBuf],
        options: FileOptions,
    ) -> Result<Self, FileError> {
        let troubles = Rc::<Troubles>::default();
        let sets = open::open(handle, paths, options, &troubles).await?;
        Ok(Self { inner: Rc::new(Inner { sets, troubles }) })
    }

    /// Allocates the first `bytes` bytes of each file, as far as they are not allocated yet. The
    /// space stays allocated unless discards release it. If a file system does not support
    /// allocation or fails it, the file gets its space as it is written, and a [`Trouble`] is
    /// recorded. Drives are always fully allocated.
    ///
    /// # Errors
    /// Returns [`FileError::NoRoom`] if a disk has too little free space. No space was allocated
    /// then, unless other processes used up free space during the call.
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

    /// Returns and clears the most recent failures, oldest first.
    pub fn troubles(&self) -> Vec<Trouble> {
        self.inner.troubles.take()
    }

    /// Returns the most recent failure without clearing it.
    pub fn last_trouble(&self) -> Option<Trouble> {
        self.inner.troubles.last()
    }

    /// Sets whether writes wait while the disk is full. Waiting writes are retried five times a
    /// second. When waiting is off, such writes fail, including the writes that are waiting when it
    /// is turned off.
    pub fn wait_for_room(&self, is_on: bool) {
        self.inner.troubles.waiting.is_on.set(is_on);
    }

    /// Whether a write failed for lack of disk space without waiting since the device was opened.
    pub fn has_refused_for_room(&self) -> bool {
        self.inner.troubles.waiting.has_refused.get()
    }

    /// Returns the kinds of writes that wait for disk space.
    pub fn waits(&self) -> Waits {
        self.inner.troubles.waiting.waits()
    }

    /// Waits until [`Self::waits`] differs from `known`.
    pub async fn waits_changed(&self, known: Waits) {
        let waiting = Rc::clone(&self.inner.troubles.waiting);
        waiting.changed.wait_until(|| waiting.waits() != known).await;
    }

    /// Returns the locks on the device's files.
    pub fn locks(&self) -> Locks {
        Locks::of(self.inner.sets.iter().filter_map(|set| set.file.as_ref()))
    }

    /// Returns the sets whose files are missing or could not be opened.
    pub fn lost(&self) -> Vec<SetId> {
        self.inner.sets.iter().filter(|set| set.file.is_none()).map(|set| set.id).collect()
    }

    /// Whether every set bypasses the operating system's page cache.
    pub fn is_direct(&self) -> bool {
        self.inner.sets.iter().all(|set| set.is_direct)
    }

    fn all(&self) -> &[Rc<Set>] {
        &self.inner.sets
    }

    fn set(&self, id: SetId) -> Result<&Rc<Set>, DeviceError> {
        self.inner.sets.get(usize::from(id.get()) - 1).ok_or(DeviceError::NoSuchSet(id))
    }
}

/// Shows the path, the size and the I/O mode of each set.
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
        async move { Ok(as_told(log.await?)) }
    }
}
