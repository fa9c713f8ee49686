//! What a store got wrong, by kind: a planted fault counts as caught only by the kind it must cause.

use std::fmt;

use pages::Value;

/// Kinds of wrong answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A key that must have a value has none.
    Lost,
    /// A value that was overwritten or deleted before came back.
    Stale,
    /// A value that the key never had.
    Foreign,
    /// A page that nobody damaged was reported as damaged.
    Corrupt,
    /// Damage was not reported.
    Unnoticed,
    /// A command was refused that must go ahead.
    Refused,
    /// An iterator returned what its snapshot cannot hold, or left something out.
    Iterator,
    /// A client waited for ever.
    Hung,
    /// The index holds more than it was given.
    Leak,
    /// Against the rules of windows a busy set was read, or a quiet one written to.
    Window,
    /// A store did not come back from a power cut.
    Unopened,
}

/// The first thing that a trial found wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Complaint {
    /// Of what kind it is.
    pub kind: Kind,
    /// What it is, in words.
    pub text: String,
}

impl Complaint {
    /// A complaint of a kind.
    pub fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.text)
    }
}

/// A synthetic value and its bytes are the same value.
pub fn is_same(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => a == b || a.len() == b.len() && a.to_bytes() == b.to_bytes(),
        _ => false,
    }
}
