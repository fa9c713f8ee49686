//! Complaints about wrong answers of a drive.

use engine::Value;
use stacks::kvssd::{RecoverError, Status};
use testkit::trial::{Answer, Complaint, Kind};

/// Returns the complaint about a failed recovery.
pub(crate) fn of_recovery(error: &RecoverError) -> Complaint {
    Complaint::new(Kind::Unopened, format!("recovery failed: {error}"))
}

/// Returns the complaint about a command that must not fail.
pub(crate) fn of_status(status: Status, command: &str) -> Complaint {
    let kind = match status {
        Status::UnrecoveredError => Kind::Corrupt,
        Status::KeyDoesNotExist => Kind::Lost,
        _ => Kind::Refused,
    };
    Complaint::new(kind, format!("{command}: {status}"))
}

/// Converts the result of a read for the model.
pub(crate) fn answer(found: Result<Value, Status>) -> Answer {
    match found {
        Ok(value) => Ok(Some(value)),
        Err(Status::KeyDoesNotExist) => Ok(None),
        Err(status) => Err(of_status(status, "read")),
    }
}
