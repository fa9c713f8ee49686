//! Destinations of merge output: memory, single pages, groups or columnar tables; and the promises
//! of space for them.

use std::ops::Range;
use std::rc::Rc;

use runtime::{IoClass, PageImage};

use super::merge::BuiltSegment;
use super::picker::Slice;
use crate::compaction::columns::ColumnForm;
use crate::compaction::groups::GroupForm;
use crate::engine::Inner;
use crate::error::EngineError;
use crate::format::entry::OFFSET_BYTES;
use crate::medium::{Medium, Stream};
use crate::space::priority::Claimant;
use crate::space::promise::Promise;
use crate::version::Version;
use crate::version::level::{Level, NamedSegment, Segment};
use crate::version::location::Location;
use crate::version::pool::Pool;

/// The destination of merged segments.
pub(crate) enum Place<'a> {
    /// Memory: their level is pinned.
    Memory,
    /// Promised space for single segments of this level.
    Medium(Promise<'a>, usize),
    /// Promised space for groups of the last level.
    Groups(Promise<'a>, GroupForm),
    /// Promised space for columnar tables.
    Columns(Promise<'a>, ColumnForm),
}

impl<'a> Place<'a> {
    /// Splits `pages` off the promise, if there is one.
    fn split(&mut self, pages: u32) -> Option<Promise<'a>> {
        match self {
            Self::Medium(promise, _) | Self::Groups(promise, _) | Self::Columns(promise, _)
                if pages > 0 =>
            {
                Some(promise.split(pages))
            }
            _ => None,
        }
    }
}

/// The destinations of the output of a compaction step.
pub(crate) struct Places<'a> {
    /// For the rest of a slice, which stays in its own level.
    pub rest: Place<'a>,
    /// For the merged segments in the next level.
    pub merged: Place<'a>,
    /// For the pages written only for the accelerator.
    pub copies: Option<Promise<'a>>,
}

impl<M: Medium> Inner<M> {
    /// Returns the destinations for the output of a slice of `level`; `None` if there is no space
    /// for it now.
    pub(crate) fn places_for(
        &self,
        version: &Version,
        level: usize,
        slice: &Slice,
    ) -> Option<Places<'_>> {
        let (upper, lower) = (version.level(level), version.level(level + 1));
        let copies = self.pages_to_copy(version, level, slice);
        let has_rest = slice.until.is_some() && !self.is_in_memory_only(level);
        let rest = if has_rest { self.most_pages_of_rest(version, level, slice) } else { 0 };
        let rest = self.store.in_units(rest);
        // One promise for all of it: a slice that lacked space is retried with the same total
        // (`short_of`).
        let merged = if let Some(columns) = self.columns_of(level + 1) {
            let mut bulk = self.bulk_of(upper, &slice.upper);
            bulk += self.bulk_of(lower, &slice.below);
            columns.most_pages(bulk)
        } else {
            let bytes = self.bytes_in(upper, &slice.upper) + self.bytes_in(lower, &slice.below);
            self.most_pages_for(level + 1, self.inlining.most_pages(bytes))
        };
        let most = merged + copies + rest;
        let merged = self.place_for(level + 1, most);
        self.short_of.set(if merged.is_some() { 0 } else { most });
        let mut merged = merged?;
        let copies = merged.split(copies);
        let rest = merged.split(rest);
        let rest = rest.map_or(Place::Memory, |promise| match self.columns_of(level) {
            Some(columns) => Place::Columns(promise, columns),
            None => Place::Medium(promise, level),
        });
        Some(Places { rest, merged, copies })
    }

    /// Returns the maximum number of bytes that the entries in `range` of a level take in segments.
    pub(crate) fn bytes_in(&self, level: &Level, range: &Range<usize>) -> usize {
        if level.totals().tables == 0 {
            return level.pages_in(range) * self.store.shape.payload_bytes as usize;
        }
        // The design had columnar tables before, and has none any more.
        let bulk = self.bulk_of(level, range);
        bulk.key_bytes + bulk.entries * (self.store.format.bytes + OFFSET_BYTES)
    }

    /// Returns the maximum number of pages that the rest of the single segment, or table, of a
    /// slice of `level` takes.
    fn most_pages_of_rest(&self, version: &Version, level: usize, slice: &Slice) -> u32 {
        let bulk = || self.bulk_of(version.level(level), &slice.upper);
        self.columns_of(level).map_or(1, |columns| columns.most_pages(bulk()))
    }

    /// Returns a destination for up to `pages` pages of `level`; `None` if there is no space for
    /// them now.
    pub(crate) fn place_for(&self, level: usize, pages: u32) -> Option<Place<'_>> {
        if self.is_in_memory_only(level) {
            return Some(Place::Memory);
        }
        let promise = self.store.try_promise(Stream::Index, pages, Claimant::Compaction)?;
        if let Some(columns) = self.columns_of(level) {
            return Some(Place::Columns(promise, columns));
        }
        Some(match self.groups_of(level) {
            Some(groups) => Place::Groups(promise, groups),
            None => Place::Medium(promise, level),
        })
    }

    /// Writes merged segments to their destination and returns the level entries for them.
    pub(crate) async fn place(
        &self,
        segments: Vec<BuiltSegment>,
        place: Place<'_>,
        class: IoClass,
        urgency: impl Fn() -> f64,
    ) -> Result<Vec<NamedSegment>, EngineError> {
        let (promise, level) = match place {
            Place::Memory => {
                return Ok(segments.into_iter().map(|built| pin(built, &self.pool)).collect());
            }
            Place::Groups(promise, groups) => {
                return self.place_in_groups(groups.share(segments), promise, class, urgency).await;
            }
            Place::Columns(promise, columns) => {
                // Boxed so that the compaction futures of other stores do not grow.
                let placing = self.place_in_columns(segments, columns, promise, class, urgency);
                return Box::pin(placing).await;
            }
            Place::Medium(promise, level) => (promise, level),
        };
        let filters = self.filters_for(level, &segments).await;
        // If memory does not survive a power cut, a pinned level is also written to the medium.
        let keeps = self.is_pinned(level);
        let image = |built: &BuiltSegment| keeps.then(|| PageImage::new(&built.bytes));
        let images: Vec<_> = segments.iter().map(image).collect();
        let (names, pages): (Vec<_>, Vec<_>) = segments
            .into_iter()
            .map(|built| ((built.first_key, built.entries), built.bytes))
            .unzip();
        let count = pages.len();
        let numbers = self.store.write_segments(pages, promise, class, urgency).await?;
        assert!(
            numbers.len() == count && filters.len() == count,
            "{count} segments of level {level} have {} pages and {} filters",
            numbers.len(),
            filters.len()
        );
        let locations = numbers.into_iter().zip(images).map(|(page, image)| match image {
            Some(image) => Location::Cached(page, image),
            None => Location::Stored(page),
        });
        let places = names.into_iter().zip(locations).zip(filters);
        let named = places.map(|(((first_key, entries), location), filter)| NamedSegment {
            first_key,
            segment: Segment::new(location, entries, &self.pool),
            filter,
        });
        Ok(named.collect())
    }
}

/// Returns the number of pages that a slice of `level` merges.
pub(crate) fn pages_of_slice(version: &Version, level: usize, slice: &Slice) -> usize {
    version.level(level).pages_in(&slice.upper) + version.level(level + 1).pages_in(&slice.below)
}

fn pin(built: BuiltSegment, pool: &Rc<Pool>) -> NamedSegment {
    let location = Location::Pinned(PageImage::new(&built.bytes));
    let segment = Segment::new(location, built.entries, pool);
    NamedSegment { first_key: built.first_key, segment, filter: None }
}
