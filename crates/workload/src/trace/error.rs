//! What is wrong with a trace, in words.

use std::fmt;

/// So much of what was found is shown.
const SHOWN_CHARS: usize = 60;

/// A trace that cannot be replayed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TraceError {
    /// A line is not as it should be.
    Line {
        /// The file.
        origin: String,
        /// The line, from 1 on.
        line: u64,
        /// What stands there.
        found: String,
        /// What should.
        expected: String,
    },
    /// The file cannot be read.
    Read {
        /// The file.
        origin: String,
        /// Why, in the system's words.
        why: String,
    },
    /// There is nothing in it to replay.
    Nothing {
        /// The file.
        origin: String,
        /// What there is instead.
        what: String,
    },
    /// What it begins with is of no format that is known.
    UnknownFormat {
        /// The file.
        origin: String,
        /// What it begins with.
        found: String,
        /// What can be done.
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

/// What a line has, and what it should have.
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

/// A text in quotes, without control characters, cut where it is long.
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
