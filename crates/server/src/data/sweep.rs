//! What has expired goes, and so do the parts of collections that were dropped. Whoever reads does not see them meanwhile.

use std::sync::atomic::Ordering;

use levelhead::Durability;

use super::batch::Batch;
use super::database::{Access, Database};
use super::keys::{self, CollectionId, Space};
use crate::fault::Fault;

/// Parts of collections that are swept with one write.
const PARTS: usize = 256;

/// What a sweep has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Swept {
    pub expired: u64,
    pub parts: u64,
    /// Whether there is more to do.
    pub is_unfinished: bool,
}

impl Database {
    /// Sweeps some `most` keys or parts.
    pub(crate) fn sweep(&self, most: u64) -> Result<Swept, Fault> {
        let access = Access { durability: Durability::None, ..self.access() };
        let mut swept = Swept::default();
        sweep_expired(&access, most, &mut swept)?;
        if self.has_dropped.swap(false, Ordering::SeqCst) {
            let outcome = sweep_dropped(&access, most, &mut swept);
            // Also after an error: a store that is full may have let go of the instant that is read.
            swept.is_unfinished |= outcome != Ok(true);
            self.has_dropped.fetch_or(outcome != Ok(true), Ordering::SeqCst);
            outcome?;
        }
        Ok(swept)
    }
}

fn sweep_expired(access: &Access<'_>, most: u64, swept: &mut Swept) -> Result<(), Fault> {
    let (from, _) = keys::all(Space::Expiry);
    let to = keys::expiry(access.now.saturating_add(1), b"");
    for pair in access.names_between(&from, &to) {
        let (note, _) = pair?;
        if swept.expired == most {
            swept.is_unfinished = true;
            break;
        }
        let (at, key) = keys::split_expiry(&note).ok_or_else(|| Fault::error("damaged: a time"))?;
        let _lock = access.lock(key);
        let mut batch = Batch::that_makes_room();
        // The key may have been given another time, or none: then only the note is old.
        if let Some(entry) = access.find_any(key)?
            && entry.expiry() == Some(at)
        {
            access.remove(&mut batch, key, &entry);
            swept.expired += 1;
        } else {
            batch.delete(&note);
        }
        access.write(batch)?;
    }
    Ok(())
}

/// False if there is more to do.
fn sweep_dropped(access: &Access<'_>, most: u64, swept: &mut Swept) -> Result<bool, Fault> {
    let (from, to) = keys::all(Space::Dropped);
    for pair in access.names_between(&from, &to) {
        let (note, _) = pair?;
        let id = keys::split_dropped(&note).ok_or_else(|| Fault::error("damaged: a note"))?;
        if !sweep_parts(access, id, most, swept)? {
            return Ok(false);
        }
        let mut batch = Batch::default();
        batch.delete(&note);
        access.write(batch)?;
    }
    Ok(true)
}

fn sweep_parts(
    access: &Access<'_>,
    id: CollectionId,
    most: u64,
    swept: &mut Swept,
) -> Result<bool, Fault> {
    for space in [Space::Field, Space::Member, Space::Score] {
        let (from, to) = keys::parts(space, id);
        let mut batch = Batch::default();
        for pair in access.names_between(&from, &to) {
            batch.delete(&pair?.0);
            swept.parts += 1;
            if swept.parts >= most {
                access.write(batch)?;
                return Ok(false);
            }
            if batch.len() == PARTS {
                access.write(std::mem::take(&mut batch))?;
            }
        }
        access.write(batch)?;
    }
    Ok(true)
}
