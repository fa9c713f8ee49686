//! Reading what a store has stored, so that the drive has it in whatever cache it has.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::SeekFrom;

const PIECE: usize = 1 << 20;

/// Reads every file in `directory`, but for the holes in them.
pub fn read_all(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => read_all(&path)?,
            Ok(metadata) if metadata.is_file() => read(&File::open(&path)?)?,
            // A store may take its files away at any time.
            _ => {}
        }
    }
    Ok(())
}

fn read(file: &File) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    let mut at = 0;
    while let Ok(data) = rustix::fs::seek(file, SeekFrom::Data(at)) {
        let end = rustix::fs::seek(file, SeekFrom::Hole(data))?;
        at = data;
        while at < end {
            match file.read_at(&mut piece, at)? {
                0 => return Ok(()),
                bytes => at += bytes as u64,
            }
        }
    }
    Ok(())
}
