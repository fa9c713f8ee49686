//! Reading meta segments, checked.

use pages::error::EngineError;
use pages::format::page::PageFault;
use pages::medium::{Medium, MediumError, PageNo};
use runtime::{IoClass, PageImage};

use crate::format::meta_segment::MetaSegment;
use crate::lsm::Inner;

impl<M: Medium> Inner<M> {
    /// Reads a page that must be a meta segment.
    pub(crate) async fn read_meta(
        &self,
        page: PageNo,
        class: IoClass,
    ) -> Result<PageImage, EngineError> {
        let image = self.store.read_page(page, class).await?;
        self.checked_meta(page, image)
    }

    /// Checks a page that was read and must be a meta segment.
    pub(crate) fn check_meta(
        &self,
        page: PageNo,
        read: Result<PageImage, MediumError>,
    ) -> Result<PageImage, EngineError> {
        let image = self.store.check_page(page, read.map_err(EngineError::from)?)?;
        self.checked_meta(page, image)
    }

    fn checked_meta(&self, page: PageNo, image: PageImage) -> Result<PageImage, EngineError> {
        let is_meta = MetaSegment::is_sound(image.bytes(), self.store.format);
        if is_meta { Ok(image) } else { Err(EngineError::Corrupt(page, PageFault::Contents)) }
    }
}
