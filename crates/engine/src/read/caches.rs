//! The read caches of a store: index pages, and values of the value log.
//!
//! Entries are keyed by address and by the generation of the extent (how often it was opened). A
//! generation never repeats, so the contents of an earlier generation cannot be mistaken for the
//! current ones, and entries need no invalidation. Readers get addresses only from an index that
//! refers to them, and extents are not reused until those readers have left (epochs and pins of
//! `crate::space`). The generation at lookup is therefore the generation of the page meant, as in
//! the check of a page that is read. Entries of dead pages leave the cache by normal eviction.
//!
//! Only client reads use the caches: Gets and Seeks as point accesses, Nexts and readahead as
//! scans. Flush, compaction and collection neither look up nor insert. Pinned segments are always
//! in memory and never enter the cache. Cost: a lookup is charged as one hash of a key; without a
//! cache it is one comparison.

use std::cell::{Cell, RefCell};

use runtime::{IoClass, PageImage, mix64};

use super::cache::{Access, Cache, Key};
use super::filter::key_hash;
use super::locate::Located;
use super::search::{Pending, Step, look_in};
use crate::effort::Effort;
use crate::engine::Inner;
use crate::error::EngineError;
use crate::format::pointer::Pointer;
use crate::format::value::Value;
use crate::medium::{Medium, PageNo};
use crate::options::Options;
use crate::planted::Fault;
use crate::stats::CacheStats;
use crate::version::Version;

/// A page of one generation of its extent.
#[derive(Clone, Copy, PartialEq, Eq)]
struct PageKey {
    page: PageNo,
    generation: u64,
}

impl Key for PageKey {
    fn hash(&self) -> u64 {
        mix64(u64::from(self.page.0) ^ self.generation.rotate_left(32))
    }
}

/// An object of one generation of its extent. Several objects may begin in one piece, so the key's
/// hash is included.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ValueKey {
    pointer: Pointer,
    generation: u64,
    key_hash: u64,
}

impl Key for ValueKey {
    fn hash(&self) -> u64 {
        mix64(self.key_hash ^ self.generation)
    }
}

/// The cache key of an entry from the value log.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DataKey {
    Page(PageKey),
    Value(ValueKey),
}

impl Key for DataKey {
    fn hash(&self) -> u64 {
        match self {
            Self::Page(key) => key.hash(),
            Self::Value(key) => key.hash(),
        }
    }
}

/// A cached entry from the value log.
enum Data {
    /// A page with several values.
    Page(PageImage),
    /// A key and its value. The key is stored because two keys may have the same hash.
    Value(Box<[u8]>, Value),
}

type Pages = RefCell<Cache<PageKey, PageImage>>;
type Values = RefCell<Cache<DataKey, Data>>;

/// The caches of a store, if the design has any.
pub(crate) struct Caches {
    pages: Option<Pages>,
    values: Option<Values>,
    /// The longest value that is cached together with its page, in bytes; 0 for none.
    value_pages_up_to: u32,
    stats: Cell<CacheStats>,
}

/// An entry may use at most this fraction (1/8) of the value cache, so that no single value evicts
/// all others.
const LARGEST_PART: u64 = 8;

impl Caches {
    pub(crate) fn new(options: &Options) -> Self {
        let (pages, values) = (options.page_cache_bytes, options.value_cache_bytes);
        Self {
            pages: (pages > 0).then(|| RefCell::new(Cache::new(pages))),
            values: (values > 0).then(|| RefCell::new(Cache::new(values))),
            value_pages_up_to: options.value_pages_up_to,
            stats: Cell::default(),
        }
    }

    /// Returns the number of bytes that the caches hold.
    pub(crate) fn bytes(&self) -> u64 {
        let pages = self.pages.as_ref().map_or(0, |cache| cache.borrow().bytes());
        pages + self.values.as_ref().map_or(0, |cache| cache.borrow().bytes())
    }

    pub(crate) fn stats(&self) -> CacheStats {
        self.stats.get()
    }

    fn count(&self, count: impl FnOnce(&mut CacheStats)) {
        let mut stats = self.stats.get();
        count(&mut stats);
        self.stats.set(stats);
    }

    /// Whether the store has a cache.
    pub(crate) fn are_there(&self) -> bool {
        self.pages.is_some() || self.values.is_some()
    }

    /// Returns the number of cache probes for `pages` page reads; 0 without a page cache.
    pub(crate) fn looks_for_pages(&self, pages: u32) -> u32 {
        if self.pages.is_some() { pages } else { 0 }
    }

    /// Whether the store has a page cache.
    pub(crate) fn has_pages(&self) -> bool {
        self.pages.is_some()
    }

    /// Whether the store has a value cache.
    pub(crate) fn has_values(&self) -> bool {
        self.values.is_some()
    }

    /// Whether short values are cached together with their pages.
    pub(crate) fn has_value_pages(&self) -> bool {
        self.values.is_some() && self.value_pages_up_to > 0
    }
}

impl<M: Medium> Inner<M> {
    /// Continues a search for `key` if the page that it waits for is in the cache. Returns the
    /// search's next step and the effort.
    #[inline(never)]
    pub(crate) fn search_cached(
        &self,
        version: &Version,
        key: &[u8],
        pending: &Pending,
    ) -> Option<(Step, Effort)> {
        let image = self.cached_page(pending.at.page, Access::Point)?;
        let mut effort = Effort { hashes: self.caches.looks_for_pages(1), ..Effort::default() };
        let format = self.store.format;
        let told = look_in(pending.at, &image, key, format, &mut effort);
        let step = pending.clone().go_on(told, version, key, format, &mut effort);
        Some((step, effort))
    }

    /// Returns an index page from the page cache.
    #[inline]
    pub(crate) fn cached_page(&self, page: PageNo, access: Access) -> Option<PageImage> {
        self.caches.pages.as_ref().and_then(|cache| self.page_in(cache, page, access))
    }

    #[inline(never)]
    fn page_in(&self, cache: &Pages, page: PageNo, access: Access) -> Option<PageImage> {
        let image = cache.borrow_mut().get(&self.page_key(page), access)?.clone();
        self.caches.count(|stats| stats.page_hits += 1);
        Some(image)
    }

    /// Inserts an index page into the page cache. Requires: a client read the page, and its checks
    /// passed.
    #[inline]
    pub(crate) fn keep_page(&self, page: PageNo, image: &PageImage, access: Access) {
        if let Some(cache) = &self.caches.pages {
            self.keep_page_in(cache, page, image, access);
        }
    }

    #[inline(never)]
    fn keep_page_in(&self, cache: &Pages, page: PageNo, image: &PageImage, access: Access) {
        self.caches.count(|stats| stats.page_misses += 1);
        let bytes = u64::from(self.store.shape.page_bytes);
        cache.borrow_mut().insert(self.page_key(page), image.clone(), bytes, access);
    }

    /// Returns the value of `key` at `pointer` if the cache holds it, alone or with its page.
    /// Counts a miss otherwise.
    pub(crate) fn cached_value(
        &self,
        key: &[u8],
        pointer: Pointer,
        access: Access,
    ) -> Option<Value> {
        let value = self.cached_value_if_any(key, pointer, access);
        if value.is_none() && self.caches.has_values() {
            self.caches.count(|stats| stats.value_misses += 1);
        }
        value
    }

    /// Like [`Self::cached_value`], but does not count a miss: the caller may leave the read to
    /// another component, which counts it.
    pub(crate) fn cached_value_if_any(
        &self,
        key: &[u8],
        pointer: Pointer,
        access: Access,
    ) -> Option<Value> {
        let cache = self.caches.values.as_ref()?;
        let in_page = if self.caches.has_value_pages() {
            self.value_in_cached_page(cache, key, pointer, access)
        } else {
            None
        };
        let is_in_page = in_page.is_some();
        let value = in_page.or_else(|| self.value_in(cache, key, pointer, access))?;
        self.caches.count(|stats| {
            stats.value_hits += 1;
            stats.value_page_hits += u64::from(is_in_page);
        });
        Some(value)
    }

    fn value_in(
        &self,
        cache: &Values,
        key: &[u8],
        pointer: Pointer,
        access: Access,
    ) -> Option<Value> {
        match cache.borrow_mut().get(&DataKey::Value(self.value_key(key, pointer)), access)? {
            Data::Value(of, value) if **of == *key => Some(value.clone()),
            _ => None,
        }
    }

    #[inline(never)]
    fn value_in_cached_page(
        &self,
        cache: &Values,
        key: &[u8],
        pointer: Pointer,
        access: Access,
    ) -> Option<Value> {
        let (page, _) = self.store.format.locate(pointer);
        match cache.borrow_mut().get(&DataKey::Page(self.page_key(page)), access)? {
            Data::Page(image) => self.store.whole_value_in(image, key, pointer),
            Data::Value(..) => None,
        }
    }

    /// Replaces the location that a Get found with the value, if the value is in the cache.
    pub(crate) async fn look_for_value(&self, key: &[u8], located: Located) -> Located {
        let Located::At(pointer) = located else { return located };
        self.spend_look_for_value().await;
        let value = self.cached_value(key, pointer, Access::Point);
        value.map_or(located, |value| Located::Known(Some(value)))
    }

    /// Charges the processor time of a value cache lookup.
    pub(crate) async fn spend_look_for_value(&self) {
        let cpu = &self.store.cpu;
        let looks = 1 + usize::from(self.caches.has_value_pages());
        cpu.cores.spend(cpu.costs.of_hashes(looks)).await;
    }

    /// Reads a value for a Get and inserts it into the cache, with its page if the value is short.
    pub(crate) async fn read_and_keep(
        &self,
        key: &[u8],
        pointer: Pointer,
        flash_reads: &mut u32,
    ) -> Result<Value, EngineError> {
        let (store, class) = (&self.store, IoClass::ClientRead);
        if store.format.most_pages(pointer).is_some_and(|pages| pages > 1) {
            let value = store.read_value(key, pointer, class, flash_reads).await?;
            self.keep_value(key, pointer, &value, None);
            return Ok(value);
        }
        let (page, _) = store.format.locate(pointer);
        let image = store.read_page(page, class).await?;
        *flash_reads += 1;
        let value = store.value_in(&image, key, pointer, class, flash_reads).await?;
        self.keep_value(key, pointer, &value, Some(&image));
        Ok(value)
    }

    /// Inserts a value that was read for a client into the cache: a short value with its page, if
    /// `image` has the page, other values alone.
    #[inline]
    pub(crate) fn keep_value(
        &self,
        key: &[u8],
        pointer: Pointer,
        value: &Value,
        image: Option<&PageImage>,
    ) {
        if let Some(cache) = &self.caches.values {
            let life = self.life_at(pointer);
            let page = image.filter(|_| {
                self.is_kept_with_page(value.len()) && self.store.fits_in_a_page(key, value)
            });
            match page {
                Some(image) => self.keep_value_page_in(cache, pointer, life, image),
                None => self.keep_value_in(cache, key, pointer, life, value),
            }
        }
    }

    /// Inserts a value of `value_bytes` bytes that was read from `image`. `life` is the generation
    /// of its extent at the time of the read; that generation may have ended since.
    pub(crate) fn keep_read(
        &self,
        key: &[u8],
        pointer: Pointer,
        life: u64,
        value_bytes: u32,
        image: &PageImage,
    ) {
        let Some(cache) = &self.caches.values else { return };
        self.caches.count(|stats| stats.value_misses += 1);
        if self.is_kept_with_page(value_bytes) {
            self.keep_value_page_in(cache, pointer, life, image);
        } else if let Some(value) = self.store.whole_value_in(image, key, pointer) {
            self.keep_value_in(cache, key, pointer, life, &value);
        }
    }

    /// Whether a value that fits in one page is cached with that page, if the page is at hand.
    fn is_kept_with_page(&self, value_bytes: u32) -> bool {
        value_bytes <= self.caches.value_pages_up_to
            && u64::from(self.store.shape.page_bytes) <= self.most_kept_bytes()
    }

    /// Returns the largest size of an entry of the value cache, in bytes.
    fn most_kept_bytes(&self) -> u64 {
        self.options.value_cache_bytes / LARGEST_PART
    }

    #[inline(never)]
    fn keep_value_page_in(&self, cache: &Values, pointer: Pointer, life: u64, image: &PageImage) {
        let (page, _) = self.store.format.locate(pointer);
        let (key, data) =
            (DataKey::Page(PageKey { page, generation: life }), Data::Page(image.clone()));
        let bytes = u64::from(self.store.shape.page_bytes);
        cache.borrow_mut().insert(key, data, bytes, Access::Point);
    }

    #[inline(never)]
    fn keep_value_in(
        &self,
        cache: &Values,
        key: &[u8],
        pointer: Pointer,
        life: u64,
        value: &Value,
    ) {
        let bytes = key.len() as u64 + u64::from(value.len());
        if bytes <= self.most_kept_bytes() {
            let data = Data::Value(key.into(), value.clone());
            let key =
                DataKey::Value(ValueKey { pointer, generation: life, key_hash: key_hash(key) });
            cache.borrow_mut().insert(key, data, bytes, Access::Point);
        }
    }

    /// Whether the page in which a value begins is in the cache.
    pub(crate) fn has_page_of(&self, pointer: Pointer) -> bool {
        let (page, _) = self.store.format.locate(pointer);
        let key = DataKey::Page(self.page_key(page));
        let cache = self.caches.values.as_ref().filter(|_| self.caches.has_value_pages());
        cache.is_some_and(|cache| cache.borrow().holds(&key))
    }

    fn page_key(&self, page: PageNo) -> PageKey {
        PageKey { page, generation: self.life_of(page) }
    }

    fn value_key(&self, key: &[u8], pointer: Pointer) -> ValueKey {
        ValueKey { pointer, generation: self.life_at(pointer), key_hash: key_hash(key) }
    }

    /// Returns the generation (how often it was opened) of the extent that holds an object.
    pub(crate) fn life_at(&self, pointer: Pointer) -> u64 {
        let (page, _) = self.store.format.locate(pointer);
        self.life_of(page)
    }

    /// Returns the generation of the extent of `page`.
    fn life_of(&self, page: PageNo) -> u64 {
        if self.planted.has(Fault::CacheForgetsGenerations) {
            return 0;
        }
        self.store.extents.borrow().generation(page)
    }
}
