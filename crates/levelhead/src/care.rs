//! Care of a store: verifying all of it, copying it as it is at one instant, and repairing a
//! damaged one.
//!
//! All three walk the pairs of one instant in key order. The walk reads each page of the index and
//! each value, and checks them against their checksums, and each value against the key that refers
//! to it. The log and the manifest are checked when the store is opened. Unreferenced space
//! (garbage, free space) is not read. The walk skips a part of the index that cannot be read, and
//! continues with the keys after it. For a store over several directories, the parity of pages in
//! use is checked, too (`parity.rs`).

use std::path::{Path, PathBuf};

use engine::IndexPart;

use crate::directory::{self, growth};
use crate::error::Error;
use crate::options::{Durability, Options, USUAL_CAPACITY, Windows};
use crate::range::{LONGEST, successor};
use crate::reading::{Beginning, Instant, Limits};
use crate::root::Root;
use crate::salvage::{Salvaged, rescue, salvage};
use crate::store::Store;

/// A damaged place, and the keys that it may affect.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// The damage: an [`Error::Damaged`] with file and offset.
    pub error: Error,
    /// The last readable key before the damage; `None` if there is none.
    pub after: Option<Box<[u8]>>,
    /// The first readable key after the damage; `None` if there is none.
    pub before: Option<Box<[u8]>>,
    /// Whether the damage affects redundancy only, so that no pair is lost: parity that does not
    /// agree with the data, or a page that parity can rebuild. Copy the store before another
    /// directory is lost.
    pub is_redundancy: bool,
}

/// The result of a walk over all pairs.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Pairs that can be read.
    pub pairs: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// For a store over several directories: stripes of which all chunks were read and compared.
    pub stripes: u64,
    /// Stripes that could not be compared, because a directory lacks a part of them or because they
    /// were being written.
    pub unchecked_stripes: u64,
    /// The damage found: in key order, followed by damage of redundancy; in order of file position
    /// if [`Self::salvaged`] is set.
    pub findings: Vec<Finding>,
    /// For a repair: pairs that were saved although their part of the index is damaged. They come
    /// from the pages with their values. Deleted keys may be among them, and older values may stand
    /// in for newer ones.
    pub rescued: u64,
    /// Parts of the index that cannot be read.
    pub(crate) unreadable: Vec<IndexPart>,
    /// For a store that did not open: the reason, and the doubts about the saved pairs.
    pub salvaged: Option<Salvaged>,
}

/// The function that receives each pair.
type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> Result<(), Error> + 'a;

/// The progress of [`Store::verify`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verified {
    /// The number of pairs read so far.
    Pairs(u64),
    /// All pairs were read, and the stripes of some extents of the files were compared.
    Stripes {
        /// Extents compared so far.
        parts: u64,
        /// All extents.
        all: u64,
    },
}

/// Consecutive errors, without a readable pair in between, after which a walk ends: it cannot get
/// past damage that it cannot locate.
const MOST_IN_A_ROW: u32 = 1_000;

impl Store {
    /// Reads and checks every pair of the store as it is now. The store can be used meanwhile.
    /// `progress` is called every thousand pairs and, for several directories, after each extent
    /// whose stripes were compared.
    ///
    /// For a store over three or more directories it also reads every stripe in use from all of
    /// them, and reports the file in which parity does not agree with the data. It changes nothing.
    /// Pages of the log and the manifest are not compared.
    ///
    /// Damage is returned in the report; for an unreadable part of the index the report has its key
    /// range.
    ///
    /// # Errors
    /// Returns errors other than damage, such as [`Error::TooOld`] if the store could not keep the
    /// instant.
    pub fn verify(&self, mut progress: impl FnMut(Verified)) -> Result<Report, Error> {
        let of_pairs = &mut |pairs| progress(Verified::Pairs(pairs));
        let mut report = self.walk(of_pairs, &mut |_, _| Ok(()))?;
        self.check_redundancy(&mut report, &mut progress);
        Ok(report)
    }

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
    fn capacity_of_data(&self) -> u64 {
        growth::of_data(self.place().files.len(), self.look(Root::capacity_bytes))
    }

    /// Passes every readable pair to `visit`.
    fn walk(&self, progress: &mut dyn FnMut(u64), visit: &mut Visit<'_>) -> Result<Report, Error> {
        let instant = Begun::new(self, Instant::Present, &Limits::default())?;
        let report = Report::default();
        let mut walk = Walk { store: self, instant: instant.number, report, last: None, open: 0 };
        let mut ahead = vec![Ahead::Keys { from: Box::default(), to: None }];
        while let Some(next) = ahead.pop() {
            match next {
                Ahead::Keys { from, to } => {
                    walk.walk_keys(from, to, &mut ahead, progress, visit)?;
                }
                Ahead::Gap(error, part) => {
                    walk.find(error);
                    walk.report.unreadable.push(part);
                }
            }
        }
        progress(walk.report.pairs);
        Ok(walk.report)
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
                0 => least.max(USUAL_CAPACITY).min(growth::most_capacity(1)),
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

/// An open range. It ends on drop, also if `visit` or `progress` panics: an open range prevents the
/// space that it reads from being reused.
struct Begun<'a> {
    store: &'a Store,
    number: u64,
}

impl<'a> Begun<'a> {
    fn new(store: &'a Store, instant: Instant, limits: &Limits) -> Result<Self, Error> {
        Ok(Self { store, number: store.begin_range(instant, limits)? })
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.store.end_ranges(&[self.number]);
    }
}

/// The remaining work of a walk, in a stack: the next step is last.
enum Ahead {
    /// A range of keys: `from` inclusive, `to` exclusive.
    Keys { from: Box<[u8]>, to: Option<Box<[u8]>> },
    /// A part of the index that cannot be read.
    Gap(Error, IndexPart),
}

/// A walk over all pairs of one instant that continues past damage.
struct Walk<'a> {
    store: &'a Store,
    /// The range whose instant all ranges of this walk share.
    instant: u64,
    report: Report,
    /// The last key that could be read.
    last: Option<Box<[u8]>>,
    /// The number of findings for which the next readable key is known.
    open: usize,
}

impl Walk<'_> {
    /// Walks a range of keys until a damaged part of the index. Pushes the rest onto `ahead`.
    fn walk_keys(
        &mut self,
        from: Box<[u8]>,
        to: Option<Box<[u8]>>,
        ahead: &mut Vec<Ahead>,
        progress: &mut dyn FnMut(u64),
        visit: &mut Visit<'_>,
    ) -> Result<(), Error> {
        let limits = Limits { from: from.clone(), to: to.clone(), ..Limits::default() };
        let begun = Begun::new(self.store, Instant::OfRange(self.instant), &limits)?;
        let ended = self.walk_range(begun.number, &from, progress, visit)?;
        drop(begun);
        let Some((error, part)) = ended else { return Ok(()) };
        // Other levels may have keys between this position and the damaged part.
        let here = self.last.as_deref().map_or_else(Box::default, successor).max(from);
        let is_before_end = |key: &[u8]| to.as_deref().is_none_or(|to| key < to);
        let (first, end) = (part.first.clone(), part.end.clone());
        let has_before = here < first && is_before_end(&first);
        if let Some(end) = end.filter(|end| is_before_end(end)) {
            ahead.push(Ahead::Keys { from: end, to });
        }
        ahead.push(Ahead::Gap(error, part));
        if has_before {
            ahead.push(Ahead::Keys { from: here, to: Some(first) });
        }
        Ok(())
    }

    /// Walks a range until its end or a part of the index that cannot be read.
    fn walk_range(
        &mut self,
        number: u64,
        from: &[u8],
        progress: &mut dyn FnMut(u64),
        visit: &mut Visit<'_>,
    ) -> Result<Option<(Error, IndexPart)>, Error> {
        let first = if from.is_empty() { &[0][..] } else { &from[..from.len().min(LONGEST)] };
        let (mut beginning, mut in_a_row) = (Some(Beginning::Key(first.into())), 0);
        loop {
            // Reads one pair at a time, so that an error belongs to the pair after the last one.
            match self.store.next_of_walk(number, beginning.take()) {
                Ok(None) => return Ok(None),
                // A key of the maximum length has no successor to start at. The range then starts
                // at that key, which is skipped here.
                Ok(Some((key, _))) if *key < *from => {}
                Ok(Some((key, value))) => {
                    visit(&key, &value)?;
                    self.note(key, value.len());
                    in_a_row = 0;
                    if self.report.pairs.is_multiple_of(1_000) {
                        progress(self.report.pairs);
                    }
                }
                Err((error @ Error::Damaged { .. }, Some(part))) if self.is_ahead(&part, from) => {
                    return Ok(Some((error, part)));
                }
                Err((error @ Error::Damaged { .. }, _)) => {
                    in_a_row += 1;
                    if in_a_row > MOST_IN_A_ROW {
                        return Ok(None);
                    }
                    self.find(error);
                }
                Err((error, _)) => return Err(error),
            }
        }
    }

    /// Whether the end of a damaged part is beyond the position of the walk, so that skipping the
    /// part makes progress.
    fn is_ahead(&self, part: &IndexPart, from: &[u8]) -> bool {
        let is_behind =
            |end: &[u8]| end > from && self.last.as_deref().is_none_or(|last| end > last);
        part.end.as_deref().is_none_or(is_behind)
    }

    /// Records a readable pair.
    fn note(&mut self, key: Box<[u8]>, value_bytes: usize) {
        let report = &mut self.report;
        let of_gap = report.findings.iter_mut().skip(self.open);
        of_gap.for_each(|finding| finding.before = Some(key.clone()));
        self.open = report.findings.len();
        report.pairs += 1;
        report.bytes += (key.len() + value_bytes) as u64;
        self.last = Some(key);
    }

    /// Records damage after the last pair. The same damage may be reported again for the next pair.
    fn find(&mut self, error: Error) {
        let after = self.last.clone();
        let is_new = self.report.findings.last().is_none_or(|finding| {
            finding.after != after || finding.error.to_string() != error.to_string()
        });
        if is_new {
            self.report.findings.push(Finding { error, after, before: None, is_redundancy: false });
        }
    }
}

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
