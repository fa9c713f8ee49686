//! Lookups of keys.

use std::rc::Rc;

use runtime::{IoClass, Nanos};

use super::cache::Access;
use super::search::{Pending, Step, Told, look_in, search};
use crate::effort::Effort;
use crate::engine::Inner;
use crate::error::EngineError;
use crate::format::data_page;
use crate::format::entry::Mapping;
use crate::format::pointer::Pointer;
use crate::format::value::Value;
use crate::medium::Medium;
use crate::memtable::Entry;
use crate::operations::Reads;
use crate::version::Version;

/// The location of a key's newest entry.
pub(crate) enum Located {
    /// The entry itself is in memory.
    Known(Entry),
    At(Pointer),
    Absent,
}

impl Located {
    /// Converts the step of a search; `Err` if the search waits for a page.
    pub(crate) fn of(step: Step) -> Result<Self, Pending> {
        Ok(match step {
            Step::Absent | Step::Found(Mapping::Deleted) => Self::Absent,
            Step::Found(Mapping::Value(value)) => Self::Known(Some(value)),
            Step::Found(Mapping::At(pointer)) => Self::At(pointer),
            Step::Read(pending) => return Err(pending),
        })
    }
}

impl<M: Medium> Inner<M> {
    /// Finds the newest entry of `key`, and reads meta segments that are not in memory.
    pub(crate) async fn locate(
        &self,
        key: &[u8],
        work: Nanos,
        reads: &mut Reads,
    ) -> Result<Located, EngineError> {
        let effort = Effort { memtables: 1, ..Effort::default() };
        let in_memtable = self.front.memtables.borrow().get(key);
        if let Some((_, entry)) = in_memtable {
            self.store.cpu.cores.spend(work + self.store.cpu.costs.of(effort)).await;
            return Ok(Located::Known(entry));
        }
        let version = Rc::clone(&self.version.borrow());
        self.locate_in(&version, key, work, effort, reads).await
    }

    /// Finds the entry of `key` in a version, for current Gets and Gets of snapshots. `work` and
    /// `effort` are the costs of earlier steps that are not charged yet.
    pub(crate) async fn locate_in(
        &self,
        version: &Version,
        key: &[u8],
        mut work: Nanos,
        mut effort: Effort,
        reads: &mut Reads,
    ) -> Result<Located, EngineError> {
        let mut step = search(version, key, 0, None, self.store.format, &mut effort);
        loop {
            self.stats.borrow_mut().filter_probes += u64::from(effort.filter_probes);
            self.store.cpu.cores.spend(work + self.store.cpu.costs.of(effort)).await;
            let pending = match Located::of(step) {
                Ok(located) => return Ok(located),
                Err(pending) => pending,
            };
            if let Some(table) = pending.at.table() {
                // Boxed so that the Get futures of other stores do not grow.
                let look_up = self.look_up(table, key, IoClass::ClientRead, reads);
                let (found, taken_in) = Box::pin(look_up).await?;
                (work, effort) = (self.store.cpu.costs.of(taken_in), Effort::default());
                self.stats.borrow_mut().vain_meta_reads += u64::from(found.is_none());
                let told = Told::Segment(found);
                step = pending.go_on(told, version, key, self.store.format, &mut effort);
                continue;
            }
            if self.caches.has_pages()
                && let Some((next, looked)) = self.search_cached(version, key, &pending)
            {
                (step, work, effort) = (next, Nanos::ZERO, looked);
                continue;
            }
            let begun = self.store.handle.now();
            let image = self.read_index(pending.at, IoClass::ClientRead).await?;
            reads.time += self.store.handle.now() - begun;
            reads.count += 1;
            self.keep_page(pending.at.page, &image, Access::Point);
            let mut taken_in = Effort { page_reads: 1, ..Effort::default() };
            let told = look_in(pending.at, &image, key, self.store.format, &mut taken_in);
            taken_in.hashes += self.caches.looks_for_pages(1);
            self.store.cpu.cores.spend(self.store.cpu.costs.of(taken_in)).await;
            (work, effort) = (Nanos::ZERO, Effort::default());
            if matches!(told, Told::Segment(None)) {
                self.stats.borrow_mut().vain_meta_reads += 1;
            }
            step = pending.go_on(told, version, key, self.store.format, &mut effort);
        }
    }

    /// Charges the processor time for pages of the value log that a client read, if they have a
    /// cost.
    pub(crate) async fn take_in(&self, page_reads: u32) {
        let cost = self.store.cpu.costs.of(Effort { page_reads, ..Effort::default() });
        if cost > Nanos::ZERO {
            self.store.cpu.cores.spend(cost).await;
        }
    }

    pub(crate) fn read_bound(&self, key_len: usize, value_len: u32) -> u32 {
        self.most_index_reads() + self.value_reads(key_len, value_len)
    }

    pub(crate) fn read_bounds(&self, key_len: usize, value_len: u32) -> (u32, u32) {
        let (least, most) = self.index_reads_seen.get();
        let of_value = self.value_reads(key_len, value_len);
        (least + of_value, most + of_value)
    }

    /// Updates the observed range of `most_index_reads` for a new version.
    pub(crate) fn note_index_reads(&self) {
        let now = self.most_index_reads();
        let (least, most) = self.index_reads_seen.get();
        self.index_reads_seen.set((least.min(now), most.max(now)));
    }

    /// Returns the number of flash reads for a value once its location is known.
    fn value_reads(&self, key_len: usize, value_len: u32) -> u32 {
        let is_apart = !self.inlining.takes(key_len, value_len);
        if is_apart { self.pages_read(key_len, value_len) } else { 0 }
    }

    /// Returns the number of flash reads for a value in the value log.
    fn pages_read(&self, key_len: usize, value_len: u32) -> u32 {
        let pages = data_page::pages_of(self.store.shape.payload_bytes, key_len, value_len);
        self.store.format.pages_read(pages)
    }

    /// Returns the maximum number of reads of a Get before it knows the location of the value.
    pub(crate) fn most_index_reads(&self) -> u32 {
        self.version.borrow().most_reads()
    }

    /// Counts a Get and asserts its read bound. `of_index` is the maximum number of index reads at
    /// the time the Get began; `is_apart` is whether the value had to be read from the value log.
    pub(crate) fn count_get(
        &self,
        key: &[u8],
        value: Option<&Value>,
        is_apart: bool,
        flash_reads: u32,
        of_index: u32,
    ) {
        let read = value.filter(|_| is_apart);
        let bound = of_index + read.map_or(0, |v| self.pages_read(key.len(), v.len()));
        assert!(
            flash_reads <= bound,
            "a Get took {flash_reads} flash reads, the design promises {bound}"
        );
        let stats = &mut *self.stats.borrow_mut();
        stats.reads_per_get.add(flash_reads);
        if value.is_some() {
            stats.gets_found += 1;
        } else {
            stats.gets_missing += 1;
        }
    }
}
