//! Reading pages and values, checked.

use runtime::{IoClass, PageImage};

use crate::Value;
use crate::error::EngineError;
use crate::format::data_page::{self, Found};
use crate::format::meta_segment::MetaSegment;
use crate::format::object::ObjectHead;
use crate::format::page;
use crate::format::pointer::Pointer;
use crate::planted::Fault;
use crate::store::PageStore;
use crate::store::medium::{ExtentId, Medium, PageNo, Unreadable};

impl<M: Medium> PageStore<M> {
    /// Reads a page; reads of clients share what is under way.
    async fn read_raw(&self, page: PageNo, class: IoClass) -> Result<PageImage, EngineError> {
        let read = if class == IoClass::ClientRead {
            self.share(page, class).await
        } else {
            self.medium.read(page, class).await
        };
        read.map_err(|_| EngineError::Corrupt(page))
    }

    /// Reads a page, or joins a read of it. Whoever joins a prefetch on demand makes it urgent.
    async fn share(&self, page: PageNo, class: IoClass) -> Result<PageImage, Unreadable> {
        let joined = || {
            if class == IoClass::ClientRead {
                self.medium.hurry(page);
            }
        };
        self.shared_reads.read(page, joined, || self.medium.read(page, class)).await
    }

    /// Reads a page and checks that it is what was written there.
    pub(crate) async fn read_page(
        &self,
        page: PageNo,
        class: IoClass,
    ) -> Result<PageImage, EngineError> {
        let image = self.read_raw(page, class).await?;
        self.check_page(page, image)
    }

    pub(crate) fn check_page(
        &self,
        page: PageNo,
        image: PageImage,
    ) -> Result<PageImage, EngineError> {
        let is_intact = page::is_intact(&image, page) || self.planted.has(Fault::SkipChecksum);
        if is_intact { Ok(image) } else { Err(EngineError::Corrupt(page)) }
    }

    /// Reads a page that must be a meta segment.
    pub(crate) async fn read_meta(
        &self,
        page: PageNo,
        class: IoClass,
    ) -> Result<PageImage, EngineError> {
        let image = self.read_raw(page, class).await?;
        self.check_meta(page, Ok(image))
    }

    /// Checks a page that was read and must be a meta segment.
    pub(crate) fn check_meta(
        &self,
        page: PageNo,
        read: Result<PageImage, Unreadable>,
    ) -> Result<PageImage, EngineError> {
        let image = read.map_err(|_| EngineError::Corrupt(page))?;
        let image = self.check_page(page, image)?;
        let is_meta = MetaSegment::new(image.bytes(), self.format).is_some();
        if is_meta { Ok(image) } else { Err(EngineError::Corrupt(page)) }
    }

    /// Reads the value that `pointer` says `key` has.
    pub(crate) async fn read_value(
        &self,
        key: &[u8],
        pointer: Pointer,
        class: IoClass,
        flash_reads: &mut u32,
    ) -> Result<Value, EngineError> {
        let image = self.read_page(self.format.locate(pointer).0, class).await?;
        *flash_reads += 1;
        self.value_in(&image, key, pointer, class, flash_reads).await
    }

    /// Reads a page, sharing the read with whoever needs it at the same time, and checks it.
    pub(crate) async fn read_shared(
        &self,
        page: PageNo,
        class: IoClass,
    ) -> Result<PageImage, EngineError> {
        let read = self.share(page, class).await;
        self.check_page(page, read.map_err(|_| EngineError::Corrupt(page))?)
    }

    /// The value that `pointer` says `key` has in a page that was read; a large one's further pages
    /// are read.
    pub(crate) async fn value_in(
        &self,
        image: &PageImage,
        key: &[u8],
        pointer: Pointer,
        class: IoClass,
        flash_reads: &mut u32,
    ) -> Result<Value, EngineError> {
        let (page, piece) = self.format.locate(pointer);
        match data_page::find(image.bytes(), piece, key) {
            Some(Found::Whole(value)) => Ok(value),
            Some(Found::Large(head)) => self.read_large(page, head, class, flash_reads).await,
            None => Err(EngineError::Corrupt(page)),
        }
    }

    /// Pages that a collection reads side by side.
    pub(crate) fn batch_pages(&self) -> u32 {
        4 * self.shape.parallelism
    }

    /// The places in an extent where batches of its pages begin.
    pub(crate) fn batches(&self, id: ExtentId) -> impl Iterator<Item = u32> + use<M> {
        let cursor = self.extents.borrow().get(id).cursor;
        (0..cursor).step_by(self.batch_pages() as usize)
    }

    /// A batch of an extent's pages, read and checked, in order.
    pub(crate) async fn read_batch(
        &self,
        id: ExtentId,
        from: u32,
    ) -> Result<Vec<(PageNo, PageImage)>, EngineError> {
        let (cursor, holes) = {
            let extents = self.extents.borrow();
            let extent = extents.get(id);
            (extent.cursor, extent.holes.clone())
        };
        let to = cursor.min(from + self.batch_pages());
        let reads: Vec<_> = (from..to)
            .map(|index| self.shape.page(id, index))
            .filter(|page| !holes.contains(page))
            .map(|page| (page, self.medium.read(page, IoClass::GcRead)))
            .collect();
        let mut batch = Vec::with_capacity(reads.len());
        for (page, read) in reads {
            let image = read.await.map_err(|_| EngineError::Corrupt(page))?;
            batch.push((page, self.check_page(page, image)?));
        }
        Ok(batch)
    }

    /// Reads the further pages of a large value, all at once.
    pub(crate) async fn read_large(
        &self,
        first: PageNo,
        head: ObjectHead<'_>,
        class: IoClass,
        flash_reads: &mut u32,
    ) -> Result<Value, EngineError> {
        let payload = self.shape.payload_bytes;
        let pages = data_page::pages_of_large(payload, head.key.len(), head.value_len);
        let tails: Vec<_> =
            (1..pages).map(|number| self.medium.read(PageNo(first.0 + number), class)).collect();
        let mut bytes = head.first_part().to_vec();
        for (number, tail) in (1..).zip(tails) {
            let page = PageNo(first.0 + number);
            let image = tail.await.map_err(|_| EngineError::Corrupt(page))?;
            *flash_reads += 1;
            let image = self.check_page(page, image)?;
            let part = data_page::tail_part(image.bytes(), number);
            bytes.extend_from_slice(part.ok_or(EngineError::Corrupt(page))?);
        }
        if head.is_synthetic {
            return head.value().ok_or(EngineError::Corrupt(first));
        }
        if bytes.len() == head.value_len as usize {
            Ok(Value::from_bytes(&bytes))
        } else {
            Err(EngineError::Corrupt(first))
        }
    }
}
