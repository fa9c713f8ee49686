//! Reads pages and values, and checks them.

use std::ops::Range;

use runtime::{IoClass, PageImage};

use crate::error::EngineError;
use crate::format::data_page::Found;
use crate::format::object::ObjectHead;
use crate::format::page::{Identity, PageFault};
use crate::format::pointer::Pointer;
use crate::format::value::Value;
use crate::format::{data_page, page};
use crate::medium::{ExtentId, Medium, MediumError, PageNo};
use crate::planted::Fault;
use crate::space::PageStore;

impl<M: Medium> PageStore<M> {
    /// Reads a page. Client reads share a read that is in flight.
    fn read_raw(
        &self,
        page: PageNo,
        class: IoClass,
    ) -> impl Future<Output = Result<PageImage, MediumError>> {
        self.share_if(class == IoClass::ClientRead, page, class)
    }

    /// Reads a page, or joins a read of it that is in flight if `is_shared`. A client read that
    /// joins a prefetch makes it urgent.
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

    /// Reads a page and checks that it holds the contents written there.
    ///
    /// # Errors
    /// Returns [`EngineError::Corrupt`] for a damaged page, [`EngineError::Medium`] if the medium
    /// fails.
    pub async fn read_page(&self, page: PageNo, class: IoClass) -> Result<PageImage, EngineError> {
        let read = self.read_raw(page, class).await;
        self.check_or_rebuild(page, read, class).await
    }

    /// Checks that `read` is the page that was written to `page`. If it is damaged, the page is
    /// rebuilt from the medium's redundancy, as `class`; that costs one [`Medium::read_versions`].
    /// An intact page costs only the check.
    ///
    /// # Errors
    /// Returns [`EngineError::Corrupt`] if the rebuilt page is damaged too, [`EngineError::Medium`]
    /// if the medium fails.
    pub async fn check_or_rebuild(
        &self,
        page: PageNo,
        read: Result<PageImage, MediumError>,
        class: IoClass,
    ) -> Result<PageImage, EngineError> {
        match self.check_page(page, read) {
            // Boxed, so that this rare case does not make every read's future larger.
            Err(fault) => Box::pin(self.rebuilt(page, fault, class)).await,
            Ok(image) => Ok(image),
        }
    }

    /// Returns an intact version of the page from redundancy, else the original error.
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

    /// Checks that `read` is the page that was written to `page`. Removes the padding that a medium
    /// returned after the page, because a copy of the page would otherwise include it.
    ///
    /// # Errors
    /// Returns [`EngineError::Corrupt`] for a damaged page, [`EngineError::Medium`] if the medium
    /// fails.
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

    /// Whether an index may refer to `page`: the page was handed out for an index in this
    /// generation of its extent. False for journal pages.
    pub fn may_be_referred_to(&self, page: PageNo) -> bool {
        self.extents.borrow().may_be_referred_to(page)
    }

    /// Whether a planted bug accepts a page with this fault.
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

    /// Returns the identity that `page` must contain.
    pub(crate) fn identity(&self, page: PageNo) -> Identity {
        let (generation, run) = self.extents.borrow().stamp(page);
        Identity { page, generation, store: self.id.get(), run }
    }

    /// Reads the value of `key` at `pointer`. Adds the page reads to `flash_reads`.
    ///
    /// # Errors
    /// Returns [`EngineError::Corrupt`] for a damaged page, [`EngineError::Medium`] if the medium
    /// fails.
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
        // Same as `read_page`, without one more future on the path of each get.
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

    /// Reads a large value of at most `pages` pages with one read.
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
        // Pages read after the object do not belong to it and may not even exist.
        let mut tails = Vec::new();
        for (number, read) in (1..pages).zip(images) {
            let page = PageNo(first.0 + number);
            tails.push((number, self.check_or_rebuild(page, read, class).await?));
        }
        self.joined(first, head, pages, &tails)
    }

    /// Reads and checks a page, sharing the read with other readers that need it at the same time.
    ///
    /// # Errors
    /// Returns [`EngineError::Corrupt`] for a damaged page, [`EngineError::Medium`] if the medium
    /// fails.
    pub async fn read_shared(
        &self,
        page: PageNo,
        class: IoClass,
    ) -> Result<PageImage, EngineError> {
        let read = self.share_if(true, page, class).await;
        self.check_or_rebuild(page, read, class).await
    }

    /// Returns the value of `key` at `pointer` from the page `image` that was read before. Reads
    /// the further pages of a large value.
    ///
    /// # Errors
    /// Returns [`EngineError::Corrupt`] for a damaged page, [`EngineError::Medium`] if the medium
    /// fails.
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

    /// Returns the value of `key` at `pointer` from `image`; `None` if it is not stored there as a
    /// whole.
    pub fn whole_value_in(&self, image: &PageImage, key: &[u8], pointer: Pointer) -> Option<Value> {
        match self.found_in(image, key, pointer) {
            Ok(Found::Whole(value)) => Some(value),
            Ok(Found::Large(..)) | Err(_) => None,
        }
    }

    /// Returns the object that `image` holds at `pointer`, if its key is `key`.
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

    /// Whether an object fits into a single page.
    pub fn fits_in_a_page(&self, key: &[u8], value: &Value) -> bool {
        data_page::fits_in_a_page(self.shape.payload_bytes, key.len(), value.len())
    }

    /// Returns the number of pages that a collection reads in parallel.
    pub fn batch_pages(&self) -> u32 {
        4 * self.shape.parallelism
    }

    /// Returns the positions of an extent's pages, in batches of `pages`.
    pub fn batches(&self, id: ExtentId, pages: u32) -> impl Iterator<Item = Range<u32>> + use<M> {
        let cursor = self.extents.borrow().get(id).cursor;
        (0..cursor).step_by(pages as usize).map(move |from| from..cursor.min(from + pages))
    }

    /// Reads and checks a batch of an extent's pages, in order, without holes.
    ///
    /// # Errors
    /// Returns [`EngineError::Corrupt`] for a damaged page, [`EngineError::Medium`] if the medium
    /// fails.
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

    /// Reads and checks pages for a collection, in parallel.
    ///
    /// # Errors
    /// Returns [`EngineError::Corrupt`] for a damaged page, [`EngineError::Medium`] if the medium
    /// fails.
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

    /// Reads the further pages of a large value in parallel. The object has `pages` pages in all.
    ///
    /// # Errors
    /// Returns [`EngineError::Corrupt`] for a damaged page, [`EngineError::Medium`] if the medium
    /// fails.
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

    /// Whether the length of an object agrees with the number of pages that its first page states.
    fn can_have(&self, head: &ObjectHead<'_>, pages: u32) -> bool {
        data_page::pages_if_placed(&self.shape, 0, head) == Some(pages)
    }

    /// Joins the value of an object from all of its pages.
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

    /// Returns a pointer to an object that was read in `page`; `None` if the page cannot have held
    /// it.
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

/// Returns the part of a large object that a further page holds.
fn part_of((number, image): &(u32, PageImage)) -> Option<&[u8]> {
    data_page::tail_part(image.bytes(), *number)
}
