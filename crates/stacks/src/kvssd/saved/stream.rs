//! A file of parts, each a byte string of any length, in frames with checksums.
//!
//! ```text
//! file:  "LHDRIVE\n" | version u32 | frames
//! frame: length u32 (1 to 1 MiB) | CRC-32C u32 | bytes
//! last:  0 u32 | CRC-32C of its eight bytes u32 | number of frames u64
//! bytes of all frames: parts, each with its length as u64 before it
//! ```
//! Numbers are little-endian. Truncation and bit flips are detected.

use std::io;
use std::io::{Read, Write};

use super::error::{SavedError, VERSION};

const MAGIC: &[u8; 8] = b"LHDRIVE\n";
const FRAME_BYTES: usize = 1 << 20;

/// Writes parts to a file.
pub(super) struct Output<W> {
    file: W,
    frame: Vec<u8>,
    frames: u64,
}

impl<W: Write> Output<W> {
    pub(super) fn begin(mut file: W) -> io::Result<Self> {
        file.write_all(MAGIC)?;
        file.write_all(&VERSION.to_le_bytes())?;
        Ok(Self { file, frame: Vec::with_capacity(FRAME_BYTES), frames: 0 })
    }

    /// Appends a part.
    pub(super) fn put(&mut self, part: &[u8]) -> io::Result<()> {
        self.append(&(part.len() as u64).to_le_bytes())?;
        self.append(part)
    }

    fn append(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(FRAME_BYTES - self.frame.len()));
            self.frame.extend_from_slice(now);
            bytes = later;
            if self.frame.len() == FRAME_BYTES {
                self.write_frame()?;
            }
        }
        Ok(())
    }

    fn write_frame(&mut self) -> io::Result<()> {
        self.file.write_all(&(self.frame.len() as u32).to_le_bytes())?;
        self.file.write_all(&crc32c::crc32c(&self.frame).to_le_bytes())?;
        self.file.write_all(&self.frame)?;
        self.frame.clear();
        self.frames += 1;
        Ok(())
    }

    /// Ends the file.
    pub(super) fn end(mut self) -> io::Result<()> {
        if !self.frame.is_empty() {
            self.write_frame()?;
        }
        let frames = self.frames.to_le_bytes();
        self.file.write_all(&0_u32.to_le_bytes())?;
        self.file.write_all(&crc32c::crc32c(&frames).to_le_bytes())?;
        self.file.write_all(&frames)?;
        self.file.flush()
    }
}

/// Reads parts from a file.
pub(super) struct Input<R> {
    file: R,
    frame: Vec<u8>,
    /// Bytes of the frame that were consumed.
    taken: usize,
    frames: u64,
}

impl<R: Read> Input<R> {
    pub(super) fn begin(mut file: R) -> Result<Self, SavedError> {
        let mut magic = [0; MAGIC.len()];
        let is_one = file.read_exact(&mut magic).is_ok() && magic == *MAGIC;
        if !is_one {
            return Err(SavedError::NoDrive);
        }
        let version = number(&mut file)?;
        if version != VERSION {
            return Err(SavedError::OtherVersion { found: version });
        }
        Ok(Self { file, frame: Vec::new(), taken: 0, frames: 0 })
    }

    /// Reads the next part.
    pub(super) fn take(&mut self) -> Result<Vec<u8>, SavedError> {
        let mut len = [0; 8];
        self.fill(&mut len)?;
        let mut left = usize::try_from(u64::from_le_bytes(len)).map_err(|_| SavedError::Damaged)?;
        // The buffer grows with the data: a damaged length may have any value.
        let mut part = Vec::new();
        while left > 0 {
            let some = left.min(FRAME_BYTES);
            let start = part.len();
            part.resize(start + some, 0);
            self.fill(&mut part[start..])?;
            left -= some;
        }
        Ok(part)
    }

    fn fill(&mut self, mut into: &mut [u8]) -> Result<(), SavedError> {
        while !into.is_empty() {
            if self.taken == self.frame.len() {
                self.read_frame()?;
            }
            let rest = &self.frame[self.taken..];
            let some = rest.len().min(into.len());
            into[..some].copy_from_slice(&rest[..some]);
            self.taken += some;
            into = &mut into[some..];
        }
        Ok(())
    }

    fn read_frame(&mut self) -> Result<(), SavedError> {
        let (len, crc) = (number(&mut self.file)? as usize, number(&mut self.file)?);
        if !(1..=FRAME_BYTES).contains(&len) {
            return Err(SavedError::Damaged);
        }
        self.frame.resize(len, 0);
        read(&mut self.file, &mut self.frame)?;
        self.taken = 0;
        self.frames += 1;
        if crc32c::crc32c(&self.frame) == crc { Ok(()) } else { Err(SavedError::Damaged) }
    }

    /// Checks that the file ends here.
    pub(super) fn end(mut self) -> Result<(), SavedError> {
        let (len, crc) = (number(&mut self.file)?, number(&mut self.file)?);
        let mut frames = [0; 8];
        read(&mut self.file, &mut frames)?;
        let is_end = len == 0 && crc == crc32c::crc32c(&frames);
        let is_whole = self.taken == self.frame.len() && frames == self.frames.to_le_bytes();
        if is_end && is_whole { Ok(()) } else { Err(SavedError::Damaged) }
    }
}

fn number(file: &mut impl Read) -> Result<u32, SavedError> {
    let mut bytes = [0; 4];
    read(file, &mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

fn read(file: &mut impl Read, into: &mut [u8]) -> Result<(), SavedError> {
    file.read_exact(into).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => SavedError::TooShort,
        _ => SavedError::Io(error.kind()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts() -> [Vec<u8>; 4] {
        [b"key".to_vec(), Vec::new(), vec![7; FRAME_BYTES + 5], vec![9; 3]]
    }

    fn written() -> Vec<u8> {
        let mut file = Vec::new();
        let mut output = Output::begin(&mut file).expect("memory");
        for part in parts() {
            output.put(&part).expect("memory");
        }
        output.end().expect("memory");
        file
    }

    fn read_all(file: &[u8]) -> Result<Vec<Vec<u8>>, SavedError> {
        let mut input = Input::begin(file)?;
        let parts = parts().iter().map(|_| input.take()).collect::<Result<_, _>>()?;
        input.end()?;
        Ok(parts)
    }

    #[test]
    fn parts_come_back() {
        assert_eq!(read_all(&written()), Ok(parts().to_vec()));
    }

    #[test]
    fn a_file_that_is_cut_off_or_changed_is_told() {
        let file = written();
        for len in [0, 7, 8, 11, 12, 19, 40, FRAME_BYTES, file.len() - 17, file.len() - 1] {
            let error = read_all(&file[..len]).expect_err("it is cut off");
            let expected = if len < 8 { SavedError::NoDrive } else { SavedError::TooShort };
            assert_eq!(error, expected, "{len} bytes");
        }
        for place in (12..200).chain(file.len() - 200..file.len()) {
            let mut file = file.clone();
            file[place] ^= 4;
            let error = read_all(&file).expect_err("a bit is wrong");
            assert!(
                matches!(error, SavedError::Damaged | SavedError::TooShort),
                "{place}: {error}"
            );
        }
        let mut other = file.clone();
        other[8] = 200;
        assert_eq!(read_all(&other), Err(SavedError::OtherVersion { found: 200 }));
    }
}
