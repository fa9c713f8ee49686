//! Flush: writes a frozen memtable as data pages and entries of L1, or as a table of L0 (`table`).

pub(crate) mod packing;
pub(crate) mod table;

use std::rc::Rc;

use runtime::IoClass;

use crate::compaction::columns::Bulk;
use crate::compaction::sliced::merge::{ListRun, SegmentRun, merge};
use crate::compaction::sliced::placing::Place;
use crate::engine::Inner;
use crate::error::EngineError;
use crate::format::data_page::Outgoing;
use crate::format::entry::{NewEntry, OFFSET_BYTES};
use crate::format::inlining::Inlining;
use crate::format::pointer::Pointer;
use crate::gc::retire_flushed;
use crate::medium::{Medium, Stream};
use crate::memtable::Write;
use crate::planted::Fault;
use crate::space::priority::{Claimant, Need};
use crate::space::writing::{Layout, Written, lay_out};
use crate::version::LevelEdit;
use crate::write::flushes::FlushNo;

impl<M: Medium> Inner<M> {
    /// Runs one of the flush tasks: flushes frozen memtables, oldest first, forever.
    pub(crate) async fn flush_forever(self: Rc<Self>) {
        loop {
            let (number, writes) = self.front.begin_flush().await;
            if let Err(error) = self.flush(number, writes).await {
                self.store.fail(error);
            }
            retire_flushed(&self);
        }
    }

    async fn flush(&self, number: FlushNo, writes: Vec<Write>) -> Result<(), EngineError> {
        let values = writes.iter().filter(|write| write.entry.is_some()).count();
        let costs = &self.store.cpu.costs;
        self.store.cpu.cores.spend_in_background(costs.of_packing(values)).await;
        if let Some(manifest) = &self.manifest {
            manifest.begun(&self.store).await?;
        }
        let (writes, layout) = self.lay_out(writes).await;
        let flushed = layout.objects() as u64;
        let has_moved = || !self.store.moved.borrow().is_empty();
        let pages = self.store.pages_of(&layout);
        let promise = self.front.promise_data_of(number, pages, has_moved).await;
        let urgency = || self.front.fill_of_active_memtable();
        let written = self.store.write_objects(layout, promise, IoClass::Flush, urgency).await?;
        let (inlining, pointers) = (self.inlining, written.pointers.clone());
        let entries =
            self.store.handle.compute(move || entries_of(writes, &pointers, inlining)).await;
        if self.options.is_leveled() {
            let table = self.write_to_l0(number, entries).await?;
            self.wait_for_turn(number).await;
            self.install_in_l0(table, &written).await?;
        } else {
            self.wait_for_turn(number).await;
            self.merge_into_first_level(entries, &written).await?;
        }
        let mut stats = self.stats.borrow_mut();
        stats.flushes += 1;
        stats.flushed_objects += flushed;
        Ok(())
    }

    /// Packs the values that are not stored inline into pages.
    async fn lay_out(&self, writes: Vec<Write>) -> (Vec<Write>, Layout) {
        let (inlining, payload) = (self.inlining, self.store.shape.payload_bytes);
        let packing = self.store.handle.compute(move || {
            let is_apart =
                |object: &Outgoing<'_>| !inlining.takes(object.key.len(), object.value.len());
            let objects: Vec<Outgoing<'_>> =
                writes.iter().filter_map(Write::object).filter(is_apart).collect();
            let layout = lay_out(&objects, payload);
            (writes, layout)
        });
        packing.await
    }

    async fn wait_for_turn(&self, number: FlushNo) {
        if !self.planted.has(Fault::FlushOutOfTurn) {
            self.front.wait_for_turn(number).await;
        }
    }

    /// Merges the entries of a flush into L1 and publishes them in the edit that drops their
    /// memtable, so that a reader finds them in exactly one of the two.
    async fn merge_into_first_level(
        &self,
        entries: Vec<NewEntry>,
        written: &Written,
    ) -> Result<(), EngineError> {
        let place = self.claim_first_level(&entries).await;
        let outcome = self.merge_into_claimed(entries, written, place).await;
        self.unclaim(&[0]);
        outcome
    }

    async fn merge_into_claimed(
        &self,
        entries: Vec<NewEntry>,
        written: &Written,
        place: Place<'_>,
    ) -> Result<(), EngineError> {
        let level = Rc::clone(&self.version.borrow().levels()[0]);
        let lower = self.load(&level, 0..level.len()).await?;
        let drops_tombstones = self.options.levels == 1;
        let (format, payload) = (self.store.format, self.store.shape.payload_bytes);
        let merging = self.store.handle.compute(move || {
            let (upper, lower) = (ListRun::new(entries), SegmentRun::new(&lower, format));
            merge(upper, lower, format, payload, drops_tombstones)
        });
        let merged = merging.await;
        let cost = self.store.cpu.costs.of_merge(merged.entries);
        self.store.cpu.cores.spend_in_background(cost).await;
        let urgency = || self.front.fill_of_active_memtable();
        let new = self.place(merged.segments, place, IoClass::CompactionWrite, urgency).await?;
        self.count_merge(merged.entries, merged.duplicates);
        let edit = self.edit_of(vec![LevelEdit { level: 0, range: 0..level.len(), new }]);
        let edit = self.with_dead(edit, &merged.dead).await;
        self.install(self.with_flushed(edit, written).await)?;
        self.note_freed(level.len());
        Ok(())
    }

    /// Claims L1 and gets the promise of space for the result of merging `entries` into it.
    async fn claim_first_level(&self, entries: &[NewEntry]) -> Place<'_> {
        let expected = self.flush_segments();
        let format = self.store.format;
        let own = |entry: &NewEntry| OFFSET_BYTES + entry.as_ref().full_len(format);
        let own: usize = entries.iter().map(own).sum();
        let most = || {
            let version = self.version.borrow();
            let level = version.level(0);
            if let Some(columns) = self.columns_of(0) {
                let mut bulk = self.bulk_of(level, &(0..level.len()));
                let key_bytes = entries.iter().map(|entry| entry.as_ref().key.len() + 1).sum();
                bulk += Bulk { entries: entries.len(), key_bytes };
                return columns.most_pages(bulk);
            }
            let lower = self.bytes_in(level, &(0..level.len()));
            self.inlining.most_pages(own + lower)
        };
        loop {
            self.claim(&[0], || self.first_level_has_room(expected)).await;
            if let Some(place) = self.place_for(0, most()) {
                return place;
            }
            self.unclaim(&[0]);
            // Waits without the claim on the level. The space promised here is released for the
            // next attempt.
            let need =
                || Need { stream: Stream::Index, pages: most(), claimant: Claimant::Compaction };
            drop(self.front.wait_for_space(need).await);
        }
    }

    /// Returns the approximate number of segments that a flush adds to L1.
    pub(crate) fn flush_segments(&self) -> usize {
        let pair = self.surroundings.expected_key_bytes + self.surroundings.expected_value_bytes;
        let objects = self.options.memtable_bytes / u64::from(pair.max(1)) + 1;
        objects.div_ceil(self.entries_per_segment()) as usize
    }

    fn first_level_has_room(&self, segments: usize) -> bool {
        let len = self.version.borrow().level(0).totals().pages() as usize;
        len == 0 || len + segments <= self.capacity(0)
    }
}

/// Returns the index entries of a flush. `pointers` are those of the values that are not stored
/// inline, in order.
fn entries_of(writes: Vec<Write>, pointers: &[Pointer], inlining: Inlining) -> Vec<NewEntry> {
    let mut pointers = pointers.iter();
    let entry = |Write { key, entry, .. }: Write| match entry {
        None => NewEntry::of_pointer(key, Pointer::TOMBSTONE),
        Some(value) if inlining.takes(key.len(), value.len()) => NewEntry::inline(key, &value),
        Some(_) => {
            let pointer = pointers.next().expect("each object was written");
            NewEntry::of_pointer(key, *pointer)
        }
    };
    let entries = writes.into_iter().map(entry).collect();
    assert!(pointers.next().is_none(), "an object was written, and no key leads to it");
    entries
}
