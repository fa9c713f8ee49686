//! Reading pages and values, checked.

use std::ops::Range;

use runtime::{IoClass, PageImage};

use crate::error::EngineError;
use crate::format::data_page::{self, Found};
use crate::format::object::ObjectHead;
use crate::format::page::{self, Identity, PageFault};
use crate::format::pointer::Pointer;
use crate::format::value::Value;
use crate::medium::{ExtentId, Medium, MediumError, PageNo};
use crate::planted::Fault;
use crate::store::PageStore;

impl<M: Medium> PageStore<M> {
    /// Reads a page; reads of clients share what is under way.
    fn read_raw(
        &self,
        page: PageNo,
        class: IoClass,
    ) -> impl Future<Output = Result<PageImage, MediumError>> {
        self.share_if(class == IoClass::ClientRead, page, class)
    }

    /// Reads a page, or joins a read of it if that may be shared. Whoever joins a prefetch on demand
    /// makes it urgent.
    fn share_if(
        &self,
        is_shared: bool,
        page: PageNo,
        class: IoClass,
    ) -> impl Future<Output = Result<PageImage, MediumError>> {
        let joined = move || {
            if class == IoClass::ClientRead {
                self.medium.promote(page);
            }
        };
        let start = move || self.medium.read(page, class);
        self.shared_reads.read_if(is_shared, page, joined, start)
    }

    /// Reads a page and checks that it is what was written there.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`], [`EngineError::Medium`].
    pub async fn read_page(&self, page: PageNo, class: IoClass) -> Result<PageImage, EngineError> {
        let read = self.read_raw(page, class).await;
        self.check_or_rebuild(page, read, class).await
    }

    /// Checks that what was read is what was written to `page`. If it is not, the medium's redundancy is
    /// asked for the page, as `class`: that costs what [`Medium::read_versions`] does. A page that is
    /// whole costs nothing more than the check.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] if what was rebuilt is not whole either, [`EngineError::Medium`].
    pub async fn check_or_rebuild(
        &self,
        page: PageNo,
        read: Result<PageImage, MediumError>,
        class: IoClass,
    ) -> Result<PageImage, EngineError> {
        match self.check_page(page, read) {
            // In a box of its own, so that reads are not larger for what hardly ever happens.
            Err(fault) => Box::pin(self.rebuilt(page, fault, class)).await,
            Ok(image) => Ok(image),
        }
    }

    /// The page from redundancy, if it is whole; else what was wrong at first.
    async fn rebuilt(
        &self,
        page: PageNo,
        fault: EngineError,
        class: IoClass,
    ) -> Result<PageImage, EngineError> {
        if !matches!(fault, EngineError::Corrupt(..)) {
            return Err(fault);
        }
        let versions = self.medium.read_versions(page, class).await;
        let mut whole =
            versions.into_iter().filter_map(|image| self.check_page(page, Ok(image)).ok());
        let image = whole.next().ok_or(fault)?;
        self.count_rebuilt(1);
        Ok(image)
    }

    /// Checks that what was read is what was written to `page`. What a medium gave back behind that is
    /// left out: whoever copies the page would take it for a part of it.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`], [`EngineError::Medium`].
    pub fn check_page(
        &self,
        page: PageNo,
        read: Result<PageImage, MediumError>,
    ) -> Result<PageImage, EngineError> {
        let image = read?;
        match page::check(&image, self.identity(page)) {
            Ok(length) if length == image.bytes().len() => Ok(image),
            Err(fault) if !self.believes(fault) => Err(EngineError::Corrupt(page, fault)),
            _ => Ok(page::without_padding(image)),
        }
    }

    /// Whether an index may refer to `page`: it was handed out for that in this life of its extent. Pages of the journal it does not.
    pub fn may_be_referred_to(&self, page: PageNo) -> bool {
        self.extents.borrow().may_be_referred_to(page)
    }

    /// Whether a planted bug takes a page in spite of what is wrong with it.
    fn believes(&self, fault: PageFault) -> bool {
        let is_whole = matches!(
            fault,
            PageFault::Misdirected { .. }
                | PageFault::Stale { .. }
                | PageFault::Earlier { .. }
                | PageFault::Foreign
        );
        self.planted.has(Fault::SkipChecksum)
            || is_whole && self.planted.has(Fault::BelieveStalePages)
    }

    /// What `page` has to say of itself.
    pub(crate) fn identity(&self, page: PageNo) -> Identity {
        let (generation, run) = self.extents.borrow().stamp(page);
        Identity { page, generation, store: self.id.get(), run }
    }

    /// Reads the value that `pointer` says `key` has.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`], [`EngineError::Medium`].
    pub async fn read_value(
        &self,
        key: &[u8],
        pointer: Pointer,
        class: IoClass,
        flash_reads: &mut u32,
    ) -> Result<Value, EngineError> {
        let (page, _) = self.format.locate(pointer);
        if let Some(pages @ 2..) = self.format.most_pages(pointer) {
            return self.read_run_of(key, page, pages, class, flash_reads).await;
        }
        // As `read_page` does, without a future more on the path of each Get.
        let read = self.read_raw(page, class).await;
        let image = self.check_or_rebuild(page, read, class).await?;
        *flash_reads += 1;
        match self.found_in(&image, key, pointer)? {
            Found::Whole(value) => Ok(value),
            Found::Large(head, pages) => {
                self.read_large(page, head, pages, class, flash_reads).await
            }
        }
    }

    /// Reads a large value of at most `pages` pages at once.
    async fn read_run_of(
        &self,
        key: &[u8],
        first: PageNo,
        pages: u32,
        class: IoClass,
        flash_reads: &mut u32,
    ) -> Result<Value, EngineError> {
        let left = self.shape.pages_per_extent - first.0 % self.shape.pages_per_extent;
        let mut images = self.medium.read_run(first, pages.min(left), class).await.into_iter();
        *flash_reads += images.len() as u32;
        let image = images.next().expect("the page itself was read");
        let image = self.check_or_rebuild(first, image, class).await?;
        let Some(Found::Large(head, pages)) = data_page::find(image.bytes(), 0, key) else {
            return Err(EngineError::Corrupt(first, PageFault::Contents));
        };
        // What was read beyond the object, and may not even be there, is nobody's.
        let mut tails = Vec::new();
        for (number, read) in (1..pages).zip(images) {
            let page = PageNo(first.0 + number);
            tails.push((number, self.check_or_rebuild(page, read, class).await?));
        }
        self.joined(first, head, pages, &tails)
    }

    /// Reads a page, sharing the read with whoever needs it at the same time, and checks it.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`], [`EngineError::Medium`].
    pub async fn read_shared(
        &self,
        page: PageNo,
        class: IoClass,
    ) -> Result<PageImage, EngineError> {
        let read = self.share_if(true, page, class).await;
        self.check_or_rebuild(page, read, class).await
    }

    /// The value that `pointer` says `key` has in a page that was read; a large one's further pages
    /// are read.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`], [`EngineError::Medium`].
    pub async fn value_in(
        &self,
        image: &PageImage,
        key: &[u8],
        pointer: Pointer,
        class: IoClass,
        flash_reads: &mut u32,
    ) -> Result<Value, EngineError> {
        match self.found_in(image, key, pointer)? {
            Found::Whole(value) => Ok(value),
            Found::Large(head, pages) => {
                let (page, _) = self.format.locate(pointer);
                self.read_large(page, head, pages, class, flash_reads).await
            }
        }
    }

    /// The value that `pointer` says `key` has in a page that was read, if all of it is there.
    pub fn whole_value_in(&self, image: &PageImage, key: &[u8], pointer: Pointer) -> Option<Value> {
        match self.found_in(image, key, pointer) {
            Ok(Found::Whole(value)) => Some(value),
            Ok(Found::Large(..)) | Err(_) => None,
        }
    }

    /// What a page that was read has where `pointer` says that `key` is.
    fn found_in<'a>(
        &self,
        image: &'a PageImage,
        key: &[u8],
        pointer: Pointer,
    ) -> Result<Found<'a>, EngineError> {
        let (page, piece) = self.format.locate(pointer);
        match data_page::find(image.bytes(), piece, key) {
            Some(Found::Whole(value)) if !self.fits_in_a_page(key, &value) => None,
            found => found,
        }
        .ok_or(EngineError::Corrupt(page, PageFault::Contents))
    }

    /// Whether an object needs no page but the one that it begins in.
    pub fn fits_in_a_page(&self, key: &[u8], value: &Value) -> bool {
        data_page::fits_in_a_page(self.shape.payload_bytes, key.len(), value.len())
    }

    /// Pages that a collection reads side by side.
    pub fn batch_pages(&self) -> u32 {
        4 * self.shape.parallelism
    }

    /// The places in an extent, in batches of so many pages.
    pub fn batches(&self, id: ExtentId, pages: u32) -> impl Iterator<Item = Range<u32>> + use<M> {
        let cursor = self.extents.borrow().get(id).cursor;
        (0..cursor).step_by(pages as usize).map(move |from| from..cursor.min(from + pages))
    }

    /// A batch of an extent's pages, read and checked, in order.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`], [`EngineError::Medium`].
    pub async fn read_batch(
        &self,
        id: ExtentId,
        batch: Range<u32>,
    ) -> Result<Vec<(PageNo, PageImage)>, EngineError> {
        let holes = self.extents.borrow().get(id).holes.clone();
        let pages = batch.map(|index| self.shape.page(id, index));
        let pages: Vec<PageNo> = pages.filter(|page| !holes.contains(page)).collect();
        self.read_pages(&pages).await
    }

    /// Pages for a collection, read side by side and checked.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`], [`EngineError::Medium`].
    pub async fn read_pages(
        &self,
        pages: &[PageNo],
    ) -> Result<Vec<(PageNo, PageImage)>, EngineError> {
        let reads = pages.iter().map(|page| (*page, self.medium.read(*page, IoClass::GcRead)));
        let reads: Vec<_> = reads.collect();
        let mut images = Vec::with_capacity(reads.len());
        for (page, read) in reads {
            let image = self.check_or_rebuild(page, read.await, IoClass::GcRead).await?;
            images.push((page, image));
        }
        Ok(images)
    }

    /// Reads the further pages of a large value, all at once: `pages` hold the object.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`], [`EngineError::Medium`].
    pub async fn read_large(
        &self,
        first: PageNo,
        head: ObjectHead<'_>,
        pages: u32,
        class: IoClass,
        flash_reads: &mut u32,
    ) -> Result<Value, EngineError> {
        let in_place = first.0 % self.shape.pages_per_extent;
        if !self.can_have(&head, pages) || in_place + pages > self.shape.pages_per_extent {
            return Err(EngineError::Corrupt(first, PageFault::Contents));
        }
        let reads: Vec<_> =
            (1..pages).map(|number| self.medium.read(PageNo(first.0 + number), class)).collect();
        let mut tails = Vec::with_capacity(reads.len());
        for (number, tail) in (1..).zip(reads) {
            let page = PageNo(first.0 + number);
            tails.push((number, self.check_or_rebuild(page, tail.await, class).await?));
            *flash_reads += 1;
        }
        self.joined(first, head, pages, &tails)
    }

    /// Whether an object takes as many pages as its first one says.
    fn can_have(&self, head: &ObjectHead<'_>, pages: u32) -> bool {
        data_page::pages_if_placed(&self.shape, 0, head) == Some(pages)
    }

    /// The value of an object from all of its pages.
    fn joined(
        &self,
        first: PageNo,
        head: ObjectHead<'_>,
        pages: u32,
        tails: &[(u32, PageImage)],
    ) -> Result<Value, EngineError> {
        let is_all = self.can_have(&head, pages) && tails.len() + 1 == pages as usize;
        let parts = || tails.iter().map(part_of).collect::<Option<Vec<&[u8]>>>();
        let value = is_all.then(parts).flatten().and_then(|parts| head.value_with(&parts));
        value.ok_or(EngineError::Corrupt(first, PageFault::Contents))
    }

    /// A pointer to an object that was read in `page`; `None` if the page cannot have held it.
    pub(crate) fn pointer_to(
        &self,
        page: PageNo,
        piece: u32,
        head: &ObjectHead<'_>,
    ) -> Option<Pointer> {
        let pages = data_page::pages_if_placed(&self.shape, piece, head)?;
        let generation = self.extents.borrow().generation(page);
        Some(self.format.pointer(page, piece, generation, pages))
    }
}

/// What a further page holds of a large object.
fn part_of((number, image): &(u32, PageImage)) -> Option<&[u8]> {
    data_page::tail_part(image.bytes(), *number)
}
