//! Where what merges give goes: memory, single pages, groups, or tables in columns; and the space that is promised for it.

use std::ops::Range;
use std::rc::Rc;

use pages::error::EngineError;
use pages::medium::{Medium, Stream};
use pages::store::promise::Promise;
use pages::store::space::Claimant;
use runtime::{IoClass, PageImage};

use crate::format::entry::OFFSET_BYTES;
use crate::lsm::Inner;
use crate::lsm::columns::ColumnForm;
use crate::lsm::groups::GroupForm;
use crate::lsm::level::{Level, NamedSegment, Segment};
use crate::lsm::location::Location;
use crate::lsm::merge::BuiltSegment;
use crate::lsm::picker::Slice;
use crate::lsm::pool::Pool;
use crate::lsm::version::Version;

/// Where merged segments go.
pub(crate) enum Place<'a> {
    /// Their level is pinned.
    Memory,
    /// Space that was promised, for segments of this level.
    Medium(Promise<'a>, usize),
    /// The same for groups of the last level.
    Groups(Promise<'a>, GroupForm),
    /// The same for tables in columns.
    Columns(Promise<'a>, ColumnForm),
}

impl<'a> Place<'a> {
    /// Takes `pages` of the promise, if there is one.
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

/// Where what a step of a compaction writes goes.
pub(crate) struct Places<'a> {
    /// What stays of a slice in its own level.
    pub rest: Place<'a>,
    /// What it gives in the next one.
    pub merged: Place<'a>,
    /// What is written for the accelerator alone.
    pub copies: Option<Promise<'a>>,
}

impl<M: Medium> Inner<M> {
    /// Where what a slice of `level` gives can go; `None` if there is no space for it now.
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
        // One promise for all of it: what a slice was short of is what it is tried with again.
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

    /// Bytes that the entries in `range` of a level take in segments at most.
    pub(crate) fn bytes_in(&self, level: &Level, range: &Range<usize>) -> usize {
        if level.totals().tables == 0 {
            return level.pages_in(range) * self.store.shape.payload_bytes as usize;
        }
        // A design that had tables in columns, and has none any more.
        let bulk = self.bulk_of(level, range);
        bulk.key_bytes + bulk.entries * (self.store.format.bytes + OFFSET_BYTES)
    }

    /// Pages that the rest of the one segment, or table, of a slice of `level` takes at most.
    fn most_pages_of_rest(&self, version: &Version, level: usize, slice: &Slice) -> u32 {
        let bulk = || self.bulk_of(version.level(level), &slice.upper);
        self.columns_of(level).map_or(1, |columns| columns.most_pages(bulk()))
    }

    /// Where up to `pages` pages of `level` can go; `None` if there is no space for them now.
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

    /// Gives merged segments their place.
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
                // In a box, so that compactions of other stores are not larger for it.
                let placing = self.place_in_columns(segments, columns, promise, class, urgency);
                return Box::pin(placing).await;
            }
            Place::Medium(promise, level) => (promise, level),
        };
        let filters = self.filters_for(level, &segments).await;
        // Where memory does not survive, a pinned level is on the medium besides.
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

/// Pages that a slice of `level` merges.
pub(crate) fn pages_of_slice(version: &Version, level: usize, slice: &Slice) -> usize {
    version.level(level).pages_in(&slice.upper) + version.level(level + 1).pages_in(&slice.below)
}

fn pin(built: BuiltSegment, pool: &Rc<Pool>) -> NamedSegment {
    let location = Location::Pinned(PageImage::new(&built.bytes));
    let segment = Segment::new(location, built.entries, pool);
    NamedSegment { first_key: built.first_key, segment, filter: None }
}
