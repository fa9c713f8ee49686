//! MULTI, EXEC and what belongs to them: commands that are carried out together or not at all.
//!
//! Commands wait in the session. EXEC locks all their keys, and runs them over a view of the store in which they see what those before
//! them have changed; then all of it is written as one batch. WATCH notes how often keys were locked for writing, and when they expire; EXEC
//! compares, with those keys locked too.

use super::room::FREE_REPLY;
use super::{Call, Group, Outcome, Session, Spec, check_database, find, say};
use crate::data::locks::Watched;
use crate::data::overlay::Overlay;
use crate::fault::Fault;
use crate::state::State;

/// What is told of a transaction of which not every command could be kept.
const BROKEN: &str = "EXECABORT Transaction discarded because of previous errors.";

/// Commands that wait for EXEC.
#[derive(Default)]
pub(crate) struct Transaction {
    commands: Vec<Vec<Vec<u8>>>,
    bytes: usize,
    is_broken: bool,
}

impl Transaction {
    /// It will come to nothing: a command of it is none, or too much.
    pub(super) fn give_up(&mut self) {
        *self = Self { is_broken: true, ..Self::default() };
    }

    /// Bytes that it holds.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.commands.capacity() * size_of::<Vec<Vec<u8>>>()
    }

    /// Keeps a command for later.
    pub(super) fn keep(&mut self, arguments: &[&[u8]], most_bytes: usize) -> Outcome {
        if self.is_broken {
            return Ok(());
        }
        // With what a vector takes besides, and an allocator.
        self.bytes += arguments.iter().map(|argument| argument.len() + 40).sum::<usize>() + 16;
        if self.bytes() > most_bytes {
            let message = format!("a transaction has at most {most_bytes} bytes");
            return Err(Fault::error(message));
        }
        if self.commands.len() == self.commands.capacity() {
            self.commands.reserve_exact(self.commands.len() / 4 + 4);
        }
        self.commands.push(arguments.iter().map(|argument| argument.to_vec()).collect());
        Ok(())
    }
}

/// Whether a command of a transaction runs at once.
pub(super) fn runs_at_once(spec: &Spec) -> bool {
    match spec.group {
        Group::Transaction => spec.name != "UNWATCH",
        _ => matches!(spec.name, "QUIT" | "RESET"),
    }
}

/// Why a command cannot be part of a transaction.
pub(super) fn check(spec: &Spec) -> Outcome {
    if matches!(spec.name, "FLUSHALL" | "FLUSHDB" | "HELLO") {
        let message = format!("{} cannot be part of a transaction", spec.name);
        return Err(Fault::error(message));
    }
    Ok(())
}

pub(super) fn multi(call: &mut Call<'_>) -> Outcome {
    if call.session.transaction.is_some() {
        return Err(Fault::error("MULTI calls can not be nested"));
    }
    call.session.transaction = Some(Box::default());
    call.ok()
}

pub(super) fn discard(call: &mut Call<'_>) -> Outcome {
    if call.session.transaction.take().is_none() {
        return Err(Fault::error("DISCARD without MULTI"));
    }
    call.session.watched.clear();
    call.ok()
}

pub(super) fn watch(call: &mut Call<'_>) -> Outcome {
    if call.session.transaction.is_some() {
        return Err(Fault::error("WATCH inside MULTI is not allowed"));
    }
    for key in &call.arguments[1..] {
        let watched = call.access.watch(key)?;
        // Keys that share a counter are watched together, since the first of them was.
        let together = call.session.watched.entry(watched.counter()).or_insert(watched);
        *together = together.with(watched);
    }
    call.ok()
}

pub(super) fn unwatch(call: &mut Call<'_>) -> Outcome {
    call.session.watched.clear();
    call.ok()
}

pub(super) fn exec(call: &mut Call<'_>) -> Outcome {
    let transaction = call.session.transaction.take();
    // What is watched stays so then.
    let transaction = transaction.ok_or_else(|| Fault::error("EXEC without MULTI"))?;
    let watched: Vec<_> = std::mem::take(&mut call.session.watched).into_values().collect();
    if transaction.is_broken {
        return Err(Fault::of_kind(BROKEN));
    }
    let commands: Vec<Vec<&[u8]>> = transaction
        .commands
        .iter()
        .map(|words| words.iter().map(Vec::as_slice).collect())
        .collect();
    let keys: Vec<&[u8]> = commands
        .iter()
        .filter_map(|words| Some((find(words[0])?, words)))
        .flat_map(|(spec, words)| spec.keys(words))
        .collect();
    let outcome = run_all(call, &commands, &keys, &watched);
    if call.access.steps.are_cut_short() {
        let watched = watched.into_iter().map(|watched| (watched.counter(), watched));
        call.session.watched = watched.collect();
        call.session.transaction = Some(transaction);
    }
    outcome
}

/// EXEC itself was refused: the transaction is over all the same, and the client is told so.
pub(super) fn abort(session: &mut Session, refused: Outcome) -> Outcome {
    session.transaction = None;
    session.watched.clear();
    refused.map_err(|fault| discarded(&fault))
}

fn discarded(fault: &Fault) -> Fault {
    let message = fault.message();
    let why = message.strip_prefix("ERR ").unwrap_or(message);
    Fault::of_kind(format!("EXECABORT Transaction discarded because of: {why}"))
}

/// Carries all of them out with their keys locked, unless something that was watched has changed.
fn run_all(
    call: &mut Call<'_>,
    commands: &[Vec<&[u8]>],
    keys: &[&[u8]],
    watched: &[Watched],
) -> Outcome {
    call.access.steps.take(commands.iter().map(Vec::len).sum())?;
    let locks = &call.access.database.locks;
    let _locks = locks.hold(keys, watched);
    let access = call.access.database.transaction();
    if !watched.iter().all(|watched| locks.is_unchanged(watched, access.now)) {
        call.reply.null_array();
        return Ok(());
    }
    access.steps.set(&call.access.steps);
    let (was_astray, room) = (call.session.is_astray, call.room());
    call.reply.array(commands.len());
    for words in commands {
        let Some(spec) = find(words[0]) else { continue }; // it was there when it was kept
        let (state, session) = (call.state, &mut *call.session);
        let begin = call.reply.len();
        let mut inner =
            Call { arguments: words, access: &access, state, session, reply: &mut *call.reply };
        let outcome = check_database(inner.session, spec).and_then(|()| (spec.run)(&mut inner));
        if access.steps.are_cut_short() {
            call.access.steps.set(&access.steps);
            // All of it is run again, in the database that it began in.
            call.session.is_astray = was_astray;
            return outcome;
        }
        // An error of one of them is no answer for all of them: nothing is written.
        access.steps.go_on().map_err(|fault| discarded(&fault))?;
        say(state, call.reply, begin, outcome);
        // Not of one command: of all of them, which are few bytes and may ask for many.
        room.take(call.reply.len()).map_err(|fault| discarded(&fault))?;
        let changes = access.overlay.as_ref().map_or(0, Overlay::bytes);
        check_changes(state, changes).map_err(|fault| discarded(&fault))?;
    }
    // Nobody could look meanwhile, nor would know of an attempt that came to nothing.
    locks.touch(keys);
    let has_written = access.commit();
    call.access.has_written.set(access.has_written.get());
    has_written.map_err(|fault| discarded(&fault))
}

/// What commands have changed waits in memory until all of them have run.
fn check_changes(state: &State, bytes: usize) -> Outcome {
    let most = state.options.query_bytes;
    if bytes > most {
        return Err(Fault::error(format!("a transaction changes at most {most} bytes")));
    }
    // It is put together once more when it is written.
    if bytes > FREE_REPLY && !state.clients.has_room(2 * bytes) {
        return Err(Fault::error("there is no room for so many changes beside what others hold"));
    }
    Ok(())
}

impl Session {
    /// A command could not be kept: EXEC will say so.
    pub(super) fn give_up_transaction(&mut self) {
        if let Some(transaction) = &mut self.transaction {
            transaction.give_up();
        }
    }

    /// Bytes that it holds for a transaction.
    pub(crate) fn bytes(&self) -> usize {
        let kept = self.transaction.as_ref().map_or(0, |transaction| transaction.bytes());
        // A map's nodes are half full at least.
        kept + 2 * self.watched.len() * size_of::<(usize, Watched)>()
    }
}
