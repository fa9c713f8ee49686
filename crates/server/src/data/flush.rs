//! Removal of all keys, in steps, so that other commands run in between.
//!
//! Each key is removed as by `DEL`, with its lock held. A key that is written meanwhile may be
//! removed or stay. The parts of collections are left to the sweeper. The removals are synced now
//! and then because they are in the log before writes that other clients wait for.

use super::access::Access;
use super::batch::Batch;
use super::keys::{self, Space};
use super::records::Entry;
use crate::fault::Fault;

/// Keys locked at a time: at most about a millisecond of work.
const STEP: usize = 252;
/// Steps per sync.
const STEPS: u32 = 8;

/// Removes the names of a step.
type Remove<'a> = dyn Fn(&[Box<[u8]>]) -> Result<(), Fault> + 'a;

impl Access<'_> {
    /// Removes all keys that exist when it begins, and the expiry notes of removed keys.
    pub(crate) fn remove_all(&self) -> Result<(), Fault> {
        self.in_steps(Space::String, &|names| self.remove_strings(names))?;
        self.in_steps(Space::Head, &|names| self.remove_collections(names))?;
        self.in_steps(Space::Expiry, &|notes| self.remove_notes(notes))
    }

    /// Passes all names of a space to `remove`, in steps.
    fn in_steps(&self, space: Space, remove: &Remove<'_>) -> Result<(), Fault> {
        let (from, to) = keys::all(space);
        let mut names = self.names_between(&from, &to);
        for steps in 1_u32.. {
            let step = names.by_ref().take(STEP).map(|name| Ok(name?.0));
            let step = step.collect::<Result<Vec<_>, levelhead::Error>>()?;
            remove(&step)?;
            self.steps.take(step.len())?;
            if step.len() < STEP {
                break;
            }
            if steps % STEPS == 0 {
                self.database.store.sync()?;
            }
        }
        Ok(())
    }

    /// The index knows whether a key exists; no value is read.
    fn remove_strings(&self, names: &[Box<[u8]>]) -> Result<(), Fault> {
        let keys: Vec<&[u8]> = names.iter().map(|name| &name[1..]).collect();
        let _locks = self.lock_several(&keys);
        let mut batch = Batch::that_makes_room();
        for name in names {
            if self.is_there(name)? {
                batch.delete(name);
                batch.keys -= 1;
            }
        }
        self.write(batch)
    }

    fn remove_collections(&self, names: &[Box<[u8]>]) -> Result<(), Fault> {
        let keys: Vec<&[u8]> = names.iter().map(|name| &name[1..]).collect();
        let _locks = self.lock_several(&keys);
        let mut batch = Batch::that_makes_room();
        for key in keys {
            if let Some(head) = self.find_head(key)? {
                Self::remove(&mut batch, key, &Entry::Head(head));
            }
        }
        self.write(batch)
    }

    /// Removes expiry notes whose keys do not exist.
    fn remove_notes(&self, notes: &[Box<[u8]>]) -> Result<(), Fault> {
        let damaged = || Fault::error("damaged: a time");
        let keys = notes.iter().map(|note| Some(keys::split_expiry(note)?.1));
        let keys: Vec<&[u8]> = keys.collect::<Option<_>>().ok_or_else(damaged)?;
        let _locks = self.lock_several(&keys);
        let mut batch = Batch::that_makes_room();
        for (note, key) in notes.iter().zip(keys) {
            if !self.is_there(&keys::string(key))? && !self.is_there(&keys::head(key))? {
                batch.delete(note);
            }
        }
        self.write(batch)
    }
}
