//! Looking after a store: checking all of it, copying it as it is at one instant, saving what is left of a damaged one.
//!
//! All three walk over the pairs in key order, by an iterator of one instant: each page of the index and each value is read and
//! checked against its checksum, and each value against the key that leads to it. Log and manifest are checked when a store is opened. What
//! nothing leads to (garbage, room) is not looked at. A part of the index that cannot be read is walked around: keys before and behind it are read. Of several directories parity is checked besides, where it is of pages that are in use (`parity.rs`).

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
    /// Of a repair: pairs among them whose part of the index is damaged. They were taken from the pages with their values: keys that were deleted may be back among them,
    /// and older values may stand for newer ones.
    pub rescued: u64,
    /// Parts of the index that cannot be read.
    pub(crate) unreadable: Vec<IndexPart>,
    /// Of a store that did not open: what cannot be known of what was saved.
    pub salvaged: Option<Salvaged>,
}

/// What is done with a pair.
type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> Result<(), Error> + 'a;

/// How far [`Store::verify`] has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verified {
    /// So many pairs were read.
    Pairs(u64),
    /// All pairs were, and of so many parts of the files, of all that there are, stripes were compared.
    Stripes {
        /// Parts so far.
        parts: u64,
        /// All of them.
        all: u64,
    },
}

/// Damage in a row, with no pair between, after which a walk gives up: it does not come past what it cannot place.
const MOST_IN_A_ROW: u32 = 1_000;

impl Store {
    /// Reads and checks every pair as the store is now, while it goes on working. `progress` hears how far it is, every thousand pairs and, of several directories, at
    /// each part of the files whose stripes are compared.
    ///
    /// Of a store over three directories and more it reads every stripe that is in use from all of them and says where parity does not agree with the data, in
    /// which file; it changes nothing. What is in the log and the manifest alone is not compared.
    ///
    /// What is damaged is in the report; of a part of the index that cannot be read, its keys.
    ///
    /// # Errors
    /// What keeps it from going on that is no damage: [`Error::TooOld`] if the store could not keep the instant, say.
    pub fn verify(&self, mut progress: impl FnMut(Verified)) -> Result<Report, Error> {
        let of_pairs = &mut |pairs| progress(Verified::Pairs(pairs));
        let mut report = self.walk(of_pairs, &mut |_, _| Ok(()))?;
        self.check_redundancy(&mut report, &mut progress);
        Ok(report)
    }

    /// Copies the store, as it is now, to a store of its own in `directory`, which is made and must not hold one. The copy is durable when this returns.
    ///
    /// Its size is that of the pairs, not of what the store has written. It is made with `options`, whose `capacity_bytes` have to
    /// hold them; 0: what this store can hold, and 16 GiB at least. What they say of opening a store that is there (`read_only`, `replace_lost`) does not count. A store that was opened
    /// to be read only is copied as well. Nothing is written into the store's own directories.
    ///
    /// # Errors
    /// [`Error::Damaged`] if a pair cannot be read: a checkpoint has all of them. [`Error::TooOld`] as in [`Self::verify`]. [`Error::Invalid`] if there is a store already, or something in the way
    /// of one, and if it is within one of the store's own directories, also one that is lost. A copy that was not
    /// finished, because of an error or because the process was ended, is no store: it does not open, and the next store made there takes its place.
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

    /// Bytes of pages that its files may have, beside parity.
    fn capacity_of_data(&self) -> u64 {
        growth::of_data(self.place().files.len(), self.look(Root::capacity_bytes))
    }

    /// Hands every pair that can be read to `visit`.
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

/// A copy that is being made: no store before it is finished.
pub(crate) struct Copy {
    store: Store,
    directory: PathBuf,
}

impl Copy {
    /// Makes it, of `least` bytes at least unless it is said how large it is to be.
    pub(crate) fn begin(directory: &Path, options: &Options, least: u64) -> Result<Self, Error> {
        let options = Options {
            create_if_missing: true,
            read_only: false,
            replace_lost: false,
            capacity_bytes: match options.capacity_bytes {
                0 => least.max(USUAL_CAPACITY).min(growth::most_capacity(1)),
                given => given,
            },
            // Windows are kept on several directories; a copy has one.
            windows: Windows::Off,
            simulated_drive: None,
            ..options.clone()
        };
        let store = Store::unfinished(directory, &options)?;
        Ok(Self { store, directory: directory.to_owned() })
    }

    pub(crate) fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.store.put_with(key, value, Durability::None)
    }

    /// What was put is durable, and all there will be.
    pub(crate) fn finish(self) -> Result<(), Error> {
        self.store.sync()?;
        directory::finish(&[self.directory])?;
        self.store.close()?;
        Ok(())
    }
}

/// A range that was begun. It ends with this, also where what is done with a pair, or hears of it, panics: it would keep what it reads from being written over.
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

/// What a walk has before it, the next last.
enum Ahead {
    /// Keys from one on, up to another.
    Keys { from: Box<[u8]>, to: Option<Box<[u8]>> },
    /// A part of the index that cannot be read.
    Gap(Error, IndexPart),
}

/// A walk over all pairs of one instant, through damage.
struct Walk<'a> {
    store: &'a Store,
    /// The range of whose instant all ranges are that it reads.
    instant: u64,
    report: Report,
    /// The last key that could be read.
    last: Option<Box<[u8]>>,
    /// Findings before this one have the key behind them.
    open: usize,
}

impl Walk<'_> {
    /// Walks over some keys, as far as the index can be read; what is behind that is left ahead.
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
        // What is between here and the damaged part other levels may have.
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

    /// Walks over a range, to its end or up to a part of the index that cannot be read.
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
            // One at a time: an error is then of the pair behind the last one.
            match self.store.next_of_walk(number, beginning.take()) {
                Ok(None) => return Ok(None),
                // A key of the greatest length has no next one to begin at.
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

    /// Whether there is no key of a part of the index before what was read: to walk around it leads on.
    fn is_ahead(&self, part: &IndexPart, from: &[u8]) -> bool {
        let is_behind =
            |end: &[u8]| end > from && self.last.as_deref().is_none_or(|last| end > last);
        part.end.as_deref().is_none_or(is_behind)
    }

    /// A pair could be read.
    fn note(&mut self, key: Box<[u8]>, value_bytes: usize) {
        let report = &mut self.report;
        let of_gap = report.findings.iter_mut().skip(self.open);
        of_gap.for_each(|finding| finding.before = Some(key.clone()));
        self.open = report.findings.len();
        report.pairs += 1;
        report.bytes += (key.len() + value_bytes) as u64;
        self.last = Some(key);
    }

    /// Something is damaged behind the last pair. It may come up again for the next one.
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

/// What a store that is damaged is opened with, by what a new one is made with: what was settled when it was made it says itself, and nothing of it is written.
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

/// Saves what can be read of the store in `directories` to a new one in `into`, and says what cannot.
///
/// A store that opens is opened to be read only, and copied pair by pair as its index leads to them. Where a part of the index cannot be read,
/// the pairs that it may have led to are taken from all pages that hold values ([`Report::rescued`]). Of one that does not open, because its manifest,
/// its log or a `LEVELHEAD` is damaged, or a directory fails, all pages of its files are read, and of each key the newest version is taken that a whole page has: [`Report::salvaged`]
/// says so, and what nobody can know then. What of several directories cannot be opened is done without, and pages are read also where the store would not rely on them, as each says of itself what it is. Nothing is written to the damaged store in either case, whatever `options` say, which are those
/// of the new one (as of [`Store::checkpoint`]). What of `LEVELHEAD` is not there follows from the pages. Keep the damaged
/// store until the report was read.
///
/// Memory for a store that does not open: its keys, some 120 bytes for each of them, and its manifest. Its files are read three times.
///
/// # Errors
/// [`Error::Damaged`] or [`Error::Missing`] if there is nothing of a store in `directories`; [`Error::InUse`]; [`Error::Invalid`] if `into` is within one of them; what [`Store::checkpoint`] says of the new one.
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
        // To save what is there it takes no writes, nor all of its directories.
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
