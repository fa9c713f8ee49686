//! Wrong answers of a store, by kind. A planted fault counts as caught only by a kind that it must
//! cause.

use std::fmt;

use engine::Value;

/// The kinds of wrong answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A key that must have a value has none.
    Lost,
    /// An overwritten or deleted value came back.
    Stale,
    /// A value that the key never had.
    Foreign,
    /// An undamaged page was reported as damaged.
    Corrupt,
    /// Damage was not reported.
    Unnoticed,
    /// A command was refused that must succeed.
    Refused,
    /// An iterator returned a pair that its snapshot cannot hold, or skipped a pair.
    Iterator,
    /// A client waited forever.
    Hung,
    /// The index holds more entries than it was given.
    Leak,
    /// A busy set was read, or a quiet set was written to, against the window rules.
    Window,
    /// A store could not be opened after a power cut.
    Unopened,
}

/// The first error that a trial found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Complaint {
    /// The kind of the error.
    pub kind: Kind,
    /// A description of the error.
    pub text: String,
}

impl Complaint {
    /// Creates a complaint.
    pub fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.text)
    }
}

/// Whether two values have the same bytes. A synthetic value equals its materialized bytes.
pub fn is_same(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => a == b || a.len() == b.len() && a.to_bytes() == b.to_bytes(),
        _ => false,
    }
}
