//! The exit code of failed commands on a store.

use std::process::ExitCode;

use crate::output;

/// The exit code on an error, as for `grep`: 1 is that of a missing key.
const TROUBLE: u8 = 2;

/// Prints the error of a failed command and returns its exit code.
pub(crate) fn or_trouble(outcome: anyhow::Result<ExitCode>) -> ExitCode {
    outcome.unwrap_or_else(|error| {
        output::say(&output::why(&error));
        ExitCode::from(TROUBLE)
    })
}
