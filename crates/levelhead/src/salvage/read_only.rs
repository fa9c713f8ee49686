//! A medium that takes no writes: nothing of a damaged store is changed while it is read.

use std::future::{Future, ready};

use pages::{ExtentId, Medium, MediumError, PageNo, Shape, Stream};
use runtime::{IoClass, PageImage};

/// What reads go to.
pub(super) struct ReadOnly<M>(pub M);

impl<M: Medium> Medium for ReadOnly<M> {
    fn shape(&self) -> Shape {
        self.0.shape()
    }

    fn open(&self, _: ExtentId, _: u64, _: Stream) -> Result<(), MediumError> {
        Err(MediumError::ReadOnly)
    }

    fn append(
        &self,
        _: PageNo,
        _: Vec<PageImage>,
        _: IoClass,
    ) -> impl Future<Output = Result<(), MediumError>> + use<M> {
        ready(Err(MediumError::ReadOnly))
    }

    fn sync(&self, _: Stream) -> impl Future<Output = Result<(), MediumError>> + use<M> {
        ready(Ok(())) // nothing was written
    }

    fn read(
        &self,
        page: PageNo,
        class: IoClass,
    ) -> impl Future<Output = Result<PageImage, MediumError>> + use<M> {
        self.0.read(page, class)
    }

    fn read_versions(
        &self,
        page: PageNo,
        class: IoClass,
    ) -> impl Future<Output = Vec<PageImage>> + use<M> {
        self.0.read_versions(page, class)
    }

    fn read_run(
        &self,
        first: PageNo,
        pages: u32,
        class: IoClass,
    ) -> impl Future<Output = Vec<Result<PageImage, MediumError>>> + use<M> {
        self.0.read_run(first, pages, class)
    }

    fn promote(&self, page: PageNo) {
        self.0.promote(page);
    }

    fn set_write_stall(&self, _: bool) {}

    fn frontier(
        &self,
        extent: ExtentId,
    ) -> impl Future<Output = Result<u32, MediumError>> + use<M> {
        self.0.frontier(extent)
    }

    fn is_written_anywhere(&self) -> bool {
        self.0.is_written_anywhere()
    }

    fn unreadable_is_lost(&self, extent: ExtentId) -> bool {
        self.0.unreadable_is_lost(extent)
    }

    fn release(&self, _: ExtentId) -> impl Future<Output = Result<(), MediumError>> + use<M> {
        ready(Err(MediumError::ReadOnly))
    }

    fn wear(&self, extent: ExtentId, stream: Stream) -> u32 {
        self.0.wear(extent, stream)
    }
}
