//! Creating and opening the files of a device.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use block::BLOCK_BYTES;
use block::nvme::SetId;
use runtime::{Handle, PageImage, ReadBuffers, Room};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::holes::Data;
use crate::room::Rooms;
use crate::set::Set;
use crate::trouble::{Trouble, Troubles};

/// Whether I/O bypasses the operating system's page cache (direct I/O).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DirectIo {
    /// Uses direct I/O if the file system supports it.
    #[default]
    Probe,
    /// Requires direct I/O: opening fails without it.
    On,
    /// Never uses direct I/O.
    Off,
}

/// The effect of a discard. A way that the file system or drive does not support is replaced by the
/// next variant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Discards {
    /// Zeros the blocks and keeps their space allocated: a device that was created with all its
    /// space never runs out of it.
    #[default]
    KeepRoom,
    /// Punches holes: other files can use the space, and the drive below is notified. A later write
    /// may find the disk full.
    GiveBack,
    /// Writes zeros.
    WriteZeros,
    /// Does nothing, as a drive may do: the old contents stay until the next write, which then
    /// costs the file system no extra work. For users that detect old contents by themselves.
    Ignore,
}

/// The time at which a new file gets its disk space.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RoomOf {
    /// At creation: writes never find the disk full, unless discards release space.
    #[default]
    Whole,
    /// As the file is written, 16 MiB at a time: the disk may be full by then. The space is
    /// allocated ahead of the write, because writing into a hole blocks reads of the file
    /// meanwhile.
    Written,
}

/// Options for creating or opening a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent choices, by name")]
pub struct FileOptions {
    /// Whether to use direct I/O.
    pub direct: DirectIo,
    /// The effect of discards.
    pub discards: Discards,
    /// The time at which new files get their space.
    pub room: RoomOf,
    /// Whether the device refuses writes; it may then be on read-only media. The file's holes are
    /// recorded at open and read without I/O, because no writer fills them.
    pub read_only: bool,
    /// Minimum file size in bytes. A shorter file is extended by a hole, which is durable when the
    /// open completes. Drives keep their size.
    pub least_bytes: u64,
    /// Whether a missing file is opened as a lost set, with the size of the smallest other set.
    /// Fails if all files are missing.
    pub bears_missing: bool,
    /// Whether a file on a read-only file system is opened as a read-only set.
    pub bears_read_only: bool,
    /// Whether a file that cannot be opened for any reason, except that another process has it
    /// open, becomes a lost set. A file shorter than the longest gets that size; reads past its end
    /// fail. For salvage tools that do not write.
    pub bears_damage: bool,
}

impl FileOptions {
    /// Whether a file that fails to open with this error becomes a lost set.
    fn bears(&self, error: &FileError) -> bool {
        match error {
            FileError::Missing(_) => self.bears_missing,
            FileError::InUse(_) => false,
            _ => self.bears_damage,
        }
    }
}

/// The reason why a device cannot be created or opened.
#[derive(Debug)]
pub enum FileError {
    /// The file does not exist.
    Missing(PathBuf),
    /// The file exists already.
    Exists(PathBuf),
    /// Another device, in this process or another, has the file open.
    InUse(PathBuf),
    /// The file is too small for one block.
    TooSmall(PathBuf),
    /// The path is neither a file nor a drive.
    NoFile(PathBuf),
    /// The file system has too little free space.
    NoRoom {
        /// The file.
        path: PathBuf,
        /// The size of the file in bytes.
        bytes: u64,
    },
    /// Direct I/O was required, and the file system does not support it.
    NotDirect(PathBuf),
    /// Another operation of the operating system failed.
    System {
        /// The file.
        path: PathBuf,
        /// The failed operation.
        doing: &'static str,
        /// The operating system's error.
        error: io::Error,
    },
}

impl FileError {
    fn system(path: &Path, doing: &'static str, error: io::Error) -> Self {
        let path = path.to_owned();
        match Errno::from_io_error(&error) {
            Some(Errno::NOENT) => Self::Missing(path),
            Some(Errno::EXIST) => Self::Exists(path),
            // A drive with a mounted file system.
            Some(Errno::BUSY) => Self::InUse(path),
            _ => Self::System { path, doing, error },
        }
    }

    /// Whether the file system is read-only.
    pub fn is_read_only(&self) -> bool {
        matches!(self, Self::System { error, .. } if error.kind() == io::ErrorKind::ReadOnlyFilesystem)
    }

    pub(crate) fn of_trouble(path: &Path, troubles: &[Trouble]) -> Self {
        let error = troubles.last().map_or_else(String::new, Trouble::to_string);
        Self::System { path: path.to_owned(), doing: "discarded", error: io::Error::other(error) }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(path) => {
                write!(f, "{} is not there; make it first, or name another", path.display())
            }
            Self::Exists(path) => {
                write!(f, "{} is there already; open it, or name another", path.display())
            }
            Self::InUse(path) => {
                write!(f, "{} is in use by another process, or twice by this one", path.display())
            }
            Self::TooSmall(path) => write!(
                f,
                "{} is smaller than a block of {BLOCK_BYTES} bytes; give it more",
                path.display()
            ),
            Self::NoFile(path) => write!(f, "{} is neither a file nor a drive", path.display()),
            Self::NoRoom { path, bytes } => write!(
                f,
                "there is no room for {bytes} bytes at {}; take fewer, or another file system",
                path.display()
            ),
            Self::NotDirect(path) => write!(
                f,
                "the file system of {} takes no direct I/O; open it without",
                path.display()
            ),
            Self::System { path, doing, error } => {
                write!(f, "{} cannot be {doing}: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::System { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// Returns the paths of a device with all its sets in one directory: `set-1`, `set-2` and so on.
pub fn files_in(directory: &Path, sets: u16) -> Vec<PathBuf> {
    (1..=sets).map(|set| directory.join(format!("set-{set}"))).collect()
}

/// Whether the path is a drive: a block device of the operating system.
pub(crate) fn is_drive(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.file_type().is_block_device())
}

fn set_ids(paths: &[PathBuf]) -> impl Iterator<Item = (SetId, &PathBuf)> {
    let count = u16::try_from(paths.len()).expect("a device has at most 65535 sets");
    assert!(count > 0, "a device has a set");
    (1..=count).filter_map(SetId::new).zip(paths)
}

/// Creates files and allocates their space as configured.
pub(crate) async fn create(
    handle: &Handle,
    paths: &[PathBuf],
    bytes: u64,
    options: FileOptions,
    troubles: &Rc<Troubles>,
) -> Result<Vec<Rc<Set>>, FileError> {
    let bytes = bytes - bytes % u64::from(BLOCK_BYTES);
    for path in paths.iter().filter(|path| !is_drive(path)) {
        if bytes == 0 {
            return Err(FileError::TooSmall(path.clone()));
        }
        create_file(handle, path, bytes, options.room).await?;
    }
    open(handle, paths, options, troubles).await
}

async fn create_file(
    handle: &Handle,
    path: &Path,
    bytes: u64,
    room: RoomOf,
) -> Result<(), FileError> {
    let failed = |error: io::Error| of_room(path, bytes, error);
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path);
    let file = Arc::new(file.map_err(failed)?);
    let given = match room {
        RoomOf::Written => file.set_len(bytes),
        RoomOf::Whole => match handle.change_room(&file, 0, bytes, Room::Give).await {
            // The file gets its space as it is written.
            Err(error) if is_unknown(&error) => file.set_len(bytes),
            given => given,
        },
    };
    let made = match given {
        Ok(()) => handle.sync_all(&file).await,
        Err(error) => Err(error),
    };
    if let Err(error) = made {
        // A partial file would make the next attempt fail.
        let _ = std::fs::remove_file(path);
        return Err(failed(error));
    }
    sync_directory(handle, path).await
}

/// Whether the error means that the file system or drive does not support the operation.
pub(crate) fn is_unknown(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::OPNOTSUPP | Errno::NOSYS))
}

/// Makes the name of a file durable.
async fn sync_directory(handle: &Handle, path: &Path) -> Result<(), FileError> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let synced = match File::open(directory) {
        Ok(directory) => handle.sync_all(&Arc::new(directory)).await,
        Err(error) => Err(error),
    };
    synced.map_err(|error| FileError::system(directory, "synced", error))
}

/// Opens existing files or drives.
pub(crate) async fn open(
    handle: &Handle,
    paths: &[PathBuf],
    options: FileOptions,
    troubles: &Rc<Troubles>,
) -> Result<Vec<Rc<Set>>, FileError> {
    let mut sets = Vec::with_capacity(paths.len());
    for (id, path) in set_ids(paths) {
        let mut read_only = options.read_only;
        let mut opened = open_file(handle, path, options).await;
        if options.bears_read_only && opened.as_ref().is_err_and(FileError::is_read_only) {
            read_only = true;
            opened = open_file(handle, path, FileOptions { read_only, ..options }).await;
        }
        let set = match opened {
            Ok(opened) => (Some(opened.file), opened.blocks, opened.is_direct, opened.alignment),
            Err(error) if options.bears(&error) => (None, u64::MAX, false, 1),
            Err(error) => return Err(error),
        };
        let (file, blocks, is_direct, alignment) = set;
        sets.push(Set {
            id,
            blocks,
            there: blocks,
            path: path.clone(),
            file,
            is_direct,
            alignment,
            read_buffers: ReadBuffers::default(),
            discards: Cell::new(options.discards),
            rooms: None,
            data: None,
            is_read_only: Cell::new(read_only),
            plm: RefCell::default(),
            handle: handle.clone(),
            troubles: Rc::clone(troubles),
        });
    }
    let smallest = sets.iter().map(|set| set.blocks).min().unwrap_or(u64::MAX);
    if smallest == u64::MAX {
        return Err(FileError::Missing(paths[0].clone()));
    }
    for set in sets.iter_mut().filter(|set| set.file.is_none()) {
        set.blocks = smallest;
    }
    if options.bears_damage {
        let longest = sets.iter().map(|set| set.blocks).max().unwrap_or(smallest);
        for set in &mut sets {
            set.blocks = longest;
        }
    }
    for set in sets.iter_mut().filter(|set| set.file.is_some() && !is_drive(&set.path)) {
        let bytes = set.blocks * u64::from(BLOCK_BYTES);
        set.rooms = (options.room == RoomOf::Written).then(|| Rooms::of(bytes));
    }
    for set in sets.iter_mut().filter(|set| options.read_only && !is_drive(&set.path)) {
        set.data = set.file.as_deref().map(Data::of);
    }
    Ok(sets.into_iter().map(Rc::new).collect())
}

/// Converts the error of a failed allocation.
pub(crate) fn of_room(path: &Path, bytes: u64, error: io::Error) -> FileError {
    let is_room =
        matches!(Errno::from_io_error(&error), Some(Errno::NOSPC | Errno::FBIG | Errno::DQUOT));
    if is_room {
        FileError::NoRoom { path: path.to_owned(), bytes }
    } else {
        FileError::system(path, "made", error)
    }
}

struct Opened {
    file: Arc<File>,
    blocks: u64,
    is_direct: bool,
    alignment: usize,
}

async fn open_file(
    handle: &Handle,
    path: &Path,
    options: FileOptions,
) -> Result<Opened, FileError> {
    let FileOptions { direct, read_only, least_bytes, .. } = options;
    let found = path.metadata().map_err(|error| FileError::system(path, "looked at", error))?;
    let is_drive = found.file_type().is_block_device();
    if !is_drive && !found.is_file() {
        return Err(FileError::NoFile(path.to_owned()));
    }
    // Exclusive open: a mounted drive is refused.
    let flags = if is_drive { OFlags::EXCL } else { OFlags::empty() };
    let open_with = |flags: OFlags| {
        let flags = flags.bits().cast_signed();
        OpenOptions::new().read(true).write(!read_only).custom_flags(flags).open(path)
    };
    let plain = open_with(flags).map_err(|error| FileError::system(path, "opened", error))?;
    let mut plain = locked(path, plain)?;
    let bytes = plain.seek(SeekFrom::End(0));
    let mut bytes = bytes.map_err(|error| FileError::system(path, "measured", error))?;
    if least_bytes > 0 && !is_drive {
        // Syncs even if the size is right: the process that extended the file may have ended before
        // the new size was durable.
        let longer = if bytes < least_bytes { plain.set_len(least_bytes) } else { Ok(()) };
        let grown = longer.and_then(|()| plain.sync_all());
        grown.map_err(|error| FileError::system(path, "made larger", error))?;
        bytes = bytes.max(least_bytes);
    }
    let blocks = bytes / u64::from(BLOCK_BYTES);
    if blocks == 0 {
        return Err(FileError::TooSmall(path.to_owned()));
    }
    if direct == DirectIo::Off {
        return Ok(Opened { file: Arc::new(plain), blocks, is_direct: false, alignment: 1 });
    }
    drop(plain);
    if let Ok(file) = open_with(flags | OFlags::DIRECT) {
        let file = Arc::new(locked(path, file)?);
        for alignment in ALIGNMENTS {
            if takes_alignment(handle, &file, alignment).await {
                return Ok(Opened { file, blocks, is_direct: true, alignment });
            }
        }
    }
    if direct == DirectIo::On {
        return Err(FileError::NotDirect(path.to_owned()));
    }
    let plain = open_with(flags).map_err(|error| FileError::system(path, "opened", error))?;
    let file = Arc::new(locked(path, plain)?);
    Ok(Opened { file, blocks, is_direct: false, alignment: 1 })
}

/// Candidate buffer alignments in bytes. A smaller alignment wastes less memory before each buffer.
const ALIGNMENTS: [usize; 2] = [512, 4096];

/// Tests whether direct reads work with this alignment: reads a block into a buffer that is aligned
/// to `alignment` and to no larger power of two.
async fn takes_alignment(handle: &Handle, file: &Arc<File>, alignment: usize) -> bool {
    let block = BLOCK_BYTES as usize;
    let whole = PageImage::zeroed(2 * block, 2 * block);
    let buffer = whole.slice(alignment..alignment + block);
    drop(whole);
    let (read, _) = handle.read_at(file, 0, buffer).await;
    read.is_ok_and(|bytes| bytes == block)
}

/// Locks the file for as long as it is open. A lock request of another process is refused.
fn locked(path: &Path, file: File) -> Result<File, FileError> {
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(FileError::InUse(path.to_owned())),
        Err(TryLockError::Error(error)) => Err(FileError::system(path, "locked", error)),
    }
}
