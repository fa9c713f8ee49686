//! The store that a command works on, and how it is opened.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use levelhead::{DirectoryState, Error, Options, Store, Windows};

use super::windows::{WindowsArguments, say_if_refused};
use crate::{output, values};

#[derive(Args)]
pub(crate) struct Place {
    /// Directory of the store
    ///
    /// Given three times or more, the store is over these directories, in this order, and survives
    /// the loss of any one of them.
    #[arg(long, visible_alias = "db", value_name = "DIR", required = true)]
    store: Vec<PathBuf>,
    /// Memory for the store's index and caches
    #[arg(long, default_value = "256MiB", value_parser = values::bytes(1 << 20..=1 << 45))]
    memory: u64,
    /// Size of the memtable: memory for writes before they are flushed [default: a 128th of the
    /// store's files, 32MiB at most]
    ///
    /// The store uses twice that at most. Its files keep space free for some memtables, so a small
    /// store with a large memtable is full early.
    #[arg(long, value_name = "BYTES", value_parser = values::bytes(1 << 20..=1 << 30))]
    memtable: Option<u64>,
    /// Open the store without a directory that does not exist, even if the others do not know its
    /// path
    ///
    /// Without this flag a mistyped path is refused.
    #[arg(long)]
    degraded: bool,
    /// Recreate the lost directory after its disk was replaced, and rebuild its data from the
    /// others
    #[arg(long)]
    replace_lost: bool,
    #[command(flatten)]
    windows: WindowsArguments,
}

/// Whether a command writes to the store.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Does {
    /// The command changes nothing.
    Read,
    /// The command may change the store.
    Write,
}

/// Returns an error if `path` exists and is no directory.
pub(super) fn check_is_no_file(path: &Path) -> anyhow::Result<()> {
    if path.exists() && !path.is_dir() {
        return Err(anyhow!("{} is no directory, and a store is one", path.display()));
    }
    Ok(())
}

/// Checks that these can be the directories of a store.
pub(crate) fn check_directories(directories: &[PathBuf]) -> anyhow::Result<()> {
    let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    for (number, path) in directories.iter().enumerate() {
        if directories[..number].iter().any(|other| real(other) == real(path)) {
            return Err(anyhow!("{} is named twice", path.display()));
        }
        check_is_no_file(path)?;
    }
    if let [first, second] = directories {
        let (first, second) = (first.display(), second.display());
        return Err(anyhow!(
            "a store is over one directory, or three and more, of which one may be lost; {first} and {second} are two"
        ));
    }
    Ok(())
}

/// Reports the lost directories of a store that is open without them.
pub(crate) fn say_what_is_lost(store: &Store, does: Does) {
    let so = match does {
        Does::Read => "what it had is rebuilt from the others, to which nothing is written",
        Does::Write => "the store goes on without it, and bears no other loss",
    };
    for directory in store.lost() {
        let is_there = directory.join("data").exists();
        let (how, way_out) = match (is_there, does) {
            (true, _) => ("takes no writes", ""),
            (false, Does::Read) => ("is lost", ""),
            (false, Does::Write) => {
                ("is lost", "; --replace-lost makes it anew there, and fills it")
            }
        };
        output::say(&format!("{} {how}: {so}{way_out}", directory.display()));
    }
    let fills = match does {
        Does::Read => "",
        Does::Write => ", and is being filled; until then no other one may be lost",
    };
    let behind = |(_, how): &(PathBuf, DirectoryState)| *how == DirectoryState::Behind;
    for (directory, _) in store.directories().into_iter().filter(behind) {
        let directory = directory.display();
        output::say(&format!("{directory} lacks what was written without it{fills}"));
    }
}

/// Warns that a store of `levelhead serve` encodes its keys differently. `so` is the consequence.
pub(super) fn say_if_served(store: &Store, so: &str) -> anyhow::Result<()> {
    if server::is_served(store)? {
        output::say(&format!(
            "this store is served to clients of Redis, and its keys have a byte in front that says what they are (docs/serve.md): {so}"
        ));
    }
    Ok(())
}

/// Flags of a store that is created.
#[derive(Args)]
pub(crate) struct NewStore {
    /// Maximum size of each of the store's files; space is allocated as needed [default: unchanged;
    /// 16GiB for a new store]
    ///
    /// A larger size than before lets the store grow.
    #[arg(long, value_name = "BYTES", value_parser = values::bytes(64 << 20..=1 << 50))]
    capacity: Option<u64>,
    /// Allocate all of --capacity on the disk at once
    ///
    /// A full store then accepts deletes even if other programs have filled the disk.
    #[arg(long)]
    preallocate: bool,
    /// Store values up to this many bytes next to their keys in the index; only for a new store
    ///
    /// Range scans and gets of such values read nothing but the index, which is larger by them.
    #[arg(long, value_name = "BYTES", default_value = "0", value_parser = values::bytes(0..=8168))]
    inline_up_to: u64,
    /// Page size of a new store: 4KiB, 8KiB, 16KiB or 32KiB
    ///
    /// A get reads a page. Values of some KiB leave less of a large page empty.
    #[arg(
        long,
        value_name = "BYTES",
        default_value = "4KiB",
        value_parser = values::bytes(4 << 10..=32 << 10)
    )]
    page: u64,
}

impl NewStore {
    fn added_to(&self, mut options: Options) -> Options {
        options.capacity_bytes = self.capacity.unwrap_or(0);
        options.preallocate = self.preallocate;
        options.inline_up_to = u32::try_from(self.inline_up_to).expect("its range is below");
        options.page_bytes = u32::try_from(self.page).expect("its range is below");
        if self.inline_up_to > 0 {
            options.expected_value_bytes = options.inline_up_to;
        }
        options
    }
}

impl Place {
    /// Returns the store's directories.
    pub(crate) fn directories(&self) -> &[PathBuf] {
        &self.store
    }

    fn options(&self) -> Options {
        self.windows.added_to(Options {
            create_if_missing: false,
            degraded: self.degraded,
            replace_lost: self.replace_lost,
            memory_bytes: self.memory,
            memtable_bytes: self.memtable.unwrap_or(Options::default().memtable_bytes),
            ..Options::default()
        })
    }

    /// Returns the options of a new store that is made from this one.
    pub(super) fn options_of_new(&self, new: &NewStore) -> Options {
        // The new store may be over other directories than this one.
        let windows = Windows::Off;
        let options = self.options();
        new.added_to(Options { create_if_missing: true, windows, ..options })
    }

    /// Opens the store; an error if it does not exist.
    pub(crate) fn open(&self, does: Does) -> anyhow::Result<Store> {
        check_directories(&self.store)?;
        let opened = match does {
            Does::Read => Store::open_to_read(&self.store, &self.options()),
            Does::Write => Store::open_over(&self.store, &self.options()),
        };
        match opened {
            Err(Error::Missing(_)) if matches!(Store::is_in(&self.store), Ok(false)) => {
                let has = |name: &str| self.store.iter().any(|place| place.join(name).exists());
                if has("LEVELHEAD") {
                    return Err(anyhow!(
                        "{self} has no store that is whole, but one, or a copy, that was not finished: make it, or run `levelhead repair` or `backup`, again, \
                         and it takes that one's place"
                    ));
                }
                if has("data") {
                    return Err(anyhow!(
                        "{self} has no store that is whole: of one that lost its file LEVELHEAD `levelhead repair` saves what is there"
                    ));
                }
                Err(anyhow!("{self} has no store: `levelhead put` and `levelhead load` make one"))
            }
            opened => {
                let store = opened.map_err(in_words)?;
                say_what_is_lost(&store, does);
                say_if_refused(&store, self.windows.windows.into());
                Ok(store)
            }
        }
    }

    /// Opens the store, or creates it and reports that.
    pub(crate) fn open_or_make(&self, new: &NewStore) -> anyhow::Result<Store> {
        check_directories(&self.store)?;
        let is_new = !Store::is_in(&self.store)?;
        let options = new.added_to(Options { create_if_missing: is_new, ..self.options() });
        let store = Store::open_over(&self.store, &options).map_err(in_words)?;
        if is_new {
            output::say(&format!("made a new store in {self}"));
        }
        say_what_is_lost(&store, Does::Write);
        say_if_refused(&store, self.windows.windows.into());
        Ok(store)
    }
}

/// Explains why a store does not open, with advice for the command line.
fn in_words(error: Error) -> anyhow::Error {
    match error {
        Error::InUse(_) => {
            anyhow!("{error}: `levelhead serve`, perhaps, whose clients may ask it")
        }
        // Closing and reopening the store, as the library advises, has already been done.
        Error::ReadOnly(what) => anyhow!(
            "{what}: commands that only read open it all the same, and `levelhead backup` and `levelhead repair --out` copy what is in it elsewhere"
        ),
        error => error.into(),
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let paths: Vec<String> = self.store.iter().map(|path| path.display().to_string()).collect();
        f.write_str(&paths.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_on_a_disk_that_takes_no_writes_can_be_copied() {
        let words = in_words(Error::ReadOnly("s/data cannot be opened".to_owned())).to_string();
        assert!(
            words.starts_with("s/data cannot be opened: ") && words.contains("repair --out"),
            "{words}"
        );
    }
}
