//! Lookup and execution of commands.
//!
//! ```text
//!   table ...... all commands                                        (commands/table.rs)
//!   command .... a command: its spec, and one execution of it        (commands/command.rs)
//!   checks ..... conditions under which a command runs               (commands/checks.rs)
//!   session .... the state of a connection between commands          (commands/session.rs)
//!   room ....... memory for replies                                  (commands/room.rs)
//!   help ....... subcommands                                         (commands/help.rs)
//!   parse ...... arguments                                           (commands/parse.rs)
//!   decimal .... numbers as decimal text                             (commands/decimal.rs)
//!   strings, hashes, sorted_sets, ranges, keyspace, scans, transactions, scripts, connection,
//!   server ..... the commands themselves, by group                   (commands/)
//! ```
//!
//! A command runs to completion on the calling thread and may block there for a read. A command
//! that walks too far is run again on a thread where no other connection waits
//! ([`Steps`](crate::data::steps::Steps)). A command does not wait until its writes are durable:
//! the connection does, before it sends the reply.

#![expect(
    clippy::unnecessary_wraps,
    reason = "commands in the table are of one kind, whether they can fail or not"
)]

mod checks;
pub(crate) mod command;
mod connection;
mod decimal;
mod hashes;
mod help;
mod keyspace;
mod parse;
mod room;
mod scans;
mod scripts;
mod server;
pub(crate) mod session;
mod sorted_set_ranges;
mod sorted_sets;
mod strings;
mod table;
mod transactions;

use command::{Call, Spec, say};
use session::Session;
use table::COMMANDS;

use crate::data::access::Access;
use crate::fault::Outcome;
use crate::resp::Reply;
use crate::state::State;

/// Executes a command, or queues it inside MULTI. Writes the reply, unless the step budget was
/// exceeded. Returns the command's spec, if the command is known.
pub(crate) fn run(
    state: &State,
    session: &mut Session,
    access: &Access<'_>,
    arguments: &[&[u8]],
    reply: &mut Reply,
) -> Option<&'static Spec> {
    let begin = reply.len();
    if is_of_a_browser(arguments[0]) {
        session.is_over = true;
        return None;
    }
    let spec = COMMANDS.find(arguments[0]);
    let outcome = match (spec, checks::allowed(state, session, spec, arguments)) {
        (Some(spec), Ok(())) if is_kept(session, spec) => {
            keep(state, session, spec, arguments, reply)
        }
        (Some(spec), Ok(())) => access.steps.take(arguments.len()).and_then(|()| {
            let table = &COMMANDS;
            (spec.run)(&mut Call { arguments, access, state, session, table, reply })
        }),
        (Some(spec), refused) if spec.name == "EXEC" => transactions::abort(session, refused),
        (_, refused) => {
            session.give_up_transaction();
            refused
        }
    };
    if access.steps.are_cut_short() {
        reply.truncate(begin);
        return spec;
    }
    say(state, reply, begin, outcome);
    spec
}

/// Whether the word begins a line of HTTP, sent by a web page in a victim's browser (cross-protocol
/// scripting): the following lines could contain commands. Redis closes such connections as well.
fn is_of_a_browser(word: &[u8]) -> bool {
    parse::is(word, "POST") || parse::is(word, "HOST:")
}

/// Whether the command is queued for EXEC.
fn is_kept(session: &Session, spec: &Spec) -> bool {
    session.transaction.is_some() && !transactions::runs_at_once(spec)
}

/// Whether the command may block in the store when it is executed now.
pub(crate) fn needs_store(session: &Session, name: &[u8]) -> bool {
    COMMANDS.find(name).is_some_and(|spec| spec.needs_store() && !is_kept(session, spec))
}

fn keep(
    state: &State,
    session: &mut Session,
    spec: &Spec,
    arguments: &[&[u8]],
    reply: &mut Reply,
) -> Outcome {
    let Some(transaction) = &mut session.transaction else { return Ok(()) };
    let kept = transactions::check(spec)
        .and_then(|()| transaction.keep(arguments, state.options.query_bytes));
    match kept {
        Ok(()) => reply.simple("QUEUED"),
        Err(_) => transaction.give_up(),
    }
    kept
}
