//! What has expired goes, and so do the parts of collections that were dropped. Whoever reads does not see them meanwhile.
//!
//! Each step is short, and goes on behind the last key of the one before: what was deleted is still in the store, and would be stepped over again
//! and again. How far notes were swept their [`Frontier`](super::frontier::Frontier) knows, how far the parts of a collection the [`Sweeper`]. Both
//! are in memory alone. After a restart the first step comes to what is still there, and steps over what went before once.
//!
//! A key that cannot be read stays, and so does the frontier before it: readers compare keys with its note, and are told. Everything behind it goes.

use levelhead::Durability;

use super::batch::Batch;
use super::database::{Access, Database};
use super::keys::{self, CollectionId, Space};
use crate::fault::Fault;

/// Notes or parts of a step: as many as a range gives in six fetches, each twice as long as the one before.
const STEP: usize = 252;

/// What a step has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Swept {
    pub expired: u64,
    pub parts: u64,
    /// Whether there is more to do.
    pub is_unfinished: bool,
}

/// Rounds that have come to the end before what could not be read is tried again, with all that was deleted behind it: about a minute.
const ROUNDS: u32 = 600;

/// Who sweeps a database.
#[derive(Default)]
pub(crate) struct Sweeper {
    expiring: Detour,
    dropped: Detour,
    /// The key of the store up to which the parts of a dropped collection have gone. Nobody gives it any more.
    behind: Option<(CollectionId, Vec<u8>)>,
}

impl Sweeper {
    /// Sweeps some keys that have expired, and some parts.
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
        // Apart from the sweeper while that sweeps parts.
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

    /// Sweeps what a note says was dropped. Whether it is gone, or cannot be read; nothing, if there is more of it.
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

    /// Sweeps up to `left` parts of a collection.
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

/// How far the parts of a collection have gone.
enum Parts {
    Gone,
    More,
    Unreadable,
}

/// The way of the sweeper past notes that stay, because something cannot be read.
#[derive(Default)]
struct Detour {
    /// Where it goes on; nothing, as long as all went.
    behind: Option<Vec<u8>>,
    /// Rounds that have come to the end since.
    rounds: u32,
}

/// A step through notes.
struct Round<'a> {
    detour: &'a mut Detour,
    /// None stands before it.
    swept: Vec<u8>,
}

impl<'a> Round<'a> {
    fn begin(detour: &'a mut Detour, swept: Vec<u8>) -> Self {
        Self { detour, swept }
    }

    /// Where it begins.
    fn from(&self) -> Vec<u8> {
        let detour = self.detour.behind.as_ref().filter(|behind| **behind > self.swept);
        detour.unwrap_or(&self.swept).clone()
    }

    /// It is done with a note, which is gone, or stays.
    fn pass(&mut self, note: &[u8], is_gone: bool) {
        let behind = behind_name(note);
        if !is_gone || self.detour.behind.is_some() {
            self.detour.behind = Some(behind);
        } else {
            self.swept = behind;
        }
    }

    /// Up to where none stands, as it has come to the `end` of all that are due, or not.
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

/// Removes the key of a note whose time has passed. False if it cannot be read.
fn expire(access: &Access<'_>, note: &[u8], swept: &mut Swept) -> Result<bool, Fault> {
    let Some((at, key)) = keys::split_expiry(note) else { return Ok(false) };
    // Held, and counted apart: for who watches it, a key has changed when its time has come, and not when it is swept.
    let _lock = access.database.locks.hold(&[key], &[]);
    let mut batch = Batch::that_makes_room();
    // The key may have been given another time, or none: then only the note is old.
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

/// The first names of a stretch of the store; all of it, if they are less than [`STEP`].
fn some_names(access: &Access<'_>, from: &[u8], to: &[u8]) -> Result<Vec<Box<[u8]>>, Fault> {
    let names = access.names_between(from, to).take(STEP);
    names.map(|name| Ok(name?.0)).collect()
}

/// Where the names behind one begin.
fn behind_name(name: &[u8]) -> Vec<u8> {
    [name, b"\0"].concat()
}
