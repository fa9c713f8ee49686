//! Making and opening the files of a device.

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

/// Whether files are read and written past the system's page cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DirectIo {
    /// Where the file system lets it.
    #[default]
    Probe,
    /// Or the device is not opened.
    On,
    /// Never.
    Off,
}

/// What discarded blocks become. What a file system or a drive does not know is replaced by the next one here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Discards {
    /// Zeros that keep their room: a device that was made never runs out of it.
    #[default]
    KeepRoom,
    /// Holes: other files get the room, and a drive below is told. A write may find no room left.
    GiveBack,
    /// Zeros that are written.
    WriteZeros,
    /// Nothing, as a drive may do with them: what was there stays until it is written again, which then costs the file
    /// system nothing but the write. For users who tell by themselves what is old.
    Ignore,
}

/// When a file that is made gets its room.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RoomOf {
    /// At once: what was made never finds the disk full, unless discards give room back.
    #[default]
    Whole,
    /// As it is written, 16 MiB at a time: the disk may be full by then. Writing into a hole would keep reads of the file
    /// waiting meanwhile.
    Written,
}

/// How a device is made or opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent choices, by name")]
pub struct FileOptions {
    /// Past the page cache.
    pub direct: DirectIo,
    /// What discards do.
    pub discards: Discards,
    /// When files that are made get their room.
    pub room: RoomOf,
    /// It takes no writes, and may lie on what takes none. What is a hole of a file when it is opened is read without asking the system, as nobody fills it.
    pub read_only: bool,
    /// A file that is shorter is made so long, in bytes, by a hole at its end, which is durable when it is open; drives are as long as they are.
    pub least_bytes: u64,
    /// A file that is not there is opened as a set that is lost, as large as the smallest of the others; unless
    /// none is there.
    pub bears_missing: bool,
    /// A file on a file system that takes no writes is opened as a set that takes none.
    pub bears_read_only: bool,
    /// A file that cannot be opened, for whatever reason but that others have it, is a set that is lost, and one that is shorter than the longest is as long: what
    /// is behind its end cannot be read. For whoever saves what is left, and writes nothing.
    pub bears_damage: bool,
}

impl FileOptions {
    /// Whether a file that cannot be opened so is a set that is lost.
    fn bears(&self, error: &FileError) -> bool {
        match error {
            FileError::Missing(_) => self.bears_missing,
            FileError::InUse(_) => false,
            _ => self.bears_damage,
        }
    }
}

/// Why a device cannot be made or opened.
#[derive(Debug)]
pub enum FileError {
    /// There is no such file.
    Missing(PathBuf),
    /// There is one already.
    Exists(PathBuf),
    /// Another device has it open, in this process or another.
    InUse(PathBuf),
    /// It is too small to hold a block.
    TooSmall(PathBuf),
    /// It is neither a file nor a drive.
    NoFile(PathBuf),
    /// The file system has no room for so many bytes.
    NoRoom {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// Direct I/O was asked for, and the file system has none.
    NotDirect(PathBuf),
    /// The system could not do something else.
    System {
        /// The file.
        path: PathBuf,
        /// What could not be done.
        doing: &'static str,
        /// What it says.
        error: io::Error,
    },
}

impl FileError {
    fn system(path: &Path, doing: &'static str, error: io::Error) -> Self {
        let path = path.to_owned();
        match Errno::from_io_error(&error) {
            Some(Errno::NOENT) => Self::Missing(path),
            Some(Errno::EXIST) => Self::Exists(path),
            // A drive that has a file system mounted.
            Some(Errno::BUSY) => Self::InUse(path),
            _ => Self::System { path, doing, error },
        }
    }

    /// Whether the file system takes no writes.
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

/// Paths of a device with all of its sets in one directory: `set-1`, `set-2` and so on.
pub fn files_in(directory: &Path, sets: u16) -> Vec<PathBuf> {
    (1..=sets).map(|set| directory.join(format!("set-{set}"))).collect()
}

/// Whether it is a drive: a block device of the system.
pub(crate) fn is_drive(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.file_type().is_block_device())
}

fn set_ids(paths: &[PathBuf]) -> impl Iterator<Item = (SetId, &PathBuf)> {
    let count = u16::try_from(paths.len()).expect("a device has at most 65535 sets");
    assert!(count > 0, "a device has a set");
    (1..=count).filter_map(SetId::new).zip(paths)
}

/// Makes files, and gives them their room.
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
            // It gets its room as it is written.
            Err(error) if is_unknown(&error) => file.set_len(bytes),
            given => given,
        },
    };
    let made = match given {
        Ok(()) => handle.sync_all(&file).await,
        Err(error) => Err(error),
    };
    if let Err(error) = made {
        // Half a file would only be in the way of the next attempt.
        let _ = std::fs::remove_file(path);
        return Err(failed(error));
    }
    sync_directory(handle, path).await
}

/// Whether a file system or a drive does not know what was asked of it.
pub(crate) fn is_unknown(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::OPNOTSUPP | Errno::NOSYS))
}

/// Makes a file's name durable.
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

/// Opens what is there.
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

/// What keeps a file from getting room.
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
    // A drive that is mounted is refused to who asks for all of it.
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
        // One that is so long may have been made so by somebody who ended before that was durable.
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

/// What addresses of buffers may have to be multiples of. The less, the less memory is lost in front of each.
const ALIGNMENTS: [usize; 2] = [512, 4096];

/// Reads a block into a buffer at a multiple of `alignment`, and of no more.
async fn takes_alignment(handle: &Handle, file: &Arc<File>, alignment: usize) -> bool {
    let block = BLOCK_BYTES as usize;
    let whole = PageImage::zeroed(2 * block, 2 * block);
    let buffer = whole.slice(alignment..alignment + block);
    drop(whole);
    let (read, _) = handle.read_at(file, 0, buffer).await;
    read.is_ok_and(|bytes| bytes == block)
}

/// The file, with a lock on it that ends with it. Another process that asks for one is refused.
fn locked(path: &Path, file: File) -> Result<File, FileError> {
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(FileError::InUse(path.to_owned())),
        Err(TryLockError::Error(error)) => Err(FileError::system(path, "locked", error)),
    }
}
