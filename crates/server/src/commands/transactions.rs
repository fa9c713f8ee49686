//! MULTI, EXEC, WATCH and related commands: commands that are executed together or not at all.
//!
//! Commands are queued in the session. EXEC locks all their keys and runs them on a view of the
//! store that includes the changes of the commands before; then all changes are written as one
//! batch. WATCH records the write counters and the expiry of keys; EXEC compares them, with those
//! keys locked as well.

use super::checks::check_database;
use super::command::{Call, Group, Spec, say};
use super::room::FREE_REPLY;
use super::session::Session;
use crate::data::locks::Watched;
use crate::data::overlay::Overlay;
use crate::fault::{Fault, Outcome};
use crate::state::State;

/// The error of EXEC if a command could not be queued.
const BROKEN: &str = "EXECABORT Transaction discarded because of previous errors.";

/// Whether a command runs at once inside MULTI.
pub(super) fn runs_at_once(spec: &Spec) -> bool {
    match spec.group {
        Group::Transaction => spec.name != "UNWATCH",
        _ => matches!(spec.name, "QUIT" | "RESET"),
    }
}

/// Returns an error if a command is not allowed in a transaction.
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
        // Keys that share a counter are watched as one, from the first WATCH on.
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
    // EXEC without MULTI keeps the watched keys.
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
        .filter_map(|words| Some((call.table.find(words[0])?, words)))
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

/// Ends the transaction when EXEC itself is refused.
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

/// Runs all commands with their keys locked, unless a watched key has changed.
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
        // Always found: it was found when it was queued.
        let Some(spec) = call.table.find(words[0]) else { continue };
        let (state, table, session) = (call.state, call.table, &mut *call.session);
        let begin = call.reply.len();
        let (access, reply) = (&access, &mut *call.reply);
        let mut inner = Call { arguments: words, access, state, session, table, reply };
        let outcome = check_database(inner.session, spec).and_then(|()| (spec.run)(&mut inner));
        if access.steps.are_cut_short() {
            call.access.steps.set(&access.steps);
            // The whole transaction is run again, with the database selection it began with.
            call.session.is_astray = was_astray;
            return outcome;
        }
        // A failed command does not abort the transaction; a stopping server does, before anything
        // is written.
        access.steps.go_on().map_err(|fault| discarded(&fault))?;
        say(state, call.reply, begin, outcome);
        // The limit is on the whole reply, because a short transaction can request a long one.
        room.take(call.reply.len()).map_err(|fault| discarded(&fault))?;
        let changes = access.overlay.as_ref().map_or(0, Overlay::bytes);
        check_changes(state, changes).map_err(|fault| discarded(&fault))?;
    }
    // Counted only now, because no other client can see the keys meanwhile, and a run that is cut
    // short must not count.
    locks.touch(keys);
    let has_written = access.commit();
    call.access.has_written.set(access.has_written.get());
    has_written.map_err(|fault| discarded(&fault))
}

/// Returns an error if the pending changes of a transaction take too much memory.
fn check_changes(state: &State, bytes: usize) -> Outcome {
    let most = state.options.query_bytes;
    if bytes > most {
        return Err(Fault::error(format!("a transaction changes at most {most} bytes")));
    }
    // Writing assembles them once more as a batch.
    if bytes > FREE_REPLY && !state.clients.has_room(2 * bytes) {
        return Err(Fault::error("there is no room for so many changes beside what others hold"));
    }
    Ok(())
}
