//! The error of the start or the stop of a server.

use std::fmt;

use crate::fault::Fault;

/// The reason that a server could not be started or not be stopped cleanly.
#[derive(Clone, Debug)]
pub struct ServeError(String);

impl ServeError {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ServeError {}

impl From<Fault> for ServeError {
    fn from(fault: Fault) -> Self {
        let message = fault.message();
        Self(message.strip_prefix("ERR ").unwrap_or(message).to_owned())
    }
}
