//! What a drive got wrong, by what it answered.

use kvssd::{RecoverError, Status};
use pages::Value;
use trial::{Answer, Complaint, Kind};

/// A drive did not come back from a power cut.
pub(crate) fn of_recovery(error: &RecoverError) -> Complaint {
    Complaint::new(Kind::Unopened, format!("recovery failed: {error}"))
}

/// A command that must not fail did.
pub(crate) fn of_status(status: Status, command: &str) -> Complaint {
    let kind = match status {
        Status::UnrecoveredError => Kind::Corrupt,
        Status::KeyDoesNotExist => Kind::Lost,
        _ => Kind::Refused,
    };
    Complaint::new(kind, format!("{command}: {status}"))
}

/// What a read of a key answered, as the model takes it.
pub(crate) fn answer(found: Result<Value, Status>) -> Answer {
    match found {
        Ok(value) => Ok(Some(value)),
        Err(Status::KeyDoesNotExist) => Ok(None),
        Err(status) => Err(of_status(status, "read")),
    }
}
