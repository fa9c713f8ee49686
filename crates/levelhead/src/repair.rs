//! Repair of a damaged store: its readable pairs are saved to a new store.

mod infer_identity;
mod salvage;

use std::path::{Path, PathBuf};

use crate::checkpoint::Copy;
use crate::directory;
use crate::error::Error;
use crate::options::Options;
use crate::report::Report;
use crate::store::Store;
use salvage::{rescue, salvage};

/// Converts options for a new store to those for opening the damaged one: read-only, with the
/// settings that the store itself records.
fn only_read(options: &Options) -> Options {
    let usual = Options::default();
    Options {
        create_if_missing: false,
        read_only: true,
        replace_lost: false,
        preallocate: false,
        capacity_bytes: 0,
        memtable_bytes: usual.memtable_bytes,
        inline_up_to: usual.inline_up_to,
        page_bytes: usual.page_bytes,
        ..options.clone()
    }
}

/// Saves all readable pairs of the store in `directories` to a new store in `into`, and reports the
/// damage.
///
/// If the store opens, it is opened read-only and copied pair by pair by its index. Where a part of
/// the index cannot be read, the pairs in its key range are taken from all pages with values
/// ([`Report::rescued`]).
///
/// If the store does not open, because its manifest, its log or a `LEVELHEAD` is damaged or because
/// a directory fails, all pages of its files are read, and of each key the newest version in an
/// intact page is taken; [`Report::salvaged`] has the reason and the doubts that remain.
/// Directories that cannot be opened are left out. Pages are used even where the store itself would
/// not rely on them, because each page identifies itself. A missing `LEVELHEAD` is reconstructed
/// from the pages. Salvage reads the files three times, and needs memory for the keys, about 120
/// bytes each, and for the manifest.
///
/// In both cases nothing is written to the damaged store, whatever `options` contain; they are the
/// options of the new store (as in [`Store::checkpoint`]). Keep the damaged store until you have
/// read the report.
///
/// # Errors
/// Returns [`Error::Damaged`] or [`Error::Missing`] if `directories` contain nothing of a store;
/// [`Error::InUse`] if the store is open; [`Error::Invalid`] if `into` is inside one of
/// `directories`; and the errors of [`Store::checkpoint`] for the new store.
pub fn repair(
    directories: &[impl AsRef<Path>],
    into: impl AsRef<Path>,
    options: &Options,
    mut progress: impl FnMut(u64),
) -> Result<Report, Error> {
    let paths: Vec<PathBuf> = directories.iter().map(|path| path.as_ref().to_owned()).collect();
    directory::check_takes_copy(into.as_ref(), &paths)?;
    match Store::open_over(&paths, &only_read(options)) {
        Ok(store) => {
            let copy = Copy::begin(into.as_ref(), options, store.capacity_of_data())?;
            let mut report = store.walk(&mut progress, &mut |key, value| copy.put(key, value))?;
            drop(store);
            if !report.unreadable.is_empty() {
                rescue(&paths, &copy, options, &mut report, &mut progress)?;
            }
            copy.finish()?;
            Ok(report)
        }
        // The damaged store needs neither writes nor all of its directories for this.
        Err(
            why @ (Error::Damaged { .. }
            | Error::Missing(_)
            | Error::ReadOnly(_)
            | Error::Full(_)
            | Error::System { .. }),
        ) => salvage(&paths, into.as_ref(), options, why, &mut progress),
        Err(other) => Err(other),
    }
}
