//! Conditions under which a client may run a command on this server.

use std::fmt::Write;

use super::command::Spec;
use super::scripts;
use super::session::Session;
use crate::fault::{Fault, Outcome};
use crate::state::State;

/// Returns an error unless the command exists and this client may run it on this server.
pub(super) fn allowed(
    state: &State,
    session: &Session,
    spec: Option<&Spec>,
    arguments: &[&[u8]],
) -> Outcome {
    let spec =
        spec.ok_or_else(|| scripts::refusal(arguments[0]).unwrap_or_else(|| unknown(arguments)))?;
    if !spec.takes(arguments.len()) {
        let name = spec.name.to_lowercase();
        return Err(Fault::error(format!("wrong number of arguments for '{name}' command")));
    }
    if !session.is_authenticated && !spec.is_for_strangers() {
        return Err(Fault::of_kind("NOAUTH Authentication required."));
    }
    check_database(session, spec)?;
    moved(state, spec, arguments)
}

/// Returns an error if the last SELECT was refused: the client would mistake the keys of database 0
/// for those of the other database, and might delete them.
pub(super) fn check_database(session: &Session, spec: &Spec) -> Outcome {
    if session.is_astray && spec.works_on_keys() {
        return Err(Fault::error(
            "the SELECT before was refused, and there is no database but 0: SELECT 0 first to work on that one",
        ));
    }
    Ok(())
}

/// Returns an error if another server of the cluster owns the keys.
fn moved(state: &State, spec: &Spec, arguments: &[&[u8]]) -> Outcome {
    match &state.cluster {
        Some(cluster) => cluster.check(spec.keys(arguments)),
        None => Ok(()),
    }
}

fn unknown(arguments: &[&[u8]]) -> Fault {
    let name = String::from_utf8_lossy(&arguments[0][..arguments[0].len().min(128)]);
    let mut message = format!("unknown command '{name}', with args beginning with: ");
    for argument in arguments[1..].iter().take(8) {
        let argument = String::from_utf8_lossy(&argument[..argument.len().min(32)]);
        let _ = write!(message, "'{argument}' ");
    }
    Fault::error(message)
}
