//! What has expired goes, and so do the parts of collections that were dropped. Whoever reads does not see them meanwhile.
//!
//! Each step is short, and goes on behind the last key of the one before: what was deleted is still in the store, and would be stepped over again
//! and again. How far notes were swept their [`Frontier`](super::frontier::Frontier) knows, how far the parts of a collection the [`Sweeper`]. Both
//! are in memory alone. After a restart the first step comes to what is still there, and steps over what went before once.

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

/// Who sweeps a database.
#[derive(Default)]
pub(crate) struct Sweeper {
    /// The key of the store up to which the parts of a dropped collection have gone. Nobody gives it any more.
    behind: Option<(CollectionId, Vec<u8>)>,
}

impl Sweeper {
    /// Sweeps some keys that have expired, and some parts.
    pub(crate) fn step(&mut self, database: &Database) -> (Swept, Result<(), Fault>) {
        let access = Access { durability: Durability::None, ..database.access() };
        let mut swept = Swept::default();
        let outcome = sweep_expired(&access, &mut swept);
        let outcome = outcome.and(self.sweep_dropped(&access, &mut swept));
        (swept, outcome)
    }

    fn sweep_dropped(&mut self, access: &Access<'_>, swept: &mut Swept) -> Result<(), Fault> {
        let frontier = &access.database.dropped;
        if frontier.is_at_end() {
            return Ok(());
        }
        let (mut behind, (_, end)) = (frontier.begin(), keys::all(Space::Dropped));
        let notes = some_names(access, &behind, &end)?;
        let are_all = notes.len() < STEP;
        let mut left = STEP;
        let mut sweep = |note: &[u8]| {
            if left == 0 {
                return Ok(false);
            }
            let id = keys::split_dropped(note).ok_or_else(|| Fault::error("damaged: a note"))?;
            if !self.sweep_parts(access, id, &mut left, swept)? {
                return Ok(false);
            }
            let mut batch = Batch::default();
            batch.delete(note);
            access.write(batch)?;
            left = left.saturating_sub(1);
            Ok(true)
        };
        let mut outcome = Ok(true);
        for note in &notes {
            outcome = sweep(note);
            if outcome != Ok(true) {
                break;
            }
            behind = behind_name(note);
        }
        let is_done = are_all && outcome == Ok(true);
        frontier.advance(if is_done { &end } else { &behind });
        swept.is_unfinished |= !is_done;
        outcome.map(|_| ())
    }

    /// Sweeps up to `left` parts of a collection. False if there are more.
    fn sweep_parts(
        &mut self,
        access: &Access<'_>,
        id: CollectionId,
        left: &mut usize,
        swept: &mut Swept,
    ) -> Result<bool, Fault> {
        for space in [Space::Field, Space::Member, Space::Score] {
            let (first, end) = keys::parts(space, id);
            let behind = self.behind.as_ref().filter(|(whose, _)| *whose == id);
            let from = behind.map_or(&first, |(_, behind)| behind.max(&first));
            let mut parts = some_names(access, from, &end)?;
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
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn sweep_expired(access: &Access<'_>, swept: &mut Swept) -> Result<(), Fault> {
    let frontier = &access.database.expiring;
    let (mut behind, end) = (frontier.begin(), keys::expiry(access.now.saturating_add(1), b""));
    let notes = some_names(access, &behind, &end)?;
    let mut outcome = Ok(());
    for note in &notes {
        outcome = expire(access, note, swept);
        if outcome.is_err() {
            break;
        }
        behind = behind_name(note);
    }
    let is_done = notes.len() < STEP && outcome.is_ok();
    frontier.advance(if is_done { &end } else { &behind });
    swept.is_unfinished |= !is_done;
    outcome
}

/// Removes the key of a note whose time has passed.
fn expire(access: &Access<'_>, note: &[u8], swept: &mut Swept) -> Result<(), Fault> {
    let (at, key) = keys::split_expiry(note).ok_or_else(|| Fault::error("damaged: a time"))?;
    // Held, and counted apart: for who watches it, a key has changed when its time has come, and not when it is swept.
    let _lock = access.database.locks.hold(&[key], &[]);
    let mut batch = Batch::that_makes_room();
    // The key may have been given another time, or none: then only the note is old.
    let entry = access.find_any(key)?.filter(|entry| entry.expiry() == Some(at));
    match &entry {
        Some(entry) => {
            Access::remove(&mut batch, key, entry);
            access.database.locks.sweep(key);
        }
        None => batch.delete(note),
    }
    access.write(batch)?;
    swept.expired += u64::from(entry.is_some());
    Ok(())
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
