//! Lookup and execution of commands.
//!
//! A command runs to completion on the calling thread and may block there for a read. A command
//! that walks too far is run again on a thread where no other connection waits
//! ([`Steps`](crate::data::steps::Steps)). A command does not wait until its writes are durable:
//! the connection does, before it sends the reply.

#![expect(
    clippy::unnecessary_wraps,
    reason = "commands in the table are of one kind, whether they can fail or not"
)]

mod connection;
mod decimal;
mod hashes;
mod help;
mod keyspace;
mod parse;
mod ranges;
mod room;
mod scans;
mod scripts;
mod server;
mod sorted_sets;
mod strings;
mod table;
mod transactions;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use crate::client::Client;
use crate::data::access::Access;
use crate::data::locks::Watched;
use crate::fault::Fault;
use crate::resp::Reply;
use crate::state::State;

pub(crate) use room::{Items, Room};
pub(crate) use table::{Group, Spec, find};
pub(crate) use transactions::Transaction;

/// The result of a command.
pub(crate) type Outcome = Result<(), Fault>;

/// State of a connection between its commands.
pub(crate) struct Session {
    pub client: Arc<Client>,
    pub is_authenticated: bool,
    /// Whether the last SELECT was refused. The client asked for a database that does not exist, so
    /// it must not work on database 0 instead.
    pub is_astray: bool,
    /// Whether the connection closes after the replies are sent.
    pub is_over: bool,
    /// The commands queued since MULTI.
    pub transaction: Option<Box<Transaction>>,
    /// Watched keys, by the index of their write counters; EXEC requires them to be unchanged.
    pub watched: BTreeMap<usize, Watched>,
    /// Memory reserved for the connection while commands run, in bytes, without long replies.
    pub set_aside: usize,
}

impl Session {
    pub(crate) fn new(client: Arc<Client>, is_authenticated: bool) -> Self {
        let (transaction, watched) = (None, BTreeMap::new());
        let (is_astray, is_over, set_aside) = (false, false, 0);
        Self { client, is_authenticated, is_astray, is_over, transaction, watched, set_aside }
    }
}

/// A command that is being executed.
pub(crate) struct Call<'a> {
    /// The command's name and its arguments.
    pub arguments: &'a [&'a [u8]],
    pub access: &'a Access<'a>,
    pub state: &'a State,
    pub session: &'a mut Session,
    pub reply: &'a mut Reply,
}

impl<'a> Call<'a> {
    /// Returns the argument at an index; index 0 is the name.
    pub(crate) fn argument(&self, place: usize) -> &'a [u8] {
        self.arguments[place]
    }

    /// Returns the key, which is the first argument of most commands.
    pub(crate) fn key(&self) -> &'a [u8] {
        self.arguments[1]
    }

    /// Returns the memory budget of the reply.
    pub(crate) fn room(&self) -> Room<'a> {
        Room::new(self.state, self.session)
    }

    /// Starts a list of items whose number is not known yet.
    pub(crate) fn items(&mut self) -> Items<'_> {
        let room = self.room();
        Items::new(self.reply, room)
    }

    pub(crate) fn ok(&mut self) -> Outcome {
        self.reply.simple("OK");
        Ok(())
    }
}

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
    let spec = find(arguments[0]);
    let outcome = match (spec, allowed(state, session, spec, arguments)) {
        (Some(spec), Ok(())) if is_kept(session, spec) => {
            keep(state, session, spec, arguments, reply)
        }
        (Some(spec), Ok(())) => access
            .steps
            .take(arguments.len())
            .and_then(|()| (spec.run)(&mut Call { arguments, access, state, session, reply })),
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

/// Replaces the partial reply of a failed command by the error.
fn say(state: &State, reply: &mut Reply, begin: usize, outcome: Outcome) {
    if let Err(fault) = outcome {
        reply.truncate(begin);
        reply.error(fault.message());
        state.statistics.count_fault(&fault);
    }
}

/// Returns an error unless the command exists and this client may run it on this server.
fn allowed(state: &State, session: &Session, spec: Option<&Spec>, arguments: &[&[u8]]) -> Outcome {
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
fn check_database(session: &Session, spec: &Spec) -> Outcome {
    if session.is_astray && spec.works_on_keys() {
        return Err(Fault::error(
            "the SELECT before was refused, and there is no database but 0: SELECT 0 first to work on that one",
        ));
    }
    Ok(())
}

/// Whether the command is queued for EXEC.
fn is_kept(session: &Session, spec: &Spec) -> bool {
    session.transaction.is_some() && !transactions::runs_at_once(spec)
}

/// Whether the command may block in the store when it is executed now.
pub(crate) fn needs_store(session: &Session, name: &[u8]) -> bool {
    find(name).is_some_and(|spec| spec.needs_store() && !is_kept(session, spec))
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
