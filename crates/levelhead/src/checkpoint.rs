//! Checkpoints: a copy of a store as it is at one instant.

use std::path::{Path, PathBuf};

use crate::directory;
use crate::directory::capacity::{most_capacity, of_data};
use crate::error::Error;
use crate::options::{Durability, Options, USUAL_CAPACITY, Windows};
use crate::report::Report;
use crate::root::Root;
use crate::store::Store;

impl Store {
    /// Copies the store as it is now to a new store in `directory`, which is created and must not
    /// hold a store. The copy is durable on return.
    ///
    /// The copy is as large as the pairs, not as the store's files. It is created with `options`.
    /// Their `capacity_bytes` must be enough for the pairs; 0 means the capacity of this store, but
    /// at least 16 GiB. The options for opening existing stores (`read_only`, `replace_lost`) are
    /// ignored. A store that was opened read-only can be copied. Nothing is written to the store's
    /// own directories.
    ///
    /// # Errors
    /// Returns [`Error::Damaged`] if a pair cannot be read, because a checkpoint is complete or
    /// fails; [`Error::TooOld`] as in [`Self::verify`]; and [`Error::Invalid`] if `directory` holds
    /// a store or files that are in the way, or is inside one of the store's own directories, even
    /// a lost one. A copy that was not finished, because of an error or the end of the process, is
    /// not a store: it does not open, and the next store created there replaces it.
    pub fn checkpoint(
        &self,
        directory: impl AsRef<Path>,
        options: &Options,
        mut progress: impl FnMut(u64),
    ) -> Result<Report, Error> {
        let place = self.place();
        let own: Vec<PathBuf> = place.files.iter().map(|file| directory::of_file(file)).collect();
        directory::check_takes_copy(directory.as_ref(), &own)?;
        let copy = Copy::begin(directory.as_ref(), options, self.capacity_of_data())?;
        let report = self.walk(&mut progress, &mut |key, value| copy.put(key, value))?;
        if let Some(finding) = report.findings.first() {
            return Err(finding.error.clone());
        }
        copy.finish()?;
        Ok(report)
    }

    /// Returns the capacity of the store's files in bytes of pages, without parity.
    pub(crate) fn capacity_of_data(&self) -> u64 {
        of_data(self.place().files.len(), self.look(Root::capacity_bytes))
    }
}

/// A copy in progress. It is not a store until it is finished.
pub(crate) struct Copy {
    store: Store,
    directory: PathBuf,
}

impl Copy {
    /// Creates the copy, with a capacity of at least `least` bytes unless the options give one.
    pub(crate) fn begin(directory: &Path, options: &Options, least: u64) -> Result<Self, Error> {
        let options = Options {
            create_if_missing: true,
            read_only: false,
            replace_lost: false,
            capacity_bytes: match options.capacity_bytes {
                0 => least.max(USUAL_CAPACITY).min(most_capacity(1)),
                given => given,
            },
            // Windows need several directories; a copy has one.
            windows: Windows::Off,
            ..options.clone()
        };
        let store = Store::unfinished(directory, &options)?;
        Ok(Self { store, directory: directory.to_owned() })
    }

    pub(crate) fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.store.put_with(key, value, Durability::None)
    }

    /// Makes all pairs durable and marks the copy as complete.
    pub(crate) fn finish(self) -> Result<(), Error> {
        self.store.sync()?;
        directory::finish(&[self.directory])?;
        self.store.close()?;
        Ok(())
    }
}
