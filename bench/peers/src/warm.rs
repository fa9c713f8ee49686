//! Reading what a store has stored, so that the drive has it in whatever cache it has.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

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
    for part in files::data_in(file)? {
        let mut at = part.start;
        while at < part.end {
            match file.read_at(&mut piece, at)? {
                0 => return Ok(()),
                bytes => at += bytes as u64,
            }
        }
    }
    Ok(())
}
