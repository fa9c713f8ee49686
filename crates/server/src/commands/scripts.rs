//! Replies to script commands. Scripts are not supported; the errors are chosen so that clients
//! neither wait nor retry forever.

use super::command::Call;
use super::help::other_part;
use super::parse::is;
use crate::fault::{Fault, Outcome};

/// Returns the error for a command that runs scripts. EVALSHA gets NOSCRIPT: clients then send the
/// script with EVAL, whose error is final. After any other error some clients repeat EVALSHA
/// forever.
pub(super) fn refusal(name: &[u8]) -> Option<Fault> {
    let is_one_of = |names: &[&str]| names.iter().any(|other| is(name, other));
    if is_one_of(&["EVALSHA", "EVALSHA_RO"]) {
        return Some(Fault::of_kind("NOSCRIPT No matching script. Please use EVAL."));
    }
    is_one_of(&["EVAL", "EVAL_RO", "FCALL", "FCALL_RO", "FUNCTION"]).then(none_run)
}

fn none_run() -> Fault {
    Fault::error(
        "this server runs no scripts (Lua) and no functions; MULTI with WATCH does what many of them are for",
    )
}

pub(super) fn script(call: &mut Call<'_>) -> Outcome {
    match (call.argument(1), &call.arguments[2..]) {
        (word, digests @ [_, ..]) if is(word, "EXISTS") => {
            call.reply.array(digests.len());
            for _ in digests {
                call.reply.integer(0);
            }
            Ok(())
        }
        (word, [] | [_]) if is(word, "FLUSH") => call.ok(),
        (word, []) if is(word, "KILL") => {
            Err(Fault::of_kind("NOTBUSY No scripts in execution right now."))
        }
        (word, [_]) if is(word, "LOAD") => Err(none_run()),
        (word, _) => other_part(call.reply, word, "SCRIPT"),
    }
}
