//! Checked reads of meta segments.

use std::collections::VecDeque;
use std::ops::Range;

use runtime::{IoClass, PageImage};

use crate::engine::Inner;
use crate::error::EngineError;
use crate::format::group_index::GroupIndex;
use crate::format::meta_segment::MetaSegment;
use crate::format::page::PageFault;
use crate::format::pointer::PointerFormat;
use crate::medium::{Medium, MediumError, PageNo};
use crate::version::level::Level;
use crate::version::location::{IndexKind, IndexPage, Location};

enum Loading<F> {
    Ready(PageImage),
    Reading(PageNo, F),
}

impl<M: Medium> Inner<M> {
    /// Loads the segments `range` of a level from memory or the medium; the segments of groups are
    /// loaded one by one. Checks that segments read match the level list, so that a merge gets its
    /// keys in order.
    pub(crate) async fn load(
        &self,
        level: &Level,
        range: Range<usize>,
    ) -> Result<Vec<PageImage>, EngineError> {
        let (window, format) = (2 * self.store.shape.parallelism as usize, self.store.format);
        let mut loaded =
            Loaded { level, format, pages: Vec::new(), begun: None, columns: Vec::new() };
        let mut under_way = VecDeque::new();
        for index in range {
            let location = &level.segment(index).location;
            let ready = location.image().cloned().map(Loading::Ready);
            let read = |page| self.store.medium.read(page, IoClass::CompactionRead);
            let reading = pages_to_load(location).map(|page| Loading::Reading(page, read(page)));
            for loading in ready.into_iter().chain(reading) {
                under_way.push_back((index, loading));
                if under_way.len() >= window {
                    let (index, first) = under_way.pop_front().expect("the window is at least 1");
                    self.finish_loading(&mut loaded, index, first).await?;
                }
            }
        }
        for (index, loading) in under_way {
            self.finish_loading(&mut loaded, index, loading).await?;
        }
        Ok(loaded.pages)
    }

    async fn finish_loading<F>(
        &self,
        loaded: &mut Loaded<'_>,
        index: usize,
        loading: Loading<F>,
    ) -> Result<(), EngineError>
    where
        F: Future<Output = Result<PageImage, MediumError>>,
    {
        let (page, read) = match loading {
            Loading::Ready(image) => {
                loaded.pages.push(image);
                return Ok(());
            }
            Loading::Reading(page, read) => (page, read),
        };
        let location = &loaded.level.segment(index).location;
        let is_listed = if let Location::Columns(table) = *location {
            let class = IoClass::CompactionRead;
            let image = self.store.check_or_rebuild(page, read.await, class).await?;
            loaded.columns.push(image);
            if loaded.columns.len() < table.pages.behind_filter() as usize {
                return Ok(());
            }
            let segments = self.table_of_pages(table, &std::mem::take(&mut loaded.columns))?;
            let count = segments.len() as u32;
            segments.iter().all(|segment| loaded.take(index, segment.clone(), count))
        } else {
            let count = location.segments();
            let image = self.check_meta(page, read.await, IoClass::CompactionRead).await?;
            loaded.take(index, image, count)
        };
        if is_listed { Ok(()) } else { Err(EngineError::Corrupt(page, PageFault::Contents)) }
    }

    /// Checks that a page that was read is a meta segment. A damaged page is rebuilt if the medium
    /// supports it.
    pub(crate) async fn check_meta(
        &self,
        page: PageNo,
        read: Result<PageImage, MediumError>,
        class: IoClass,
    ) -> Result<PageImage, EngineError> {
        let image = self.store.check_or_rebuild(page, read, class).await?;
        self.checked_meta(page, image)
    }

    /// Returns a page that was read if it is a valid segment.
    pub(crate) fn checked_meta(
        &self,
        page: PageNo,
        image: PageImage,
    ) -> Result<PageImage, EngineError> {
        let is_meta = MetaSegment::is_sound(image.bytes(), self.store.format, &self.inlining);
        if is_meta { Ok(image) } else { Err(EngineError::Corrupt(page, PageFault::Contents)) }
    }

    /// Reads a page for a search.
    pub(crate) async fn read_index(
        &self,
        at: IndexPage,
        class: IoClass,
    ) -> Result<PageImage, EngineError> {
        let image = self.store.read_page(at.page, class).await?;
        self.checked_index(at, image)
    }

    /// Checks an index page that was read; see [`Self::check_meta`].
    pub(crate) async fn check_index(
        &self,
        at: IndexPage,
        read: Result<PageImage, MediumError>,
        class: IoClass,
    ) -> Result<PageImage, EngineError> {
        let image = self.store.check_or_rebuild(at.page, read, class).await?;
        self.checked_index(at, image)
    }

    fn checked_index(&self, at: IndexPage, image: PageImage) -> Result<PageImage, EngineError> {
        match at.kind {
            IndexKind::Segment => self.checked_meta(at.page, image),
            IndexKind::Group(segments) if GroupIndex::is_sound(image.bytes(), segments) => {
                Ok(image)
            }
            IndexKind::Group(_) => Err(EngineError::Corrupt(at.page, PageFault::Contents)),
            IndexKind::Columns(_) => unreachable!("a table is checked as a whole"),
        }
    }
}

/// Returns the pages with entries that must be read for a segment, group or table.
fn pages_to_load(location: &Location) -> impl Iterator<Item = PageNo> + use<> {
    let (first, count) = match location {
        Location::Pinned(_) | Location::Cached(..) => (0, 0),
        Location::Stored(page) => (page.0, 1),
        Location::Group(group) => (group.page(0).0, u32::from(group.segments)),
        Location::Columns(table) => {
            let Range { start, end } = table.behind_filter();
            (start, end - start)
        }
    };
    (first..first + count).map(PageNo)
}

/// Segments of a level that were loaded and match the level list.
struct Loaded<'l> {
    level: &'l Level,
    format: PointerFormat,
    pages: Vec<PageImage>,
    /// Segments and entries still missing of the current group or table, whose segments are taken
    /// in order.
    begun: Option<(u32, u32)>,
    /// Pages of the current table, until it is complete.
    columns: Vec<PageImage>,
}

impl Loaded<'_> {
    /// Takes the next segment of the list entry `index`, which has `count` segments. Returns
    /// whether the segment matches the list. Requires: the segment is valid.
    fn take(&mut self, index: usize, image: PageImage, count: u32) -> bool {
        let segment = MetaSegment::new(image.bytes(), self.format).expect("it was checked");
        if segment.len() == 0 {
            return false; // valid, but never listed
        }
        let listed = self.level.segment(index);
        let own = segment.len() as u32;
        let begun = self.begun.take();
        let (first_key, segments, entries) = match begun {
            None => {
                let first_key = self.level.first_key(index);
                (first_key, count, u32::from(listed.entries))
            }
            Some((segments, entries)) => (segment.key(0), segments, entries),
        };
        let before = begun.and_then(|_| self.last_key());
        let next_of_list = (index + 1 < self.level.len()).then(|| self.level.first_key(index + 1));
        let is_last = segments == 1;
        let next = next_of_list.filter(|_| is_last);
        let is_listed = segment.is_listed(segment.len() as u16, first_key, next)
            && before.is_none_or(|last| *last < *first_key)
            && if is_last { own == entries } else { own < entries };
        if is_listed && !is_last {
            self.begun = Some((segments - 1, entries - own));
        }
        self.pages.push(image);
        is_listed
    }

    /// Returns the last key of the segment taken last.
    fn last_key(&self) -> Option<Box<[u8]>> {
        let image = self.pages.last()?;
        let segment = MetaSegment::new(image.bytes(), self.format).expect("it was checked");
        (segment.len() > 0).then(|| segment.key(segment.len() - 1).into())
    }
}
