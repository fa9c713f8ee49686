//! Searching the table.

use runtime::{IoClass, Nanos, PageImage};

use super::Inner;
use super::bucket::Slot;
use super::key_hash::KeyHash;
use super::located::Located;
use super::table::SlotNo;
use crate::effort::Effort;
use crate::error::EngineError;
use crate::format::data_page;
use crate::format::data_page::Found;
use crate::format::page::PageFault;
use crate::format::pointer::Pointer;
use crate::format::value::Value;
use crate::medium::Medium;
use crate::memtable::Entry;
use crate::space::extent::State;

/// The progress of the search for a key.
pub(crate) struct Search {
    pub hash: KeyHash,
    /// The number of the next probe.
    pub next: u32,
    /// The first probed slot that an insert may use, with its probe number.
    pub free: Option<(u32, SlotNo)>,
}

impl Search {
    pub(crate) fn new(hash: KeyHash) -> Self {
        Self { hash, next: 0, free: None }
    }
}

/// A slot with the signature of the key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Match {
    pub at: SlotNo,
    pub pointer: Pointer,
}

impl<M: Medium> Inner<M> {
    /// Finds the newest entry of `key`. Adds the flash reads to `flash_reads`.
    pub(crate) async fn locate(
        &self,
        key: &[u8],
        work: Nanos,
        wants_value: bool,
        flash_reads: &mut u32,
    ) -> Result<Located, EngineError> {
        let cpu = &self.store.cpu;
        let effort = Effort { memtables: 1, ..Effort::default() };
        if let Some(entry) = self.in_memtables(key) {
            cpu.cores.spend(work + cpu.costs.of(effort)).await;
            return Ok(Located::Memory(entry));
        }
        cpu.cores.spend(work + cpu.costs.of(Effort { hashes: 1, ..effort })).await;
        let class = IoClass::ClientRead;
        let mut search = Search::new(KeyHash::of(key));
        let mut located = Located::Absent;
        while let Some(found) = self.next_match(&mut search, class, flash_reads).await? {
            if self.is_stale(found.pointer) {
                // If the slot belongs to `key`, then `key` is in a memtable.
                if let Some(entry) = self.in_memtables(key) {
                    located = Located::Memory(entry);
                    break;
                }
                continue;
            }
            let read = self.read_if_of(key, found.pointer, wants_value, class, flash_reads);
            if let Some(value) = read.await? {
                located = Located::Stored(value);
                break;
            }
            self.hash_stats.borrow_mut().false_matches += 1;
        }
        self.hash_stats.borrow_mut().slots_per_lookup.add(search.next);
        Ok(located)
    }

    fn in_memtables(&self, key: &[u8]) -> Option<Entry> {
        self.front.memtables.borrow().get(key).map(|(_, entry)| entry)
    }

    /// Returns the next slot with the signature of the key. The slot's page stays in memory until
    /// the next await.
    pub(crate) async fn next_match(
        &self,
        search: &mut Search,
        class: IoClass,
        flash_reads: &mut u32,
    ) -> Result<Option<Match>, EngineError> {
        while search.next <= self.longest_search.get() {
            let number = search.next;
            let at = self.table.slot(search.hash, number);
            self.load(at.page, class, flash_reads).await?;
            search.next += 1;
            match self.slot(at) {
                Slot::Empty => {
                    search.free.get_or_insert((number, at));
                    return Ok(None);
                }
                Slot::Deleted => {
                    search.free.get_or_insert((number, at));
                }
                Slot::LeadsNowhere => return Err(self.leads_nowhere(at)),
                Slot::Held { signature, pointer } if signature == search.hash.signature => {
                    return Ok(Some(Match { at, pointer }));
                }
                Slot::Held { .. } => {}
            }
        }
        Ok(None)
    }

    /// Returns the error for an invalid slot: its page was read, but no write makes such a pointer.
    fn leads_nowhere(&self, slot: SlotNo) -> EngineError {
        let at = self.directory.borrow()[slot.page as usize];
        let at =
            at.expect("pages that are not from the medium were checked when they were taken over");
        EngineError::Corrupt(at, PageFault::Contents)
    }

    /// Whether the object of a slot is gone. The key of the slot is then in a memtable.
    pub(crate) fn is_stale(&self, pointer: Pointer) -> bool {
        let (page, _) = self.store.format.locate(pointer);
        let extents = self.store.extents.borrow();
        let extent = extents.get(self.store.shape.extent_of(page));
        let is_gone = matches!(extent.state, State::Free | State::Releasing);
        is_gone || !self.store.format.is_of(pointer, extent.generation)
    }

    /// Reads the object at `pointer`, and adds the flash reads to `flash_reads`. Returns `None` if
    /// the object belongs to another key. Returns the value if `wants_value` is set or if the
    /// object is not larger than a page; otherwise `Some(None)`. Requires: `pointer` is not stale
    /// at the call.
    pub(crate) async fn read_if_of(
        &self,
        key: &[u8],
        pointer: Pointer,
        wants_value: bool,
        class: IoClass,
        flash_reads: &mut u32,
    ) -> Result<Option<Option<Value>>, EngineError> {
        let _guard = self.enter();
        let (page, piece) = self.store.format.locate(pointer);
        let image = self.store.read_page(page, class).await?;
        *flash_reads += 1;
        let cpu = &self.store.cpu;
        let effort = Effort { key_compares: 1, ..Effort::default() };
        cpu.cores.spend(cpu.costs.of(effort)).await;
        match data_page::find(image.bytes(), piece, key) {
            Some(Found::Whole(value)) => Ok(Some(Some(value))),
            Some(Found::Large(..)) if !wants_value => Ok(Some(None)),
            Some(Found::Large(head, pages)) => {
                let value = self.store.read_large(page, head, pages, class, flash_reads).await?;
                Ok(Some(Some(value)))
            }
            None if has_object_at(&image, piece) => Ok(None),
            None => Err(EngineError::Corrupt(page, PageFault::Contents)),
        }
    }
}

/// Whether an object begins in `piece`. If not, the page does not have the contents that the table
/// refers to.
fn has_object_at(image: &PageImage, piece: u32) -> bool {
    let objects = data_page::objects(image.bytes());
    objects.iter().flatten().any(|(begins, _)| *begins == piece)
}
