//! Which store a command is for, and how it is opened.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use levelhead::{Durability, Error, Options, Store};

use crate::{output, values};

#[derive(Args)]
pub(crate) struct Place {
    /// Directory of the store. Given three times or more, the store is over these directories, in this order, and any one of
    /// them may be lost
    #[arg(long, visible_alias = "db", value_name = "DIR", required = true)]
    store: Vec<PathBuf>,
    /// Memory for the store's index and caches
    #[arg(long, default_value = "256MiB", value_parser = values::bytes(1 << 20..=1 << 45))]
    memory: u64,
    /// Memory for writes before they are flushed; twice that at most. A small store over several directories has room for
    /// a small one only
    #[arg(long, default_value = "32MiB", value_parser = values::bytes(1 << 20..=1 << 30))]
    memtable: u64,
}

/// What a store that is made anew is like.
#[derive(Args)]
pub(crate) struct NewStore {
    /// Size of each of the store's files, at most, if the store is made: room is taken as it is needed
    #[arg(long, default_value = "16GiB", value_parser = values::bytes(64 << 20..=1 << 50))]
    capacity: u64,
}

impl Place {
    /// The store's directories.
    pub(crate) fn directories(&self) -> &[PathBuf] {
        &self.store
    }

    fn options(&self) -> Options {
        Options {
            create_if_missing: false,
            memory_bytes: self.memory,
            memtable_bytes: self.memtable,
            ..Options::default()
        }
    }

    /// What a new store beside it is made with.
    pub(super) fn options_of_new(&self, new: &NewStore) -> Options {
        Options { create_if_missing: true, capacity_bytes: new.capacity, ..self.options() }
    }

    /// The store, which has to be there.
    pub(crate) fn open(&self) -> anyhow::Result<Store> {
        match Store::open_over(&self.store, &self.options()) {
            Err(Error::Missing(_)) if matches!(Store::is_in(&self.store), Ok(false)) => {
                Err(anyhow!("{self} has no store: `levelhead put` and `levelhead load` make one"))
            }
            opened => Ok(opened?),
        }
    }

    /// The store; if there is none, a new one, which is said.
    pub(crate) fn open_or_make(&self, new: &NewStore) -> anyhow::Result<Store> {
        let is_new = !Store::is_in(&self.store)?;
        let options =
            Options { create_if_missing: is_new, capacity_bytes: new.capacity, ..self.options() };
        let store = Store::open_over(&self.store, &options)?;
        if is_new {
            output::say(&format!("made a new store in {self}"));
        }
        Ok(store)
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let paths: Vec<String> = self.store.iter().map(|path| path.display().to_string()).collect();
        f.write_str(&paths.join(", "))
    }
}

/// When a write is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum DurabilityArgument {
    /// When it is durable, by itself
    Each,
    /// When it is durable, together with what comes meanwhile
    Group,
    /// At once; it is written a millisecond later
    Interval,
    /// At once; it is written with its memtable
    None,
}

impl From<DurabilityArgument> for Durability {
    fn from(argument: DurabilityArgument) -> Self {
        match argument {
            DurabilityArgument::Each => Self::Each,
            DurabilityArgument::Group => Self::Group,
            DurabilityArgument::Interval => Self::Interval,
            DurabilityArgument::None => Self::None,
        }
    }
}
