//! Values of an iterator: reads of the current and of later values, and the number of values that
//! fit in its buffer.

use std::cell::Cell;
use std::rc::Rc;

use runtime::IoClass;

use super::EngineIterator;
use crate::error::EngineError;
use crate::format::pointer::Pointer;
use crate::format::value::Value;
use crate::iterate::snapshot::Snapshot;
use crate::iterate::value_reads::{Fetch, Item, UnderWay, fetch};
use crate::medium::{Medium, PageNo};
use crate::read::cache::Access;

impl<M: Medium> EngineIterator<M> {
    /// Starts the read of the current pair's value if reads of others will run in parallel with it.
    pub(super) fn start(&self, item: Item, snapshot: &Rc<Snapshot>, has_company: bool) -> Item {
        match item.value {
            Fetch::Demand(pointer) if has_company => {
                self.spawn_fetch(item, pointer, snapshot, IoClass::ClientRead)
            }
            _ => item,
        }
    }

    /// Starts the read of a later pair's value.
    pub(super) fn start_ahead(
        &self,
        item: Item,
        snapshot: &Rc<Snapshot>,
        is_asked_for: bool,
    ) -> Item {
        let Fetch::Demand(pointer) = item.value else { return item };
        let class = if is_asked_for { IoClass::ClientRead } else { IoClass::ValuePrefetch };
        self.inner.stats.borrow_mut().iterators.value_prefetches += u64::from(!is_asked_for);
        self.spawn_fetch(item, pointer, snapshot, class)
    }

    fn spawn_fetch(
        &self,
        item: Item,
        pointer: Pointer,
        snapshot: &Rc<Snapshot>,
        class: IoClass,
    ) -> Item {
        let (inner, snapshot) = (Rc::clone(&self.inner), Rc::clone(snapshot));
        let (pages, wanted, access) = (Rc::clone(&self.pages), item.key.clone(), item.access());
        let (page, _) = inner.store.format.locate(pointer);
        let class = Rc::new(Cell::new(class));
        let for_reads = Rc::clone(&class);
        let read = self.inner.store.handle.spawn("value prefetch", async move {
            let _snapshot = snapshot;
            fetch(&inner, &pages, &wanted, pointer, access, &for_reads).await
        });
        Item { value: Fetch::UnderWay(UnderWay { page, class, read }), ..item }
    }

    /// Waits for the value of a pair, and inserts it into the cache if it belongs there.
    pub(super) async fn finish(
        &self,
        item: Item,
        was_asked_for: bool,
    ) -> Result<(Box<[u8]>, Value), EngineError> {
        let (access, Item { key, value, to_cache }) = (item.access(), item);
        let value = self.value_of(&key, value, access, was_asked_for).await?;
        if let Some(pointer) = to_cache
            && !self.inner.has_page_of(pointer)
        {
            // Without its page: the keys that follow this one have their values on other pages.
            self.inner.keep_value(&key, pointer, &value, None);
        }
        Ok((key, value))
    }

    async fn value_of(
        &self,
        key: &[u8],
        value: Fetch,
        access: Access,
        was_asked_for: bool,
    ) -> Result<Value, EngineError> {
        match value {
            Fetch::Ready(value) => Ok(value),
            Fetch::Demand(pointer) => {
                let class = Cell::new(IoClass::ClientRead);
                fetch(&self.inner, &self.pages, key, pointer, access, &class).await
            }
            Fetch::UnderWay(value) => {
                let is_waited_for = was_asked_for && !value.read.is_finished();
                self.inner.stats.borrow_mut().iterators.value_prefetch_waits +=
                    u64::from(is_waited_for);
                if is_waited_for {
                    self.promote(&value);
                }
                value.read.await
            }
        }
    }

    /// Makes the reads of a value urgent: those in flight and those to come.
    fn promote(&self, value: &UnderWay) {
        value.class.set(IoClass::ClientRead);
        let payload = self.inner.store.shape.payload_bytes;
        let last = value.page.0 + self.longest.get() / payload;
        let medium_end = self.inner.store.shape.extents * self.inner.store.shape.pages_per_extent;
        for page in value.page.0..=last.min(medium_end - 1) {
            self.inner.store.medium.promote(PageNo(page));
        }
    }

    /// Returns the number of values being read. It includes the reads that previous Seeks left
    /// behind, so that a series of Seeks does not pile up unwanted reads.
    pub(super) fn under_way(&self) -> usize {
        Rc::strong_count(&self.pages) - 1 // each read holds a reference to the pages
    }

    /// Returns the number of values that fit in the iterator's buffer, estimated by the longest
    /// value expected or seen: pointers do not contain lengths, so the length of a value is known
    /// only after its read.
    pub(super) fn values_in_buffer(&self) -> u32 {
        let value = u64::from(self.longest.get());
        let page = u64::from(self.inner.store.shape.page_bytes);
        let takes = if value < page { value } else { value.next_multiple_of(page) };
        // Pages that are kept in addition to those of prefetched values have separate room.
        let buffer = self.buffer.bytes();
        let kept = self.options.kept_bytes(buffer, page);
        (buffer.saturating_sub(kept) / takes.max(1)).max(1) as u32
    }

    /// Returns the number of bytes read for a value of `len` bytes.
    pub(super) fn bytes_of_value(&self, len: u64) -> u64 {
        len.max(1).next_multiple_of(self.inner.store.shape.page_bytes.into())
    }

    /// Doubles the buffer after as many bytes were read as it holds, if memory allows.
    pub(super) fn grow_buffer(&self) {
        let more = self.buffer.bytes().min(self.options.buffer_bytes - self.buffer.bytes());
        if more > 0 && self.inner.grow_buffer(&self.hold, more) {
            self.buffer.add(more);
            let in_buffer = self.buffer.pages(&self.inner.store.shape);
            self.pages.borrow_mut().keep_most(self.options.pages_kept(in_buffer));
        }
    }
}
