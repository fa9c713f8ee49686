//! Garbage collection of meta extents: segments that a level list still refers to are copied, and
//! their addresses in the list are replaced.

use std::collections::BTreeMap;
use std::rc::Rc;

use runtime::{IoClass, PageImage};

use super::Stopped;
use super::copying::{Batch, Copying};
use crate::effort::Effort;
use crate::engine::Inner;
use crate::error::EngineError;
use crate::format::columns::filter_of;
use crate::format::group_index::GroupIndex;
use crate::format::meta_segment::MetaSegment;
use crate::medium::{ExtentId, Medium, PageNo, Stream};
use crate::space::priority::Claimant;
use crate::space::promise::Promise;
use crate::version::LevelEdit;
use crate::version::level::{Level, NamedSegment, Segment};
use crate::version::location::{Columns, Group, Location};

/// A segment or group of the index that was copied.
struct Moved {
    /// The first page of the original, and of the copy.
    from: PageNo,
    to: PageNo,
    pages: u32,
    first_key: Box<[u8]>,
}

/// A segment or group that was read.
struct Whole {
    first: PageNo,
    first_key: Box<[u8]>,
    pages: Vec<PageImage>,
}

impl<M: Medium> Inner<M> {
    /// Whether collecting a meta extent frees units, and enough space exists for its live pages. An
    /// extent chosen without this check would be given up and chosen again at once, forever.
    pub(crate) fn can_copy(&self, id: ExtentId) -> bool {
        let pages = self.pages_to_move(id);
        pages < self.store.shape.pages_per_extent
            && self.store.can_promise(Stream::Index, pages, Claimant::Collection)
    }

    /// Copies the live segments of an extent. All space is promised before it begins, so that it
    /// runs to its end.
    pub(crate) async fn copy_segments(&self, id: ExtentId) -> Result<(), Stopped> {
        let most = self.pages_to_move(id);
        let promise = self.store.try_promise(Stream::Index, most, Claimant::Collection);
        let mut promise = promise.ok_or(Stopped::Starved)?;
        let copying = self.copying();
        for batch in copying.batches(self.locations_in(id)) {
            let share = promise.split(copying.most_pages_of(&batch));
            self.copy_batch(batch, share).await?;
        }
        // The index must not lose a page, even if the accounting is wrong.
        if self.locations_in(id).is_empty() { Ok(()) } else { Err(Stopped::Damaged) }
    }

    /// Returns the maximum number of pages that copying the live part of a meta extent takes.
    fn pages_to_move(&self, id: ExtentId) -> u32 {
        self.copying().most_pages(self.store.extents.borrow().get(id).live)
    }

    /// Returns how the segments now in use are copied.
    fn copying(&self) -> Copying {
        let largest_group = self.version.borrow().largest_group();
        Copying::new(largest_group, self.store.batch_pages(), self.store.shape.append_unit)
    }

    /// Returns the segments and groups of an extent that the index refers to, in page order.
    fn locations_in(&self, id: ExtentId) -> Vec<Location> {
        let version = self.version.borrow();
        let first = |location: &Location| location.pages().next();
        let is_in = |page: PageNo| self.store.shape.extent_of(page) == id;
        let is_here = |location: &&Location| first(location).is_some_and(is_in);
        let mut locations: Vec<Location> = version.locations().filter(is_here).cloned().collect();
        locations.sort_unstable_by_key(first);
        locations
    }

    async fn copy_batch(&self, batch: Batch, promise: Promise<'_>) -> Result<(), Stopped> {
        let pages: Vec<PageNo> = batch.locations.iter().flat_map(Location::pages).collect();
        let mut images = self.store.read_pages(&pages).await.map_err(Stopped::by)?.into_iter();
        let mut whole = Vec::with_capacity(batch.locations.len());
        for location in &batch.locations {
            let pages = images.by_ref().take(location.pages().count()).collect();
            // If the index refers to a page that is not a segment, the extent is kept.
            whole.extend(self.sound(location, pages));
        }
        self.move_batch(whole, batch.has_groups(), promise).await.map_err(Stopped::Failed)
    }

    /// Checks a segment or group that was read; `None` if it is invalid.
    fn sound(&self, location: &Location, pages: Vec<(PageNo, PageImage)>) -> Option<Whole> {
        if let Location::Columns(table) = location {
            return self.sound_table(*table, pages);
        }
        let (first, image) = pages.first()?.clone();
        let segments = if let Location::Group(group) = location {
            GroupIndex::is_sound(image.bytes(), group.segments).then_some(())?;
            &pages[1..]
        } else {
            &pages[..]
        };
        let is_segment =
            |(page, image): &(PageNo, PageImage)| self.checked_meta(*page, image.clone()).is_ok();
        segments.iter().all(is_segment).then_some(())?;
        let first_key = match location {
            Location::Group(_) => GroupIndex::new(image.bytes())?.first_key(0).into(),
            _ => MetaSegment::new(image.bytes(), self.store.format)?.key(0).into(),
        };
        let pages = pages.into_iter().map(|(_, image)| image).collect();
        Some(Whole { first, first_key, pages })
    }

    /// Checks a columnar table that was read; `None` if it is invalid.
    fn sound_table(&self, table: Columns, pages: Vec<(PageNo, PageImage)>) -> Option<Whole> {
        let pages: Vec<PageImage> = pages.into_iter().map(|(_, image)| image).collect();
        let (filter, behind) = pages.split_at_checked(usize::from(table.pages.filter))?;
        (filter.is_empty() || filter_of(filter).is_some()).then_some(())?;
        let segments = self.table_of_pages(table, behind).ok()?;
        let segment = MetaSegment::new(segments.first()?.bytes(), self.store.format)?;
        Some(Whole { first: table.first, first_key: segment.key(0).into(), pages })
    }

    /// Returns the level whose list refers to the segment at `page` with this first key.
    fn owner(&self, page: PageNo, first_key: &[u8]) -> Option<usize> {
        let version = self.version.borrow();
        (0..version.levels().len()).find(|n| place_in(version.level(*n), page, first_key).is_some())
    }

    /// Copies the segments that the index still refers to, unchanged, of all levels together, so
    /// that they fill whole units. A group's index does not contain the group's address, so it can
    /// be copied as it is.
    async fn move_batch(
        &self,
        mut batch: Vec<Whole>,
        has_groups: bool,
        promise: Promise<'_>,
    ) -> Result<(), EngineError> {
        batch.retain(|whole| self.owner(whole.first, &whole.first_key).is_some());
        let bytes = |whole: &Whole| whole.pages.iter().map(|page| page.bytes().to_vec()).collect();
        let (together, class) = (batch.iter().map(bytes).collect(), IoClass::GcWrite);
        let copies = if has_groups {
            self.store.write_at_one_go(together, promise, class).await?
        } else {
            self.store.write_groups(together, promise, class, || 0.5).await?
        };
        let groups = batch.iter().filter(|whole| whole.pages.len() > 1).count();
        self.stats.borrow_mut().groups_moved += groups as u64;
        let moved = batch.into_iter().zip(copies).map(|(whole, to)| {
            let Whole { first, first_key, pages } = whole;
            Moved { from: first, to, pages: pages.len() as u32, first_key }
        });
        self.publish_moved(moved.collect()).await
    }

    async fn publish_moved(&self, all: Vec<Moved>) -> Result<(), EngineError> {
        let pages: u32 = all.iter().map(|moved| moved.pages).sum();
        self.stats.borrow_mut().gc_pages_moved += u64::from(pages);
        let mut by_level: BTreeMap<Option<usize>, Vec<Moved>> = BTreeMap::new();
        for moved in all {
            let level = self.owner(moved.from, &moved.first_key);
            by_level.entry(level).or_default().push(moved);
        }
        for (level, moved) in by_level {
            let Some(level) = level else {
                self.forget_copies(&moved);
                continue;
            };
            self.claim(&[level], || true).await;
            let outcome = self.refer_to_copies(level, &moved);
            self.unclaim(&[level]);
            outcome?;
        }
        Ok(())
    }

    /// Makes `level`'s list refer to the copies. A copy whose original is no longer in the list is
    /// garbage. Requires: the caller has claimed `level`.
    fn refer_to_copies(&self, level: usize, moved: &[Moved]) -> Result<(), EngineError> {
        let version = Rc::clone(&self.version.borrow());
        let list = version.level(level);
        let mut edits = Vec::with_capacity(moved.len());
        for copy in moved {
            let Some(at) = place_in(list, copy.from, &copy.first_key) else {
                self.forget_copies(std::slice::from_ref(copy));
                continue;
            };
            let (entries, old) = (list.segment(at).entries, &list.segment(at).location);
            let location = match old {
                Location::Cached(_, image) => Location::Cached(copy.to, image.clone()),
                Location::Group(group) => Location::Group(Group { first: copy.to, ..*group }),
                Location::Columns(table) => Location::Columns(Columns { first: copy.to, ..*table }),
                Location::Stored(_) | Location::Pinned(_) => Location::Stored(copy.to),
            };
            let segment = Segment::new(location, entries, &self.pool);
            let (first_key, filter) = (list.first_key(at).into(), list.filter(at).cloned());
            let new = vec![NamedSegment { first_key, segment, filter }];
            edits.push(LevelEdit { level, range: at..at + 1, new });
        }
        if !edits.is_empty() {
            self.install(self.edit_of(edits))?;
        }
        Ok(())
    }

    /// Marks copies as garbage whose originals are no longer in use.
    fn forget_copies(&self, copies: &[Moved]) {
        let pages = copies.iter().flat_map(|copy| copy.to.0..copy.to.0 + copy.pages);
        self.store.forget_pages(pages.map(PageNo));
    }
}

/// Returns the index in `level` of the segment at `page` with this first key.
fn place_in(level: &Level, page: PageNo, first_key: &[u8]) -> Option<usize> {
    let at = level.covering(first_key, None, &mut Effort::default())?;
    (level.segment(at).location.pages().next() == Some(page)).then_some(at)
}
