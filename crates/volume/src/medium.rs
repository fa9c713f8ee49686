//! The volume's implementation of `Medium`.

use std::future::Future;

use engine::{ExtentId, Medium, MediumError, OpenedFor, PageNo, Shape, Stream};
use runtime::{IoClass, PageImage};

use crate::planted::Fault;
use crate::run;
use crate::volume::Volume;

impl<M: Medium> Medium for Volume<M> {
    fn shape(&self) -> Shape {
        self.inner.stripes.shape()
    }

    fn open(&self, extent: ExtentId, generation: u64, stream: Stream) -> Result<(), MediumError> {
        self.inner.open_extent(extent, generation, stream)
    }

    fn append(
        &self,
        first: PageNo,
        pages: Vec<PageImage>,
        class: IoClass,
    ) -> impl Future<Output = Result<(), MediumError>> + use<M> {
        self.inner.append_stripe(first, pages, class)
    }

    fn sync(&self, stream: Stream) -> impl Future<Output = Result<(), MediumError>> + use<M> {
        self.inner.sync_stream(stream)
    }

    fn read(
        &self,
        page: PageNo,
        class: IoClass,
    ) -> impl Future<Output = Result<PageImage, MediumError>> + use<M> {
        self.inner.read_page(page, class)
    }

    fn read_versions(
        &self,
        page: PageNo,
        class: IoClass,
    ) -> impl Future<Output = Vec<PageImage>> + use<M> {
        self.inner.read_versions(page, class)
    }

    fn read_run(
        &self,
        first: PageNo,
        pages: u32,
        class: IoClass,
    ) -> impl Future<Output = Vec<Result<PageImage, MediumError>>> + use<M> {
        self.inner.read_pages(first, pages, class)
    }

    fn promote(&self, page: PageNo) {
        self.inner.promote_page(page);
    }

    fn set_write_stall(&self, is_on: bool) {
        if let Some(windows) = self.inner.windows() {
            windows.set_write_stall(is_on);
        }
        for taker in self.inner.takers() {
            taker.medium.set_write_stall(is_on);
        }
    }

    /// Returns the frontier without I/O: it is known since [`Volume::recover`], which brought all
    /// members to the same state.
    fn frontier(
        &self,
        extent: ExtentId,
    ) -> impl Future<Output = Result<u32, MediumError>> + use<M> {
        let inner = &self.inner;
        let extents = inner.extents.borrow();
        let extent = extents.get(extent);
        let is_known = extent.is_live && !inner.is_anywhere;
        let rows = match extent.rows {
            _ if !is_known => 0,
            _ if extent.is_closed => inner.stripes.rows(),
            rows => rows,
        };
        std::future::ready(Ok(rows * inner.stripes.stripe_pages()))
    }

    fn knows(&self, extent: ExtentId) -> bool {
        self.inner.extents.borrow().get(extent).is_live
    }

    fn is_written_anywhere(&self) -> bool {
        self.inner.is_anywhere
    }

    fn unreadable_is_lost(&self, extent: ExtentId) -> bool {
        let may_be_synced = {
            let extents = self.inner.extents.borrow();
            extents.get(extent).is_live && !extents.get(extent).seems_unsynced
        };
        let heeds = !self.inner.planted.has(Fault::UnreadAsUnwritten);
        heeds && may_be_synced && self.inner.taker(0).medium.unreadable_is_lost(extent)
    }

    fn opened_for(&self, extent: ExtentId) -> Option<OpenedFor> {
        let extents = self.inner.extents.borrow();
        let it = extents.get(extent);
        let is_known = !self.inner.planted.has(Fault::ForgetOpenings);
        let is_certain = is_known && it.is_live && !it.may_be_older;
        is_certain.then(|| OpenedFor {
            stream: it.stream,
            run: run::count(it.run),
            generation: it.generation,
        })
    }

    fn release(&self, extent: ExtentId) -> impl Future<Output = Result<(), MediumError>> + use<M> {
        self.inner.release_extent(extent)
    }

    fn wear(&self, extent: ExtentId, stream: Stream) -> u32 {
        let wear = |taker: &crate::volume::Taker<M>| taker.medium.wear(extent, stream);
        self.inner.takers().iter().map(wear).max().unwrap_or(0)
    }
}
