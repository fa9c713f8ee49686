//! Removal of expired keys and of the parts of dropped collections. Readers see neither of them
//! even before they are swept.
//!
//! Each step is short and continues after the last key of the previous step; otherwise every step
//! would step over the tombstones of all earlier ones. The [`Frontier`](super::frontier::Frontier)
//! holds the sweep position in the notes, the [`Sweeper`] that in the parts of a collection. Both
//! are in memory only: after a restart the first step steps over the existing tombstones once.
//!
//! An unreadable key stays, and the frontier stays before its note: readers compare keys with this
//! note and get an error. All later notes are swept.

use levelhead::Durability;

use super::access::Access;
use super::batch::Batch;
use super::database::Database;
use super::keys::{self, CollectionId, Space};
use crate::fault::Fault;

/// Notes or parts per step: as many as a range returns in six fetches, each twice as long as the
/// one before.
const STEP: usize = 252;

/// The result of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Swept {
    pub expired: u64,
    pub parts: u64,
    /// Whether more remains to be swept.
    pub is_unfinished: bool,
}

/// Complete rounds before the sweeper retries unreadable notes and steps over all tombstones after
/// them: about a minute.
const ROUNDS: u32 = 600;

/// Sweeps a database.
#[derive(Default)]
pub(crate) struct Sweeper {
    expiring: Detour,
    dropped: Detour,
    /// The collection being swept, and the store key up to which its parts are removed. No writer
    /// adds parts to a dropped collection.
    behind: Option<(CollectionId, Vec<u8>)>,
}

impl Sweeper {
    /// Removes some expired keys and some parts of dropped collections.
    pub(crate) fn step(&mut self, database: &Database) -> (Swept, Result<(), Fault>) {
        let access = Access { durability: Durability::None, ..database.access() };
        let mut swept = Swept::default();
        let outcome = self.sweep_expired(&access, &mut swept);
        let outcome = outcome.and(self.sweep_dropped(&access, &mut swept));
        (swept, outcome)
    }

    fn sweep_expired(&mut self, access: &Access<'_>, swept: &mut Swept) -> Result<(), Fault> {
        let frontier = &access.database.expiring;
        let (begin, end) = (frontier.begin(), keys::expiry(access.now.saturating_add(1), b""));
        let mut round = Round::begin(&mut self.expiring, begin);
        let notes = some_names(access, &round.from(), &end)?;
        let mut outcome = Ok(());
        for note in &notes {
            match expire(access, note, swept) {
                Ok(is_gone) => round.pass(note, is_gone),
                Err(fault) => outcome = Err(fault),
            }
            if outcome.is_err() {
                break;
            }
        }
        let is_done = notes.len() < STEP && outcome.is_ok();
        frontier.advance(&round.end(is_done.then_some(&end)));
        swept.is_unfinished |= !is_done;
        outcome
    }

    fn sweep_dropped(&mut self, access: &Access<'_>, swept: &mut Swept) -> Result<(), Fault> {
        let frontier = &access.database.dropped;
        if frontier.is_at_end() {
            return Ok(());
        }
        let (begin, (_, end)) = (frontier.begin(), keys::all(Space::Dropped));
        // Moved out of `self`, which sweeps parts meanwhile.
        let mut detour = std::mem::take(&mut self.dropped);
        let mut round = Round::begin(&mut detour, begin);
        let notes = some_names(access, &round.from(), &end);
        let (mut left, mut outcome) = (STEP, Ok(true));
        for note in notes.iter().flatten() {
            match self.sweep_collection(access, note, &mut left, swept) {
                Ok(Some(is_gone)) => round.pass(note, is_gone),
                Ok(None) => outcome = Ok(false),
                Err(fault) => outcome = Err(fault),
            }
            if outcome != Ok(true) {
                break;
            }
        }
        let are_all = notes.as_ref().is_ok_and(|notes| notes.len() < STEP);
        let is_done = are_all && outcome == Ok(true);
        frontier.advance(&round.end(is_done.then_some(&end)));
        self.dropped = detour;
        swept.is_unfinished |= !is_done;
        notes.and(outcome).map(|_| ())
    }

    /// Sweeps the dropped collection of a note. Returns whether the note is removed (false if
    /// something is unreadable), or `None` if parts remain.
    fn sweep_collection(
        &mut self,
        access: &Access<'_>,
        note: &[u8],
        left: &mut usize,
        swept: &mut Swept,
    ) -> Result<Option<bool>, Fault> {
        let Some(id) = keys::split_dropped(note).filter(|_| *left > 0) else {
            return Ok((*left > 0).then_some(false));
        };
        match self.sweep_parts(access, id, left, swept)? {
            Parts::Gone => {}
            Parts::More => return Ok(None),
            Parts::Unreadable => return Ok(Some(false)),
        }
        let mut batch = Batch::default();
        batch.delete(note);
        access.write(batch)?;
        *left = left.saturating_sub(1);
        Ok(Some(true))
    }

    /// Removes up to `left` parts of a collection.
    fn sweep_parts(
        &mut self,
        access: &Access<'_>,
        id: CollectionId,
        left: &mut usize,
        swept: &mut Swept,
    ) -> Result<Parts, Fault> {
        for space in [Space::Field, Space::Member, Space::Score] {
            let (first, end) = keys::parts(space, id);
            let behind = self.behind.as_ref().filter(|(whose, _)| *whose == id);
            let from = behind.map_or(&first, |(_, behind)| behind.max(&first));
            let Ok(mut parts) = some_names(access, from, &end) else {
                access.steps.go_on()?;
                return Ok(Parts::Unreadable);
            };
            let are_all = parts.len() < STEP.min(*left + 1);
            parts.truncate(*left);
            let mut batch = Batch::default();
            for part in &parts {
                batch.delete(part);
            }
            access.write(batch)?;
            *left -= parts.len();
            swept.parts += parts.len() as u64;
            if let Some(last) = parts.last() {
                self.behind = Some((id, behind_name(last)));
            }
            if !are_all {
                return Ok(Parts::More);
            }
        }
        Ok(Parts::Gone)
    }
}

/// The state of a collection after a sweep of its parts.
enum Parts {
    Gone,
    More,
    Unreadable,
}

/// The sweep position beyond notes that stay because something is unreadable.
#[derive(Default)]
struct Detour {
    /// The position at which the sweep continues; `None` while no note stays.
    behind: Option<Vec<u8>>,
    /// Complete rounds since then.
    rounds: u32,
}

/// A step over notes.
struct Round<'a> {
    detour: &'a mut Detour,
    /// No note is before this key.
    swept: Vec<u8>,
}

impl<'a> Round<'a> {
    fn begin(detour: &'a mut Detour, swept: Vec<u8>) -> Self {
        Self { detour, swept }
    }

    /// Returns the key at which the step begins.
    fn from(&self) -> Vec<u8> {
        let detour = self.detour.behind.as_ref().filter(|behind| **behind > self.swept);
        detour.unwrap_or(&self.swept).clone()
    }

    /// Records that a note was visited, and whether it was removed.
    fn pass(&mut self, note: &[u8], is_gone: bool) {
        let behind = behind_name(note);
        if !is_gone || self.detour.behind.is_some() {
            self.detour.behind = Some(behind);
        } else {
            self.swept = behind;
        }
    }

    /// Returns the key before which no note is left. `end` is the end of all due notes if the step
    /// reached it.
    fn end(self, end: Option<&[u8]>) -> Vec<u8> {
        match end {
            Some(end) if self.detour.behind.is_none() => return end.to_vec(),
            Some(_) => self.detour.rounds += 1,
            None => {}
        }
        if self.detour.rounds == ROUNDS {
            *self.detour = Detour::default();
        }
        self.swept
    }
}

/// Removes the expired key of a note. Returns false if the key is unreadable.
fn expire(access: &Access<'_>, note: &[u8], swept: &mut Swept) -> Result<bool, Fault> {
    let Some((at, key)) = keys::split_expiry(note) else { return Ok(false) };
    // Locked without counting a write: for a watching client the key changed when it expired, and
    // not when it is swept.
    let _lock = access.database.locks.hold(&[key], &[]);
    let mut batch = Batch::that_makes_room();
    // If the key has a new expiry or none, only the note is outdated.
    let Ok(found) = access.find_any(key) else {
        access.steps.go_on()?;
        return Ok(false);
    };
    let entry = found.filter(|entry| entry.expiry() == Some(at));
    match &entry {
        Some(entry) => {
            Access::remove(&mut batch, key, entry);
            access.database.locks.sweep(key);
        }
        None => batch.delete(note),
    }
    access.write(batch)?;
    swept.expired += u64::from(entry.is_some());
    Ok(true)
}

/// Returns the first names of a range of the store; fewer than [`STEP`] means all of them.
fn some_names(access: &Access<'_>, from: &[u8], to: &[u8]) -> Result<Vec<Box<[u8]>>, Fault> {
    let names = access.names_between(from, to).take(STEP);
    names.map(|name| Ok(name?.0)).collect()
}

/// Returns the smallest key after `name`.
fn behind_name(name: &[u8]) -> Vec<u8> {
    [name, b"\0"].concat()
}
