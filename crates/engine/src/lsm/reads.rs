//! Looking keys up.

use std::rc::Rc;

use pages::Value;
use pages::effort::Effort;
use pages::error::EngineError;
use pages::format::data_page;
use pages::format::pointer::Pointer;
use pages::medium::Medium;
use pages::memtable::Entry;
use runtime::{IoClass, Nanos};

use crate::format::entry::Mapping;
use crate::format::meta_segment::MetaSegment;
use crate::lsm::Inner;
use crate::lsm::search::{Step, search};

/// Where the newest entry of a key is.
pub(crate) enum Located {
    Memory(Entry),
    /// Beside its key.
    Inline(Value),
    At(Pointer),
    Absent,
}

impl<M: Medium> Inner<M> {
    /// Finds the newest entry of `key`, reading meta segments that are not in memory.
    pub(crate) async fn locate(
        &self,
        key: &[u8],
        mut work: Nanos,
        flash_reads: &mut u32,
    ) -> Result<Located, EngineError> {
        let mut effort = Effort { memtables: 1, ..Effort::default() };
        let in_memtable = self.front.memtables.borrow().get(key);
        if let Some((_, entry)) = in_memtable {
            self.store.cpu.cores.spend(work + self.store.cpu.costs.of(effort)).await;
            return Ok(Located::Memory(entry));
        }
        let version = Rc::clone(&self.version.borrow());
        let mut step = search(&version, key, 0, None, self.store.format, &mut effort);
        loop {
            self.stats.borrow_mut().filter_probes += u64::from(effort.filter_probes);
            self.store.cpu.cores.spend(work + self.store.cpu.costs.of(effort)).await;
            let pending = match step {
                Step::Absent | Step::Found(Mapping::Deleted) => return Ok(Located::Absent),
                Step::Found(Mapping::Value(value)) => return Ok(Located::Inline(value)),
                Step::Found(Mapping::At(pointer)) => return Ok(Located::At(pointer)),
                Step::Read(pending) => pending,
            };
            let image = self.read_meta(pending.page, IoClass::ClientRead).await?;
            *flash_reads += 1;
            let segment = MetaSegment::new(image.bytes(), self.store.format).expect("just checked");
            self.store.cpu.cores.spend(self.store.cpu.costs.of(segment.effort())).await;
            (work, effort) = (Nanos::ZERO, Effort::default());
            step = if let Some(newest) = segment.find(key) {
                Step::Found(newest)
            } else {
                self.stats.borrow_mut().vain_meta_reads += 1;
                let next = pending.level + 1;
                search(&version, key, next, pending.below, self.store.format, &mut effort)
            };
        }
    }

    pub(crate) fn read_bound(&self, key_len: usize, value_len: u32) -> u32 {
        self.unpinned_levels() + self.reads_of_value(key_len, value_len)
    }

    /// Flash reads that a value costs when it is known where it is.
    fn reads_of_value(&self, key_len: usize, value_len: u32) -> u32 {
        if self.inlining.takes(key_len, value_len) {
            return 0;
        }
        let pages = data_page::pages_of(self.store.shape.payload_bytes, key_len, value_len);
        self.store.format.pages_read(pages)
    }

    /// Levels that are not in memory altogether: each may cost a Get a read.
    pub(crate) fn unpinned_levels(&self) -> u32 {
        self.version.borrow().unpinned_levels()
    }

    /// `unpinned` is the number of levels not in memory when the Get began.
    pub(crate) fn count_get(
        &self,
        key: &[u8],
        value: Option<&Value>,
        flash_reads: u32,
        unpinned: u32,
    ) {
        let bound = unpinned + value.map_or(0, |v| self.reads_of_value(key.len(), v.len()));
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
