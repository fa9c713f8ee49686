//! All keys go: those of one instant, some at a time, so that others have their turn in between.
//!
//! Each key goes as with `DEL`, with its lock held. One that is written meanwhile goes or stays, whether its turn had come or not. Parts of
//! collections are left to the sweep. What is removed is made durable now and then: it stands in the log before what others wait for.

use levelhead::Error;

use super::batch::Batch;
use super::database::{Access, Entry};
use super::keys::{self, Space};
use crate::fault::Fault;

/// Keys that are locked at a time: a millisecond of work or less.
const STEP: usize = 252;
/// Steps that become durable together.
const STEPS: u32 = 8;
/// How often an instant may be lost before its first step. A store that is full lets go of one soon.
const TRIES: u32 = 100;

/// What is done with the names of a step.
type Remove<'a> = dyn Fn(&[Box<[u8]>]) -> Result<(), Fault> + 'a;

impl Access<'_> {
    /// Removes all keys that are there when it begins, and what notes say of those that are gone.
    pub(crate) fn remove_all(&self) -> Result<(), Fault> {
        self.in_steps(Space::String, &|names| self.remove_strings(names))?;
        self.in_steps(Space::Head, &|names| self.remove_collections(names))?;
        self.in_steps(Space::Expiry, &|notes| self.remove_notes(notes))
    }

    /// Gives `remove` all names of a space. Where the store lets go of the instant it goes on at a later one.
    fn in_steps(&self, space: Space, remove: &Remove<'_>) -> Result<(), Fault> {
        let (mut from, to) = keys::all(space);
        let (mut in_vain, mut steps) = (0, 0);
        let mut names = self.names_between(&from, &to);
        loop {
            let step: Result<Vec<_>, Error> =
                names.by_ref().take(STEP).map(|name| Ok(name?.0)).collect();
            let step = match step {
                Err(Error::TooOld { .. }) if in_vain < TRIES => {
                    in_vain += 1;
                    names = self.names_between(&from, &to);
                    continue;
                }
                step => step?,
            };
            remove(&step)?;
            self.steps.take(step.len())?;
            let Some(last) = step.last().filter(|_| step.len() == STEP) else { return Ok(()) };
            from = [last, &b"\0"[..]].concat();
            (in_vain, steps) = (0, steps + 1);
            if steps % STEPS == 0 {
                self.database.store.sync()?;
            }
        }
    }

    /// Whether they are there the index knows; no value is read.
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

    /// Notes of when keys expire that are not there any more.
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
