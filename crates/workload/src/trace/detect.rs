//! Detection of the format of a trace. A trace of the other kind is told with the command that
//! accepts it.

use std::io::BufRead;

use super::block::BlockFormat;
use super::error::{TraceError, shown};
use super::kv::KvFormat;
use super::lines::first_line;

impl BlockFormat {
    /// Detects the format of a trace by its beginning.
    ///
    /// # Errors
    /// Returns [`TraceError`] if the input cannot be read or the format is unknown.
    pub fn detect(origin: &str, input: impl BufRead) -> Result<Self, TraceError> {
        let elsewhere = |line: &str| {
            let format = KvFormat::of(line)?;
            Some(format!("{format}, which levelhead bench --trace takes"))
        };
        detect(origin, input, Self::of, &Self::ALL.map(|(_, name)| name), elsewhere)
    }
}

impl KvFormat {
    /// Detects the format of a trace by its beginning.
    ///
    /// # Errors
    /// Returns [`TraceError`] if the input cannot be read or the format is unknown.
    pub fn detect(origin: &str, input: impl BufRead) -> Result<Self, TraceError> {
        let elsewhere = |line: &str| {
            let format = BlockFormat::of(line)?;
            Some(format!("{format}, which levelhead device --replay takes"))
        };
        detect(origin, input, Self::of, &Self::ALL.map(|(_, name)| name), elsewhere)
    }
}

/// Detects the format of a trace by `of`, which recognizes formats by the first line; `names` are
/// the names of these formats. `elsewhere` returns the command that accepts a format which is none
/// of these.
fn detect<F>(
    origin: &str,
    input: impl BufRead,
    of: impl Fn(&str) -> Option<F>,
    names: &[&str],
    elsewhere: impl Fn(&str) -> Option<String>,
) -> Result<F, TraceError> {
    let line = first_line(origin, input)?;
    of(&line).ok_or_else(|| TraceError::UnknownFormat {
        origin: origin.to_owned(),
        found: shown(&line),
        advice: elsewhere(&line).map_or_else(
            || format!("give --trace-format ({})", names.join(", ")),
            |who| format!("it looks like {who}"),
        ),
    })
}
