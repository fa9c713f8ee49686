//! Errors in a trace, as text.

use std::fmt;

/// Characters of the invalid text that are shown.
const SHOWN_CHARS: usize = 60;

/// A trace that cannot be replayed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TraceError {
    /// A line is invalid.
    Line {
        /// The file.
        origin: String,
        /// The line, from 1.
        line: u64,
        /// The actual text.
        found: String,
        /// The expected text.
        expected: String,
    },
    /// The file cannot be read.
    Read {
        /// The file.
        origin: String,
        /// The system's error message.
        why: String,
    },
    /// The trace has no operations to replay.
    Nothing {
        /// The file.
        origin: String,
        /// Its actual contents.
        what: String,
    },
    /// The format of the beginning is unknown.
    UnknownFormat {
        /// The file.
        origin: String,
        /// The beginning.
        found: String,
        /// Advice to the user.
        advice: String,
    },
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { origin, line, found, expected } => {
                write!(f, "{origin}:{line}: found {found}, expected {expected}")
            }
            Self::Read { origin, why } => write!(f, "cannot read the trace {origin}: {why}"),
            Self::Nothing { origin, what } => write!(f, "nothing to replay in {origin}: {what}"),
            Self::UnknownFormat { origin, found, advice } => {
                write!(
                    f,
                    "{origin}: a trace that begins with {found} is of no format that is known: {advice}"
                )
            }
        }
    }
}

impl std::error::Error for TraceError {}

/// The actual and the expected text of a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Wrong {
    pub(crate) found: String,
    pub(crate) expected: String,
}

impl Wrong {
    pub(crate) fn new(found: &str, expected: impl Into<String>) -> Self {
        Self { found: shown(found), expected: expected.into() }
    }

    pub(crate) fn at(self, origin: &str, line: u64) -> TraceError {
        TraceError::Line {
            origin: origin.to_owned(),
            line,
            found: self.found,
            expected: self.expected,
        }
    }
}

/// Returns a text in quotes, without control characters, truncated if it is long.
pub(crate) fn shown(text: &str) -> String {
    if text.is_empty() {
        return "nothing".to_owned();
    }
    let start: String = text.chars().take(SHOWN_CHARS).flat_map(char::escape_debug).collect();
    let dots = if text.chars().nth(SHOWN_CHARS).is_some() { "..." } else { "" };
    format!("`{start}{dots}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_shown_without_harm() {
        assert_eq!(shown(""), "nothing");
        assert_eq!(shown("a\u{1b}[2J"), "`a\\u{1b}[2J`");
        assert_eq!(shown(&"x".repeat(100)), format!("`{}...`", "x".repeat(60)));
        let error = Wrong::new("x", "a number").at("a.csv", 7);
        assert_eq!(error.to_string(), "a.csv:7: found `x`, expected a number");
    }
}
