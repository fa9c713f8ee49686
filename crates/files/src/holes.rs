//! The data ranges and holes of a sparse file. Holes read as zeros.

use std::fs::File;
use std::io;
use std::ops::Range;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

/// Returns the ranges of a file that may hold data, in order; the rest of the file are holes. If
/// the file system cannot report holes, the whole file is returned. Allocated but unwritten space
/// counts as a hole if the file system reports it.
///
/// # Errors
/// Returns the operating system's error.
pub fn data_in(file: &File) -> io::Result<Vec<Range<u64>>> {
    let end = rustix::fs::seek(file, SeekFrom::End(0))?;
    let mut parts = Vec::new();
    let mut at = 0;
    while at < end {
        let start = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(start) => start,
            Err(Errno::NXIO) => break, // only a hole up to the end
            // The file system cannot report holes.
            Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => at,
            Err(error) => return Err(error.into()),
        };
        // The file grew meanwhile; the caller needs the ranges up to the old end only.
        if start >= end {
            break;
        }
        let next = rustix::fs::seek(file, SeekFrom::Hole(start)).unwrap_or(end);
        parts.push(start..next.clamp(start + 1, end));
        at = next.max(start + 1);
    }
    Ok(parts)
}

/// The data ranges, in order, of a file that is not written while it is open; `None` if they are
/// unknown.
pub(crate) struct Data(Option<Vec<Range<u64>>>);

impl Data {
    pub(crate) fn of(file: &File) -> Self {
        Self(data_in(file).ok())
    }

    /// Whether `range` lies entirely in a hole.
    pub(crate) fn is_hole(&self, range: &Range<u64>) -> bool {
        let Some(parts) = &self.0 else { return false };
        let next = parts.partition_point(|part| part.end <= range.start);
        parts.get(next).is_none_or(|part| part.start >= range.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_is_what_no_part_with_data_meets() {
        let data = Data(Some(vec![10..20, 40..50]));
        for (range, is_hole) in [
            (0..10, true),
            (5..11, false),
            (19..21, false),
            (20..40, true),
            (39..41, false),
            (50..99, true),
        ] {
            assert_eq!(data.is_hole(&range), is_hole, "{range:?}");
        }
        assert!(!Data(None).is_hole(&(1 << 40..1 << 41)));
        assert!(Data(Some(Vec::new())).is_hole(&(0..1)));
    }
}
