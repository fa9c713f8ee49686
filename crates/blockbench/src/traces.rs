//! Files of traces, and their description in results.

use std::fs;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use catalogue::Unmarked;
use report::units::printable;
use serde::Serialize;
use workload::trace::TraceError;
use workload::trace::kv::{KvFormat, KvSurvey};

/// Size of the read buffer, in bytes.
const READ_BYTES: usize = 1 << 20;

/// The description of a trace among the inputs of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TraceInput {
    /// Path of the file.
    pub path: String,
    /// Name of the format.
    pub format: &'static str,
    /// Size of the file, in bytes.
    pub bytes: u64,
    /// Number of lines.
    pub lines: u64,
    /// Number of operations.
    pub operations: u64,
}

/// A surveyed trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace<S> {
    /// Path of the file.
    pub path: String,
    /// Size of the file, in bytes.
    pub bytes: u64,
    /// The survey.
    pub survey: S,
}

impl<S> Trace<S> {
    /// Reads a trace from its beginning to its end with `survey`. Determines the format with
    /// `detect` unless `format` is given.
    ///
    /// # Errors
    /// Returns [`TraceError`] if the file cannot be read or has an invalid line.
    pub fn look_by<F>(
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

    /// Returns the trace's entry among the inputs of a run.
    pub fn input_of(&self, format: &'static str, lines: u64, operations: u64) -> TraceInput {
        TraceInput { path: printable(&self.path), format, bytes: self.bytes, lines, operations }
    }

    /// Returns the name of the file, without its directory.
    pub fn name(&self) -> String {
        let name = Path::new(&self.path).file_name();
        name.map_or_else(|| printable(&self.path), |name| printable(&name.to_string_lossy()))
    }
}

/// A surveyed trace of a key-value store.
pub type KvTrace = Trace<KvSurvey>;

impl KvTrace {
    /// Surveys the trace at `path` from its beginning to its end. Detects the format if `format` is
    /// `None`.
    ///
    /// # Errors
    /// Returns [`TraceError`] if the file cannot be read or has an invalid line.
    pub fn look(path: &str, format: Option<KvFormat>) -> Result<Self, TraceError> {
        let survey = |shown: &str, format| KvSurvey::of(shown, format, open(path)?);
        Self::look_by(path, format, KvFormat::detect, survey)
    }

    /// Returns the trace's entry among the inputs of a run.
    pub fn input(&self) -> TraceInput {
        let KvSurvey { format, lines, .. } = self.survey;
        self.input_of(format.name(), lines, self.survey.operations())
    }
}

/// Returns the error for a trace that cannot be read; `why` is the system's reason.
fn unreadable(path: &str, why: &impl ToString) -> TraceError {
    TraceError::Read { origin: printable(path), why: why.to_string() }
}

/// Returns the size of a trace, in bytes. A trace must be a regular file, because it is read more
/// than once.
///
/// # Errors
/// Returns [`TraceError::Read`].
fn file_bytes(path: &str) -> Result<u64, TraceError> {
    let metadata = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    if !metadata.is_file() {
        return Err(unreadable(path, &"it is no file, and a trace is read more than once"));
    }
    Ok(metadata.len())
}

/// The reader of a trace.
pub(crate) type TraceFile = BufReader<Unmarked<File>>;

/// Opens a trace at its beginning.
///
/// # Errors
/// Returns [`TraceError::Read`].
pub fn open(path: &str) -> Result<TraceFile, TraceError> {
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    Ok(BufReader::with_capacity(READ_BYTES, Unmarked::new(file)))
}
