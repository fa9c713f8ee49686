//! A single medium, or a volume of several, as one type: a store on it is compiled once for both.

use std::future::Future;
use std::pin::Pin;

use engine::{ExtentId, Medium, MediumError, OpenedFor, PageNo, Shape, Stream};
use runtime::{FileRead, IoClass, PageImage};

use crate::volume::Volume;

/// A single medium, or a volume.
pub enum OneOrMany<M> {
    /// The single medium.
    One(M),
    /// The volume.
    Many(Volume<M>),
}

impl<M> OneOrMany<M> {
    /// Returns the volume, if it is one.
    pub fn volume(&self) -> Option<&Volume<M>> {
        match self {
            Self::One(_) => None,
            Self::Many(volume) => Some(volume),
        }
    }
}

impl<M: Clone> Clone for OneOrMany<M> {
    fn clone(&self) -> Self {
        match self {
            Self::One(medium) => Self::One(medium.clone()),
            Self::Many(volume) => Self::Many(volume.clone()),
        }
    }
}

/// A future of either. Those of volumes are four times as large; they are boxed, so that calls on a
/// single medium do not reserve space for them.
enum Either<One, T> {
    One(One),
    Many(Pin<Box<dyn Future<Output = T>>>),
}

impl<One: Future<Output = T>, T> Either<One, T> {
    async fn end(self) -> T {
        match self {
            Self::One(future) => future.await,
            Self::Many(future) => future.await,
        }
    }
}

macro_rules! on_either {
    ($self:expr, $medium:ident => $call:expr) => {
        match $self {
            OneOrMany::One($medium) => $call,
            OneOrMany::Many($medium) => $call,
        }
    };
}

/// Submits a command to either now, and returns its future.
macro_rules! of_either {
    ($self:expr, $medium:ident => $command:expr) => {
        match $self {
            OneOrMany::One($medium) => Either::One($command),
            OneOrMany::Many($medium) => Either::Many(Box::pin($command)),
        }
        .end()
    };
}

impl<M: Medium> Medium for OneOrMany<M> {
    fn shape(&self) -> Shape {
        on_either!(self, medium => medium.shape())
    }

    fn open(&self, extent: ExtentId, generation: u64, stream: Stream) -> Result<(), MediumError> {
        on_either!(self, medium => medium.open(extent, generation, stream))
    }

    fn append(
        &self,
        first: PageNo,
        pages: Vec<PageImage>,
        class: IoClass,
    ) -> impl Future<Output = Result<(), MediumError>> + use<M> {
        of_either!(self, medium => medium.append(first, pages, class))
    }

    fn append_run(
        &self,
        first: PageNo,
        pages: Vec<PageImage>,
        class: IoClass,
    ) -> impl Future<Output = Result<(), MediumError>> + use<M> {
        of_either!(self, medium => medium.append_run(first, pages, class))
    }

    fn run_pages(&self) -> u32 {
        on_either!(self, medium => medium.run_pages())
    }

    fn sync(&self, stream: Stream) -> impl Future<Output = Result<(), MediumError>> + use<M> {
        of_either!(self, medium => medium.sync(stream))
    }

    async fn append_durably(
        &self,
        stream: Stream,
        first: PageNo,
        pages: Vec<PageImage>,
        class: IoClass,
    ) -> Result<(), MediumError> {
        match self {
            Self::One(medium) => medium.append_durably(stream, first, pages, class).await,
            Self::Many(volume) => {
                Box::pin(volume.append_durably(stream, first, pages, class)).await
            }
        }
    }

    fn read(
        &self,
        page: PageNo,
        class: IoClass,
    ) -> impl Future<Output = Result<PageImage, MediumError>> + use<M> {
        of_either!(self, medium => medium.read(page, class))
    }

    fn file_read(&self, page: PageNo) -> Option<FileRead> {
        on_either!(self, medium => medium.file_read(page))
    }

    fn read_versions(
        &self,
        page: PageNo,
        class: IoClass,
    ) -> impl Future<Output = Vec<PageImage>> + use<M> {
        of_either!(self, medium => medium.read_versions(page, class))
    }

    fn read_run(
        &self,
        first: PageNo,
        pages: u32,
        class: IoClass,
    ) -> impl Future<Output = Vec<Result<PageImage, MediumError>>> + use<M> {
        of_either!(self, medium => medium.read_run(first, pages, class))
    }

    fn promote(&self, page: PageNo) {
        on_either!(self, medium => medium.promote(page));
    }

    fn set_write_stall(&self, is_on: bool) {
        on_either!(self, medium => medium.set_write_stall(is_on));
    }

    fn pauses(&self, class: IoClass) -> bool {
        on_either!(self, medium => medium.pauses(class))
    }

    fn frontier(
        &self,
        extent: ExtentId,
    ) -> impl Future<Output = Result<u32, MediumError>> + use<M> {
        of_either!(self, medium => medium.frontier(extent))
    }

    fn knows(&self, extent: ExtentId) -> bool {
        on_either!(self, medium => medium.knows(extent))
    }

    fn is_written_anywhere(&self) -> bool {
        on_either!(self, medium => medium.is_written_anywhere())
    }

    fn unreadable_is_lost(&self, extent: ExtentId) -> bool {
        on_either!(self, medium => medium.unreadable_is_lost(extent))
    }

    fn opened_for(&self, extent: ExtentId) -> Option<OpenedFor> {
        on_either!(self, medium => medium.opened_for(extent))
    }

    fn release(&self, extent: ExtentId) -> impl Future<Output = Result<(), MediumError>> + use<M> {
        of_either!(self, medium => medium.release(extent))
    }

    fn wear(&self, extent: ExtentId, stream: Stream) -> u32 {
        on_either!(self, medium => medium.wear(extent, stream))
    }
}
