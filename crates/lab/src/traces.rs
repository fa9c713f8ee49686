//! Files of traces, and what of them goes into results.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use catalogue::Unmarked;
use serde::Serialize;
use workload::trace::TraceError;

use crate::units::printable;

/// Bytes that are read of a trace at a time.
const READ_BYTES: usize = 1 << 20;

/// A trace, as it is named among all that went into a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TraceInput {
    /// The file.
    pub path: String,
    /// The format.
    pub format: &'static str,
    /// Bytes of the file.
    pub bytes: u64,
    /// Its lines.
    pub lines: u64,
    /// The operations that are in it.
    pub operations: u64,
}

/// A trace that was looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace<S> {
    /// The file.
    pub path: String,
    /// Its bytes.
    pub bytes: u64,
    /// What is in it.
    pub survey: S,
}

impl<S> Trace<S> {
    /// Reads a trace from its beginning to its end by `survey`. Its format is found out by `detect` unless it is given.
    ///
    /// # Errors
    /// [`TraceError`]: which line is not as it should be.
    pub(crate) fn look_by<F>(
        path: &str,
        format: Option<F>,
        detect: impl Fn(&str, TraceFile) -> Result<F, TraceError>,
        survey: impl Fn(&str, F) -> Result<S, TraceError>,
    ) -> Result<Self, TraceError> {
        let (bytes, shown) = (file_bytes(path)?, printable(path));
        let format = match format {
            Some(format) => format,
            None => detect(&shown, open(path)?)?,
        };
        Ok(Self { path: path.to_owned(), bytes, survey: survey(&shown, format)? })
    }

    /// What of it is named among all that went into a run.
    pub(crate) fn input_of(&self, format: &'static str, lines: u64, operations: u64) -> TraceInput {
        TraceInput { path: printable(&self.path), format, bytes: self.bytes, lines, operations }
    }

    /// The last part of its path.
    pub fn name(&self) -> String {
        let name = Path::new(&self.path).file_name();
        name.map_or_else(|| printable(&self.path), |name| printable(&name.to_string_lossy()))
    }
}

/// What is wrong with reading a trace, in the words of the system.
fn unreadable(path: &str, why: &impl ToString) -> TraceError {
    TraceError::Read { origin: printable(path), why: why.to_string() }
}

/// Bytes of a trace. It has to be a file, as it is read more than once.
///
/// # Errors
/// [`TraceError::Read`].
fn file_bytes(path: &str) -> Result<u64, TraceError> {
    let metadata = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    if !metadata.is_file() {
        return Err(unreadable(path, &"it is no file, and a trace is read more than once"));
    }
    Ok(metadata.len())
}

/// A trace that is being read.
pub(crate) type TraceFile = BufReader<Unmarked<File>>;

/// Opens a trace at its beginning.
///
/// # Errors
/// [`TraceError::Read`].
pub(crate) fn open(path: &str) -> Result<TraceFile, TraceError> {
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    Ok(BufReader::with_capacity(READ_BYTES, Unmarked::new(file)))
}
