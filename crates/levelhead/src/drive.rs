//! A drive as a member of a store: a block device without a file system.
//!
//! The drive's first block has the text that a directory has in `LEVELHEAD`, padded with zeros. The
//! text fits in the first sector, which the drive writes atomically. Pages start at 1 MiB. A drive
//! with other data in its first MiB is never written to, because file systems, partition tables and
//! volume managers have their signatures there.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;

use crate::error::Error;

/// The offset of a store's pages on a drive, in bytes.
pub(crate) const FIRST_BYTE: u64 = 1 << 20;
/// The size of an atomic write, in bytes.
const SECTOR: usize = 512;
const BLOCK: usize = block::BLOCK_BYTES as usize;

/// Whether a path is a block device.
pub(crate) fn is_drive(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.file_type().is_block_device())
}

/// Returns the offset of the pages in the file of a member, in bytes.
pub(crate) fn first_byte(path: &Path) -> u64 {
    if is_drive(path) { FIRST_BYTE } else { 0 }
}

/// Reads the text before the pages; `None` if it does not start with `mark`.
pub(crate) fn read(path: &Path, mark: &str) -> Result<Option<Vec<u8>>, Error> {
    let block = read_at(path, 0, BLOCK)?;
    if !block.starts_with(mark.as_bytes()) {
        return Ok(None);
    }
    let end = block.iter().position(|byte| *byte == 0).unwrap_or(BLOCK);
    Ok(Some(block[..end].to_vec()))
}

/// Writes the text before the pages, durably.
pub(crate) fn write(path: &Path, text: &str) -> std::io::Result<()> {
    assert!(text.len() <= SECTOR, "{} bytes are no sector", text.len());
    let mut block = vec![0; BLOCK];
    block[..text.len()].copy_from_slice(text.as_bytes());
    let file = OpenOptions::new().write(true).open(path)?;
    file.write_all_at(&block, 0)?;
    file.sync_all()
}

/// Checks that the drive is blank, so that a store may use it.
///
/// # Errors
/// Returns [`Error::Invalid`] if the drive has data.
pub(crate) fn check_is_blank(path: &Path) -> Result<(), Error> {
    let bytes = FIRST_BYTE.min(bytes(path)?);
    if read_at(path, 0, bytes as usize)?.iter().all(|byte| *byte == 0) {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "{} has something on it, which is no store and would be overwritten: name another drive, or, if nobody needs \
         that, write zeros over its first MiB",
        path.display()
    )))
}

/// Returns the size of a drive, in bytes.
pub(crate) fn bytes(path: &Path) -> Result<u64, Error> {
    let size = File::open(path).and_then(|mut file| file.seek(SeekFrom::End(0)));
    size.map_err(|error| Error::of_path(path, "measured", &error))
}

fn read_at(path: &Path, offset: u64, bytes: usize) -> Result<Vec<u8>, Error> {
    let mut buffer = vec![0; bytes];
    let read = File::open(path).and_then(|file| file.read_exact_at(&mut buffer, offset));
    read.map_err(|error| Error::of_path(path, "read", &error))?;
    Ok(buffer)
}
