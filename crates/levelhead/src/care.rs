//! Looking after a store: checking all of it, copying it as it is at one instant, saving what is left of a damaged one.
//!
//! All three walk over the pairs in key order, by an iterator of one instant: each page of the index and each value is read and
//! checked against its checksum, and each value against the key that leads to it. Log and manifest are checked when a store is opened. What
//! nothing leads to (garbage, room) is not looked at. Of several directories parity is checked besides, where it is of pages that are in use (`parity.rs`).

use std::path::{Path, PathBuf};

use crate::directory;
use crate::error::Error;
use crate::options::{Durability, Options, Windows};
use crate::reading::{Beginning, Instant, Limits};
use crate::salvage::{Salvaged, salvage};
use crate::store::Store;

/// What a copy of a store is made with. Windows are kept on several directories; a copy has one.
pub(crate) fn for_copy(options: &Options) -> Options {
    Options { create_if_missing: true, windows: Windows::Off, ..options.clone() }
}

/// A place that is damaged, and the keys that may be lost by it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// What is wrong: an [`Error::Damaged`] with file and offset.
    pub error: Error,
    /// The last key before it that can be read; nothing if there is none.
    pub after: Option<Box<[u8]>>,
    /// The first key behind it that can be read; nothing if none is.
    pub before: Option<Box<[u8]>>,
    /// Whether no pair is lost by it, as others have it still: parity that does not agree with the data, or a page that it stands in for. Before another directory is
    /// lost, it had better be copied.
    pub is_redundancy: bool,
}

/// What a walk over all pairs came to.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Pairs that can be read.
    pub pairs: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// Of a store over several directories: stripes of which all chunks were read and compared.
    pub stripes: u64,
    /// Stripes of which that could not be done, because a directory has not all of them, or they were being written.
    pub unchecked_stripes: u64,
    /// What is damaged, in key order, and then redundancy; in the order of places if [`Self::salvaged`] is there.
    pub findings: Vec<Finding>,
    /// Of a store that did not open: what cannot be known of what was saved.
    pub salvaged: Option<Salvaged>,
}

/// What is done with a pair.
type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> Result<(), Error> + 'a;

/// Damage in a row, with no pair between, after which a walk gives up: it does not come past a page of the index.
const MOST_IN_A_ROW: u32 = 1_000;

impl Store {
    /// Reads and checks every pair as the store is now, while it goes on working. `progress` hears the pairs read so far, every thousand.
    ///
    /// Of a store over three directories and more it reads every stripe that is in use from all of them and says where parity does not agree with the data, in
    /// which file; it changes nothing. What is in the log and the manifest alone is not compared.
    ///
    /// What is damaged is in the report; where a page of the index is, all keys behind it count as lost.
    ///
    /// # Errors
    /// What keeps it from going on that is no damage: [`Error::TooOld`] if the store could not keep the instant, say.
    pub fn verify(&self, mut progress: impl FnMut(u64)) -> Result<Report, Error> {
        let mut report = self.walk(&mut progress, &mut |_, _| Ok(()))?;
        self.check_redundancy(&mut report);
        Ok(report)
    }

    /// Copies the store, as it is now, to a store of its own in `directory`, which is made and must not hold one. The copy is durable when this returns.
    ///
    /// Its size is that of the pairs, not of what the store has written. It is made with `options`, whose `capacity_bytes` have to
    /// hold them.
    ///
    /// # Errors
    /// [`Error::Damaged`] if a pair cannot be read: a checkpoint has all of them. [`Error::TooOld`] as in [`Self::verify`]. [`Error::Invalid`] if there is a store already. A copy that was not
    /// finished stays, and is to be deleted.
    pub fn checkpoint(
        &self,
        directory: impl AsRef<Path>,
        options: &Options,
        mut progress: impl FnMut(u64),
    ) -> Result<Report, Error> {
        let report = self.copy(directory.as_ref(), options, &mut progress)?;
        match report.findings.first() {
            Some(finding) => Err(finding.error.clone()),
            None => Ok(report),
        }
    }

    fn copy(
        &self,
        directory: &Path,
        options: &Options,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Report, Error> {
        check_holds_none(directory)?;
        let copy = Self::open(directory, &for_copy(options))?;
        let report =
            self.walk(progress, &mut |key, value| copy.put_with(key, value, Durability::None))?;
        copy.close()?;
        Ok(report)
    }

    /// Hands every pair that can be read to `visit`.
    fn walk(&self, progress: &mut dyn FnMut(u64), visit: &mut Visit<'_>) -> Result<Report, Error> {
        let number = self.begin_range(Instant::Present, &Limits::default())?;
        let walked = self.walk_on(number, progress, visit);
        self.end_ranges(&[number]);
        walked
    }

    fn walk_on(
        &self,
        number: u64,
        progress: &mut dyn FnMut(u64),
        visit: &mut Visit<'_>,
    ) -> Result<Report, Error> {
        let mut report = Report::default();
        let (mut last, mut open, mut in_a_row) = (None::<Box<[u8]>>, 0, 0);
        let mut from = Some(Beginning::Key(Box::from(&[0][..])));
        loop {
            // One at a time: an error is then of the pair behind the last one.
            match self.next_of_range(number, from.take(), 1) {
                Ok(pairs) => {
                    let Some((key, value)) = pairs.into_iter().next() else { break };
                    let of_gap = report.findings.iter_mut().skip(open);
                    of_gap.for_each(|finding| finding.before = Some(key.clone()));
                    (open, in_a_row) = (report.findings.len(), 0);
                    visit(&key, &value)?;
                    report.pairs += 1;
                    report.bytes += (key.len() + value.len()) as u64;
                    if report.pairs.is_multiple_of(1_000) {
                        progress(report.pairs);
                    }
                    last = Some(key);
                }
                Err(error @ Error::Damaged { .. }) if in_a_row < MOST_IN_A_ROW => {
                    in_a_row += 1;
                    let is_new = report.findings.last().is_none_or(|finding| {
                        finding.after != last || finding.error.to_string() != error.to_string()
                    });
                    if is_new {
                        let (after, before) = (last.clone(), None);
                        report.findings.push(Finding {
                            error,
                            after,
                            before,
                            is_redundancy: false,
                        });
                    }
                }
                Err(Error::Damaged { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        progress(report.pairs);
        Ok(report)
    }
}

/// A new store is made where none is.
fn check_holds_none(directory: &Path) -> Result<(), Error> {
    if directory::read(directory)?.is_none() {
        return Ok(());
    }
    let name = directory.display();
    Err(Error::Invalid(format!("{name} holds a store; name another directory")))
}

/// Saves what can be read of the store in `directories` to a new one in `into`, and says what cannot.
///
/// A store that opens is copied pair by pair as its index leads to them; nothing of it is written over that is still of use. Of one that does not open, because its manifest,
/// its log or a `LEVELHEAD` is damaged, all pages of its files are read, and of each key the newest version is taken that a whole page has: [`Report::salvaged`]
/// says so, and what nobody can know then. Nothing is written to it. What of `LEVELHEAD` is not there follows from the pages. Keep the damaged
/// store until the report was read.
///
/// Memory for a store that does not open: its keys, some 120 bytes for each of them, and its manifest. Its files are read three times.
///
/// # Errors
/// [`Error::Damaged`] or [`Error::Missing`] if there is nothing of a store in `directories`; [`Error::InUse`]; what [`Store::checkpoint`] says of the new one.
pub fn repair(
    directories: &[impl AsRef<Path>],
    into: impl AsRef<Path>,
    options: &Options,
    mut progress: impl FnMut(u64),
) -> Result<Report, Error> {
    let old = Options { create_if_missing: false, ..options.clone() };
    let paths: Vec<PathBuf> = directories.iter().map(|path| path.as_ref().to_owned()).collect();
    check_holds_none(into.as_ref())?;
    match Store::open_over(&paths, &old) {
        Ok(store) => store.copy(into.as_ref(), options, &mut progress),
        Err(why @ (Error::Damaged { .. } | Error::Missing(_))) => {
            salvage(&paths, into.as_ref(), options, why, &mut progress)
        }
        Err(other) => Err(other),
    }
}
