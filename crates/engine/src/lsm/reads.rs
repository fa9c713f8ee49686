//! Looking keys up.

use std::rc::Rc;

use pages::Value;
use pages::effort::Effort;
use pages::error::EngineError;
use pages::format::data_page;
use pages::format::pointer::Pointer;
use pages::medium::Medium;
use pages::memtable::Entry;
use pages::operations::Reads;
use runtime::{IoClass, Nanos};

use crate::cache::Access;
use crate::format::entry::Mapping;
use crate::lsm::Inner;
use crate::lsm::search::{Pending, Step, Told, look_in, search};
use crate::lsm::version::Version;

/// Where the newest entry of a key is.
pub(crate) enum Located {
    /// What it says is in memory.
    Known(Entry),
    At(Pointer),
    Absent,
}

impl Located {
    /// What a search came to, or what it waits for.
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
    /// Finds the newest entry of `key`, reading meta segments that are not in memory.
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

    /// Finds the entry that a version has of `key`, for Gets of the present and of snapshots. `work` and `effort` are what
    /// came before and is not charged yet.
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
                // In a box, so that Gets of other stores are not larger for it.
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

    /// Charges for pages of the value log that a client read, where that costs anything.
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

    /// Notes what a new version makes of `most_index_reads`.
    pub(crate) fn note_index_reads(&self) {
        let now = self.most_index_reads();
        let (least, most) = self.index_reads_seen.get();
        self.index_reads_seen.set((least.min(now), most.max(now)));
    }

    /// Flash reads that a value costs once it is known where it is.
    fn value_reads(&self, key_len: usize, value_len: u32) -> u32 {
        let is_apart = !self.inlining.takes(key_len, value_len);
        if is_apart { self.pages_read(key_len, value_len) } else { 0 }
    }

    /// Flash reads that a value in the value log costs.
    fn pages_read(&self, key_len: usize, value_len: u32) -> u32 {
        let pages = data_page::pages_of(self.store.shape.payload_bytes, key_len, value_len);
        self.store.format.pages_read(pages)
    }

    /// Reads that a Get takes at most before it knows where a value is.
    pub(crate) fn most_index_reads(&self) -> u32 {
        self.version.borrow().most_reads()
    }

    /// `of_index` is how many reads the index could take when the Get began; `is_apart` says whether the
    /// value had to be read from the value log.
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
