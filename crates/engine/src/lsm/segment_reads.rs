//! Reading meta segments, checked.

use std::collections::VecDeque;
use std::ops::Range;

use pages::error::EngineError;
use pages::format::page::PageFault;
use pages::medium::{Medium, MediumError, PageNo};
use runtime::{IoClass, PageImage};

use crate::format::meta_segment::MetaSegment;
use crate::lsm::Inner;
use crate::lsm::level::{Level, Location};

enum Loading<F> {
    Ready(PageImage),
    Reading(PageNo, F),
}

impl<M: Medium> Inner<M> {
    /// The segments `range` of a level as pages, from memory or the medium. Those that are read have to
    /// be what the level says, so that a merge gets its keys in order.
    pub(crate) async fn load(
        &self,
        level: &Level,
        range: Range<usize>,
    ) -> Result<Vec<PageImage>, EngineError> {
        let mut pages = Vec::with_capacity(range.len());
        let mut under_way = VecDeque::new();
        let window = 2 * self.store.shape.parallelism as usize;
        for index in range {
            match &level.segment(index).location {
                Location::Pinned(image) | Location::Cached(_, image) => {
                    under_way.push_back((index, Loading::Ready(image.clone())));
                }
                Location::Stored(page) => {
                    let read = self.store.medium.read(*page, IoClass::CompactionRead);
                    under_way.push_back((index, Loading::Reading(*page, read)));
                }
            }
            if under_way.len() >= window {
                let (index, first) = under_way.pop_front().expect("the window is at least 1");
                pages.push(self.finish_loading(level, index, first).await?);
            }
        }
        for (index, loading) in under_way {
            pages.push(self.finish_loading(level, index, loading).await?);
        }
        Ok(pages)
    }

    async fn finish_loading<F>(
        &self,
        level: &Level,
        index: usize,
        loading: Loading<F>,
    ) -> Result<PageImage, EngineError>
    where
        F: Future<Output = Result<PageImage, MediumError>>,
    {
        let (page, read) = match loading {
            Loading::Ready(image) => return Ok(image),
            Loading::Reading(page, read) => (page, read),
        };
        let image = self.check_meta(page, read.await, IoClass::CompactionRead).await?;
        let segment = MetaSegment::new(image.bytes(), self.store.format).expect("it was checked");
        let next = (index + 1 < level.len()).then(|| level.first_key(index + 1));
        let entries = level.segment(index).entries;
        let is_listed = segment.is_listed(entries, level.first_key(index), next);
        if is_listed { Ok(image) } else { Err(EngineError::Corrupt(page, PageFault::Contents)) }
    }

    /// Reads a page that must be a meta segment.
    pub(crate) async fn read_meta(
        &self,
        page: PageNo,
        class: IoClass,
    ) -> Result<PageImage, EngineError> {
        let image = self.store.read_page(page, class).await?;
        self.checked_meta(page, image)
    }

    /// Checks a page that was read and must be a meta segment. One that is not whole is rebuilt, if the
    /// medium can do that.
    pub(crate) async fn check_meta(
        &self,
        page: PageNo,
        read: Result<PageImage, MediumError>,
        class: IoClass,
    ) -> Result<PageImage, EngineError> {
        let image = self.store.check_or_rebuild(page, read, class).await?;
        self.checked_meta(page, image)
    }

    /// A page that was read, if it is a segment.
    pub(crate) fn checked_meta(
        &self,
        page: PageNo,
        image: PageImage,
    ) -> Result<PageImage, EngineError> {
        let is_meta = MetaSegment::is_sound(image.bytes(), self.store.format, &self.inlining);
        if is_meta { Ok(image) } else { Err(EngineError::Corrupt(page, PageFault::Contents)) }
    }
}
