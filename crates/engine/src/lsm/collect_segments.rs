//! Garbage collection of meta extents: segments that a level list still refers to are copied, and their
//! address in the list is replaced.

use std::collections::BTreeMap;
use std::rc::Rc;

use pages::collector::Stopped;
use pages::effort::Effort;
use pages::error::EngineError;
use pages::medium::{ExtentId, Medium, PageNo, Stream};
use pages::store::promise::Promise;
use pages::store::space::Claimant;
use runtime::{IoClass, PageImage};

use crate::format::group_index::GroupIndex;
use crate::format::meta_segment::MetaSegment;
use crate::lsm::Inner;
use crate::lsm::groups::most_pages_of_one;
use crate::lsm::level::{Level, NamedSegment, Segment};
use crate::lsm::location::{Group, Location};
use crate::lsm::version::LevelEdit;

/// A segment or a group of the index that was copied.
struct Moved {
    /// The first page of it, and of the copy.
    from: PageNo,
    to: PageNo,
    pages: u32,
    first_key: Box<[u8]>,
}

/// A group that was read: the index, and its segments.
struct Whole {
    group: Group,
    first_key: Box<[u8]>,
    pages: Vec<PageImage>,
}

impl<M: Medium> Inner<M> {
    /// Whether collecting a meta extent gives units back, and there is space for what is in use in
    /// it. Chosen without, it would be given up and chosen again at once, for ever.
    pub(crate) fn can_copy(&self, id: ExtentId) -> bool {
        // What copies of groups may leave empty comes on top.
        let slack = self.groups.map_or(0, |groups| groups.most_pages_of_one());
        let pages = self.pages_to_move(id) + slack;
        pages < self.store.shape.pages_per_extent
            && self.store.can_promise(Stream::Index, pages, Claimant::Collection)
    }

    /// Copies the segments that are in use in an extent.
    pub(crate) async fn copy_segments(&self, id: ExtentId) -> Result<(), Stopped> {
        self.copy_single_segments(id).await?;
        self.copy_groups(id).await?;
        // The index must not lose a page whatever the bookkeeping says.
        if self.pages_in(id).is_empty() { Ok(()) } else { Err(Stopped::Damaged) }
    }

    async fn copy_single_segments(&self, id: ExtentId) -> Result<(), Stopped> {
        let of_extent = self.single_pages_in(id);
        if of_extent.is_empty() {
            return Ok(());
        }
        let most = self.pages_to_move(id);
        let promise = self.store.try_promise(Stream::Index, most, Claimant::Collection);
        let mut promise = promise.ok_or(Stopped::Starved)?;
        let unit = self.store.shape.append_unit as usize;
        let mut pages = Vec::new();
        for batch in of_extent.chunks(self.store.batch_pages() as usize) {
            let batch = self.store.read_pages(batch).await.map_err(Stopped::by)?;
            // If the index refers to what is none, the extent stays.
            let sound = |(page, image)| Some((page, self.checked_meta(page, image).ok()?));
            pages.extend(batch.into_iter().filter_map(sound));
            pages.retain(|(page, image)| self.owner_of_segment(*page, image).is_some());
            // What does not fill a unit goes with the next batch.
            let rest = pages.split_off(pages.len() - pages.len() % unit);
            let whole = std::mem::replace(&mut pages, rest);
            let share = promise.split(whole.len() as u32);
            self.move_segments(whole, share).await.map_err(Stopped::Failed)?;
        }
        self.move_segments(pages, promise).await.map_err(Stopped::Failed)
    }

    /// Copies the groups of an extent as they are: an index says nothing of where its group is.
    async fn copy_groups(&self, id: ExtentId) -> Result<(), Stopped> {
        let groups = self.groups_in(id);
        let unit = self.store.shape.append_unit;
        let most_pages = |group: &Group| most_pages_of_one(u32::from(group.segments), unit);
        let Some(largest) = groups.iter().map(most_pages).max() else { return Ok(()) };
        for batch in groups.chunks((2 * self.store.batch_pages() / largest).max(1) as usize) {
            let most = batch.iter().map(most_pages).sum();
            let promise = self.store.try_promise(Stream::Index, most, Claimant::Collection);
            let promise = promise.ok_or(Stopped::Starved)?;
            let mut whole = Vec::with_capacity(batch.len());
            for group in batch {
                let location = Location::Group(*group);
                let pages: Vec<PageNo> = location.pages().collect();
                let pages = self.store.read_pages(&pages).await.map_err(Stopped::by)?;
                whole.extend(self.sound_group(*group, pages));
            }
            self.move_groups(whole, promise).await.map_err(Stopped::Failed)?;
        }
        Ok(())
    }

    /// A group that was read, if it is one. If the index refers to what is none, the extent stays.
    fn sound_group(&self, group: Group, pages: Vec<(PageNo, PageImage)>) -> Option<Whole> {
        let (_, index) = pages.first()?;
        GroupIndex::is_sound(index.bytes(), group.segments).then_some(())?;
        let first_key = GroupIndex::new(index.bytes())?.first_key(0).into();
        let are_segments =
            pages[1..].iter().all(|(page, image)| self.checked_meta(*page, image.clone()).is_ok());
        let pages = pages.into_iter().map(|(_, image)| image).collect();
        are_segments.then_some(Whole { group, first_key, pages })
    }

    /// Pages that moving the segments of a meta extent takes at most.
    fn pages_to_move(&self, id: ExtentId) -> u32 {
        self.store.in_units(self.store.extents.borrow().get(id).live)
    }

    /// Pages of an extent that the index refers to.
    fn pages_in(&self, id: ExtentId) -> Vec<PageNo> {
        let version = self.version.borrow();
        version.pages().filter(|page| self.store.shape.extent_of(*page) == id).collect()
    }

    /// Those of them that are in no group, in order.
    fn single_pages_in(&self, id: ExtentId) -> Vec<PageNo> {
        let version = self.version.borrow();
        let is_in = |page: &PageNo| self.store.shape.extent_of(*page) == id;
        let is_single = |location: &&Location| !matches!(location, Location::Group(_));
        let pages = version.locations().filter(is_single).flat_map(Location::pages);
        let mut pages: Vec<PageNo> = pages.filter(is_in).collect();
        pages.sort_unstable();
        pages
    }

    /// Groups of an extent that the index refers to, in order.
    fn groups_in(&self, id: ExtentId) -> Vec<Group> {
        let version = self.version.borrow();
        let group = |location: &Location| match location {
            Location::Group(group) => Some(*group),
            _ => None,
        };
        let is_in = |group: &Group| self.store.shape.extent_of(group.first) == id;
        let mut groups: Vec<Group> = version.locations().filter_map(group).filter(is_in).collect();
        groups.sort_unstable_by_key(|group| group.first);
        groups
    }

    /// The level whose list refers to `page`, which holds a segment, if any.
    fn owner_of_segment(&self, page: PageNo, image: &PageImage) -> Option<usize> {
        let segment = MetaSegment::new(image.bytes(), self.store.format)?;
        (segment.len() > 0).then(|| self.owner(page, segment.key(0)))?
    }

    /// The level whose list refers to what begins in `page`, with that key.
    fn owner(&self, page: PageNo, first_key: &[u8]) -> Option<usize> {
        let version = self.version.borrow();
        (0..version.levels().len()).find(|n| place_in(version.level(*n), page, first_key).is_some())
    }

    /// Copies those of `pages` that the index still refers to, of all levels together, so that they
    /// fill whole units.
    async fn move_segments(
        &self,
        mut pages: Vec<(PageNo, PageImage)>,
        promise: Promise<'_>,
    ) -> Result<(), EngineError> {
        pages.retain(|(page, image)| self.owner_of_segment(*page, image).is_some());
        let bytes = pages.iter().map(|(_, image)| image.bytes().to_vec()).collect();
        let copies = self.store.write_segments(bytes, promise, IoClass::GcWrite, || 0.5).await?;
        assert_eq!(copies.len(), pages.len(), "a segment was copied to no page, or to two");
        let moved = pages.into_iter().zip(copies).map(|((from, image), to)| {
            let segment = MetaSegment::new(image.bytes(), self.store.format);
            let first_key = segment.expect("it has an owner").key(0).into();
            Moved { from, to, pages: 1, first_key }
        });
        self.publish_moved(moved.collect()).await
    }

    /// The same of groups.
    async fn move_groups(
        &self,
        mut groups: Vec<Whole>,
        promise: Promise<'_>,
    ) -> Result<(), EngineError> {
        groups.retain(|whole| self.owner(whole.group.first, &whole.first_key).is_some());
        let bytes = |whole: &Whole| whole.pages.iter().map(|page| page.bytes().to_vec()).collect();
        let together = groups.iter().map(bytes).collect();
        let copies = self.store.write_groups(together, promise, IoClass::GcWrite, || 0.5).await?;
        self.stats.borrow_mut().groups_moved += groups.len() as u64;
        let moved = groups.into_iter().zip(copies).map(|(whole, to)| {
            let Whole { group, first_key, pages } = whole;
            Moved { from: group.first, to, pages: pages.len() as u32, first_key }
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
            let outcome = self.refer_to_copies(level, &moved).await;
            self.unclaim(&[level]);
            outcome?;
        }
        Ok(())
    }

    /// `level`, which is claimed, refers to copies instead of what was copied. Where it does not
    /// refer to that any more, the copy is garbage.
    async fn refer_to_copies(&self, level: usize, moved: &[Moved]) -> Result<(), EngineError> {
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
                Location::Stored(_) | Location::Pinned(_) => Location::Stored(copy.to),
            };
            let segment = Segment::new(location, entries, &self.pool);
            let (first_key, filter) = (list.first_key(at).into(), list.filter(at).cloned());
            let new = vec![NamedSegment { first_key, segment, filter }];
            edits.push(LevelEdit { level, range: at..at + 1, new });
        }
        if edits.is_empty() { Ok(()) } else { self.publish(self.edit_of(edits)).await }
    }

    /// Copies that came too late are garbage.
    fn forget_copies(&self, copies: &[Moved]) {
        let pages = copies.iter().flat_map(|copy| copy.to.0..copy.to.0 + copy.pages);
        self.store.forget_pages(pages.map(PageNo));
    }
}

/// The place in `level` of what begins in `page`, with that key.
fn place_in(level: &Level, page: PageNo, first_key: &[u8]) -> Option<usize> {
    let at = level.covering(first_key, None, &mut Effort::default())?;
    (level.segment(at).location.pages().next() == Some(page)).then_some(at)
}
