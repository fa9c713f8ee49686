//! Flush: writes a frozen memtable to data pages and enters its objects in the table.
//!
//! The objects are written first. Then each key is searched for, many in parallel, and its slot is
//! changed. After a power cut during a flush, the changed slots refer to durable objects, and the
//! memtable is flushed again. An object counts as live once a slot refers to it, so that the other
//! objects of an interrupted flush are garbage. Until the flush ends, their extents are excluded
//! from collection.

use std::rc::Rc;

use runtime::IoClass;

use super::Inner;
use super::apart::lay_out_apart;
use super::bucket::Slot;
use super::key_hash::KeyHash;
use super::parallel::in_parallel;
use super::reads::{Match, Search};
use super::table::SlotNo;
use crate::error::EngineError;
use crate::format::data_page::Outgoing;
use crate::format::pointer::Pointer;
use crate::gc::retire_flushed;
use crate::manifest::changes::Changes;
use crate::medium::Medium;
use crate::memtable::{SharedKey, Write};
use crate::planted::Fault;
use crate::space::writing::Written;

/// The change that a flush makes for a key: the pointer to enter, or `None` to remove the key.
type Change = (SharedKey, Option<Pointer>);

/// The I/O class of a flush's reads in the table.
const CLASS: IoClass = IoClass::CompactionRead;

impl<M: Medium> Inner<M> {
    /// Runs the task that flushes frozen memtables, oldest first, forever.
    pub(crate) async fn flush_forever(self: Rc<Self>) {
        loop {
            let (_, writes) = self.front.begin_flush().await;
            if let Err(error) = self.flush(writes).await {
                // The slot of a key cannot be determined, so the writes stay in the memtables.
                self.store.fail(error);
            }
            retire_flushed(&self);
        }
    }

    async fn flush(self: &Rc<Self>, writes: Vec<Write>) -> Result<(), EngineError> {
        let (pointers, written) = self.write_data(&writes).await?;
        self.bar_from_collection(&pointers);
        let mut changes = Changes::default();
        for written in &written {
            self.store.publish_unentered(&mut changes, written);
        }
        self.store.apply(&changes);
        let mut pointers = pointers.into_iter();
        let changes: Vec<Change> = writes
            .into_iter()
            .map(|write| (write.key, write.entry.and_then(|_| pointers.next())))
            .collect();
        assert!(pointers.next().is_none(), "an object was written, and no key leads to it");
        let objects = changes.iter().filter(|(_, new)| new.is_some()).count() as u64;
        let cost = self.store.cpu.costs.of_hashes(changes.len());
        self.store.cpu.cores.spend_in_background(cost).await;
        let entered = in_parallel(self, changes, async |inner, (key, new)| {
            inner.enter_in_table(&key, new).await
        });
        entered.await?;
        self.front.flushed();
        self.placing.borrow_mut().clear();
        {
            let mut stats = self.stats.borrow_mut();
            stats.flushes += 1;
            stats.flushed_objects += objects;
        }
        self.store.room.notify_all();
        self.store.work.notify_all();
        Ok(())
    }

    /// Writes the objects of a memtable. Returns their pointers in the order of the memtable.
    async fn write_data(
        &self,
        writes: &[Write],
    ) -> Result<(Vec<Pointer>, Vec<Written>), EngineError> {
        let objects: Vec<Outgoing<'_>> = writes.iter().filter_map(Write::object).collect();
        let costs = &self.store.cpu.costs;
        self.store.cpu.cores.spend_in_background(costs.of_packing(objects.len())).await;
        let signature = |key: &[u8]| KeyHash::of(key).signature;
        let batches = lay_out_apart(&objects, signature, self.store.shape.payload_bytes);
        let pages = batches.iter().map(|batch| self.store.pages_of(&batch.layout)).sum();
        let has_moved = || !self.uprooted.borrow().is_empty();
        let mut promise = self.front.promise_data(pages, has_moved).await;
        let mut pointers: Vec<Option<Pointer>> = vec![None; objects.len()];
        let mut all = Vec::with_capacity(batches.len());
        for batch in batches {
            let share = promise.split(self.store.pages_of(&batch.layout));
            let urgency = || self.front.fill_of_active_memtable();
            let written =
                self.store.write_objects(batch.layout, share, IoClass::Flush, urgency).await?;
            for (member, pointer) in batch.members.iter().zip(&written.pointers) {
                pointers[*member] = Some(*pointer);
            }
            all.push(written);
        }
        let pointers = pointers.into_iter().map(|pointer| pointer.expect("all were written"));
        Ok((pointers.collect(), all))
    }

    fn bar_from_collection(&self, pointers: &[Pointer]) {
        let pages = pointers.iter().map(|pointer| self.store.format.locate(*pointer).0);
        let extents = pages.map(|page| self.store.shape.extent_of(page));
        assert!(self.placing.borrow().is_empty(), "a flush begins before the last one ended");
        self.placing.borrow_mut().extend(extents);
    }

    /// Makes the slot of `key` refer to `new`. If `new` is `None`, removes the key from the table.
    async fn enter_in_table(&self, key: &[u8], new: Option<Pointer>) -> Result<(), EngineError> {
        let hash = KeyHash::of(key);
        loop {
            let mut search = Search::new(hash);
            if let Some(own) = self.own_slot(key, &mut search).await? {
                return self.replace(key, hash, own, new);
            }
            if self.uprooted.borrow().contains_key(key) {
                return Err(self.store.contradicts_itself("the slot of a key was lost"));
            }
            let Some(new) = new else { return Ok(()) };
            let (number, at) = self.free_slot(&mut search).await?;
            self.load(at.page, CLASS, &mut 0).await?;
            // Another key of the flush may have taken the slot meanwhile.
            if self.slot(at).is_free() {
                self.set_slot(at, Slot::Held { signature: hash.signature, pointer: new });
                let mut changes = Changes::default();
                self.store.enter_object(&mut changes, new);
                self.store.apply(&changes);
                self.longest_search.set(self.longest_search.get().max(number));
                self.keys.set(self.keys.get() + 1);
                if self.keys.get() > self.table.slots() {
                    return Err(self.store.contradicts_itself("more keys than slots"));
                }
                return Ok(());
            }
        }
    }

    /// Returns the slot of `key`, if it has one. The slot's page stays in memory until the next
    /// await.
    async fn own_slot(
        &self,
        key: &[u8],
        search: &mut Search,
    ) -> Result<Option<Match>, EngineError> {
        while let Some(found) = self.next_match(search, CLASS, &mut 0).await? {
            let is_uprooted = self.uprooted.borrow().get(key) == Some(&found.pointer);
            if is_uprooted {
                return Ok(Some(found));
            }
            if self.is_stale(found.pointer) {
                continue;
            }
            let is_own = self.planted.has(Fault::HashSkipsKeyCompare)
                || self.read_if_of(key, found.pointer, false, CLASS, &mut 0).await?.is_some();
            if is_own {
                self.load(found.at.page, CLASS, &mut 0).await?;
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Changes the slot of a key, and counts the object that it referred to as dead. Requires: the
    /// slot's page is in memory.
    fn replace(
        &self,
        key: &[u8],
        hash: KeyHash,
        own: Match,
        new: Option<Pointer>,
    ) -> Result<(), EngineError> {
        let was = Slot::Held { signature: hash.signature, pointer: own.pointer };
        assert!(self.slot(own.at) == was, "the slot of a key changed under its flush");
        let slot =
            new.map_or(Slot::Deleted, |pointer| Slot::Held { signature: hash.signature, pointer });
        self.set_slot(own.at, slot);
        let mut changes = Changes::default();
        if let Some(new) = new {
            self.store.enter_object(&mut changes, new);
        }
        self.store.mark_dead(&mut changes, &[own.pointer]);
        self.store.apply(&changes);
        self.uprooted.borrow_mut().remove(key);
        let gone = u64::from(new.is_none());
        let Some(keys) = self.keys.get().checked_sub(gone) else {
            return Err(self.store.contradicts_itself("the slot of a key in a table without keys"));
        };
        self.keys.set(keys);
        Ok(())
    }

    /// Returns the first slot that an insert of the key may use, with its probe number. Requires:
    /// the key is not in the table.
    async fn free_slot(&self, search: &mut Search) -> Result<(u32, SlotNo), EngineError> {
        loop {
            if let Some(free) = search.free {
                return Ok(free);
            }
            let number = search.next;
            assert!(u64::from(number) <= self.table.most_searches(), "the table is full");
            search.next += 1;
            let at = self.table.slot(search.hash, number);
            self.load(at.page, CLASS, &mut 0).await?;
            if self.slot(at).is_free() {
                search.free = Some((number, at));
            }
        }
    }
}
