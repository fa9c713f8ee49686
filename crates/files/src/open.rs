//! Creating and opening the files of a device.

use std::cell::{Cell, RefCell};
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

use crate::error::{FileError, is_unknown, of_room};
use crate::holes::Data;
use crate::options::{DirectIo, FileOptions, RoomOf};
use crate::room::Rooms;
use crate::set::Set;
use crate::trouble::Troubles;

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
