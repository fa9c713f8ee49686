//! The walk over all pairs of one instant in key order, which verification, checkpoints and repair
//! share.
//!
//! The walk reads each page of the index and each value, and checks them against their checksums,
//! and each value against the key that refers to it. The log and the manifest are checked when the
//! store is opened. Unreferenced space (garbage, free space) is not read. The walk skips a part of
//! the index that cannot be read, and continues with the keys after it.

use engine::IndexPart;

use crate::error::Error;
use crate::key_bounds::{LONGEST, successor};
use crate::reading::{Beginning, Instant, Limits};
use crate::report::{Finding, Report};
use crate::store::Store;

/// The function that receives each pair.
pub(crate) type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> Result<(), Error> + 'a;

/// Consecutive errors, without a readable pair in between, after which a walk ends: it cannot get
/// past damage that it cannot locate.
const MOST_IN_A_ROW: u32 = 1_000;

impl Store {
    /// Passes every readable pair to `visit`.
    pub(crate) fn walk(
        &self,
        progress: &mut dyn FnMut(u64),
        visit: &mut Visit<'_>,
    ) -> Result<Report, Error> {
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
