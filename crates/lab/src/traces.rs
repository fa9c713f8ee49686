//! Files of traces, and what of them goes into results.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

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

/// What is wrong with reading a trace, in the words of the system.
fn unreadable(path: &str, why: &impl ToString) -> TraceError {
    TraceError::Read { origin: printable(path), why: why.to_string() }
}

/// Bytes of a trace. It has to be a file, as it is read more than once.
///
/// # Errors
/// [`TraceError::Read`].
pub(crate) fn file_bytes(path: &str) -> Result<u64, TraceError> {
    let metadata = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    if !metadata.is_file() {
        return Err(unreadable(path, &"it is no file, and a trace is read more than once"));
    }
    Ok(metadata.len())
}

/// Opens a trace at its beginning.
///
/// # Errors
/// [`TraceError::Read`].
pub(crate) fn open(path: &str) -> Result<BufReader<File>, TraceError> {
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    Ok(BufReader::with_capacity(READ_BYTES, file))
}

/// The last part of a trace's path, for people.
pub(crate) fn short_name(path: &str) -> String {
    let name = Path::new(path).file_name();
    name.map_or_else(|| printable(path), |name| printable(&name.to_string_lossy()))
}
