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

use crate::format::meta_segment::MetaSegment;
use crate::lsm::Inner;
use crate::lsm::level::{Level, Location, NamedSegment, Segment};
use crate::lsm::version::LevelEdit;

/// A segment of the index that was copied.
struct Moved {
    from: PageNo,
    to: PageNo,
    image: PageImage,
}

impl<M: Medium> Inner<M> {
    /// Whether collecting a meta extent gives units back, and there is space for what is in use in
    /// it. Chosen without, it would be given up and chosen again at once, for ever.
    pub(crate) fn can_copy(&self, id: ExtentId) -> bool {
        let pages = self.pages_to_move(id);
        pages < self.store.shape.pages_per_extent
            && self.store.can_promise(Stream::Index, pages, Claimant::Collection)
    }

    /// Copies the segments that are in use in an extent.
    pub(crate) async fn copy_segments(&self, id: ExtentId) -> Result<(), Stopped> {
        let most = self.pages_to_move(id);
        let promise = self.store.try_promise(Stream::Index, most, Claimant::Collection);
        let mut promise = promise.ok_or(Stopped::Starved)?;
        let unit = self.store.shape.append_unit as usize;
        let mut pages = Vec::new();
        let of_extent = self.pages_in(id);
        for batch in of_extent.chunks(self.store.batch_pages() as usize) {
            let batch = self.store.read_pages(batch).await.map_err(Stopped::by)?;
            // If the index refers to what is none, the extent stays.
            let sound = |(page, image)| Some((page, self.checked_meta(page, image).ok()?));
            pages.extend(batch.into_iter().filter_map(sound));
            pages.retain(|(page, image)| self.owner(*page, image).is_some());
            // What does not fill a unit goes with the next batch.
            let rest = pages.split_off(pages.len() - pages.len() % unit);
            let whole = std::mem::replace(&mut pages, rest);
            let share = promise.split(whole.len() as u32);
            self.move_segments(whole, share).await.map_err(Stopped::Failed)?;
        }
        self.move_segments(pages, promise).await.map_err(Stopped::Failed)?;
        // The index must not lose a page whatever the bookkeeping says.
        if self.pages_in(id).is_empty() { Ok(()) } else { Err(Stopped::Damaged) }
    }

    /// Pages that moving the segments of a meta extent takes at most.
    fn pages_to_move(&self, id: ExtentId) -> u32 {
        self.store.in_units(self.store.extents.borrow().get(id).live)
    }

    /// Pages of an extent that the index refers to, in order.
    fn pages_in(&self, id: ExtentId) -> Vec<PageNo> {
        let version = self.version.borrow();
        let is_in = |page: &PageNo| self.store.shape.extent_of(*page) == id;
        let mut pages: Vec<PageNo> = version.pages().filter(is_in).collect();
        pages.sort_unstable();
        pages
    }

    /// The level whose list refers to `page`, if any.
    fn owner(&self, page: PageNo, image: &PageImage) -> Option<usize> {
        let version = self.version.borrow();
        (0..version.levels().len())
            .find(|n| self.place_in(version.level(*n), page, image).is_some())
    }

    /// The segment of `level` that is stored in `page`.
    fn place_in(&self, level: &Level, page: PageNo, image: &PageImage) -> Option<usize> {
        let segment = MetaSegment::new(image.bytes(), self.store.format)?;
        if segment.len() == 0 {
            return None;
        }
        let at = level.covering(segment.key(0), None, &mut Effort::default())?;
        let is_here = level.segment(at).location.page() == Some(page);
        is_here.then_some(at)
    }

    /// Copies those of `pages` that the index still refers to, of all levels together, so that they
    /// fill whole units.
    async fn move_segments(
        &self,
        mut pages: Vec<(PageNo, PageImage)>,
        promise: Promise<'_>,
    ) -> Result<(), EngineError> {
        pages.retain(|(page, image)| self.owner(*page, image).is_some());
        let bytes = pages.iter().map(|(_, image)| image.bytes().to_vec()).collect();
        let copies = self.store.write_segments(bytes, promise, IoClass::GcWrite, || 0.5).await?;
        assert_eq!(copies.len(), pages.len(), "a segment was copied to no page, or to two");
        self.stats.borrow_mut().gc_pages_moved += copies.len() as u64;
        let mut by_level: BTreeMap<Option<usize>, Vec<Moved>> = BTreeMap::new();
        for ((from, image), to) in pages.into_iter().zip(copies) {
            let level = self.owner(from, &image);
            by_level.entry(level).or_default().push(Moved { from, to, image });
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
            let Some(at) = self.place_in(list, copy.from, &copy.image) else {
                self.forget_copies(std::slice::from_ref(copy));
                continue;
            };
            let (entries, old) = (list.segment(at).entries, &list.segment(at).location);
            let location = match old.image() {
                Some(image) => Location::Cached(copy.to, image.clone()),
                None => Location::Stored(copy.to),
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
        self.store.forget_pages(copies.iter().map(|copy| copy.to));
    }
}
