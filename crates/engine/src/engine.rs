//! The engine: its state, and the operations of its users.
//!
//! One Put: wait for room, charge the processor, insert in the active memtable; a full memtable is
//! frozen and flushed by a task (`flush`). One Get: memtables, then the levels in memory, then at
//! most one meta segment per level that is not pinned, then the page with the value. Compaction
//! and garbage collection are tasks of their own (`compaction`, `collect`).
//!
//! Invariants: a key's newest entry is the first one met going down (active memtable, frozen ones
//! newest first, L1, L2, ...); a page is released only when no version in use and no reader under
//! way can lead to it; everything an acknowledged write changed is in memory that a power cut
//! dumps, or durable on the medium.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use runtime::{Cores, Handle, IoClass, Nanos, Notify, PageImage};

use crate::data_page::{self, Found};
use crate::effort::{CpuCosts, Effort};
use crate::epochs::Epochs;
use crate::error::EngineError;
use crate::extents::Extents;
use crate::medium::{Medium, PageNo, Shape};
use crate::memtable::{Entry, Memtable};
use crate::meta_segment::{self, MetaSegment};
use crate::object::{ObjectHead, Sequence};
use crate::options::{Options, Surroundings};
use crate::page;
use crate::planted::{Fault, Planted};
use crate::pointer::{Pointer, PointerFormat};
use crate::search::{Step, search};
use crate::shared_reads::SharedReads;
use crate::sizing::{LevelPlan, SizingInput, plan};
use crate::stats::{EngineStats, MemoryUse};
use crate::version::Version;
use crate::{MAX_KEY_BYTES, MAX_VALUE_BYTES, Value};

/// An LSM engine on a medium. Clones are handles to the same store.
pub struct Engine<M: Medium> {
    pub(crate) inner: Rc<Inner<M>>,
}

impl<M: Medium> Clone for Engine<M> {
    fn clone(&self) -> Self {
        Self { inner: Rc::clone(&self.inner) }
    }
}

/// The processor an engine runs on, and what its steps cost there.
pub struct Cpu {
    /// The cores; shared with whoever else runs on them.
    pub cores: Rc<Cores>,
    /// What each step costs.
    pub costs: CpuCosts,
}

pub(crate) struct Inner<M> {
    pub handle: Handle,
    pub medium: M,
    pub shape: Shape,
    pub format: PointerFormat,
    pub options: Options,
    pub surroundings: Surroundings,
    pub cpu: Cpu,
    pub planted: Planted,
    pub epochs: Epochs,
    pub shared_reads: SharedReads,
    /// Writers wait here.
    pub room: Notify,
    /// Background tasks wait here.
    pub work: Notify,
    pub plan: RefCell<LevelPlan>,
    pub memtables: RefCell<Memtables>,
    pub version: RefCell<Rc<Version>>,
    pub extents: RefCell<Extents>,
    /// Where partial compaction goes on in each level.
    pub cursors: RefCell<Vec<Box<[u8]>>>,
    /// Levels that a background task is changing.
    pub busy: RefCell<Vec<bool>>,
    /// Pages handed out to writers whose result is not published yet.
    pub unpublished: RefCell<BTreeSet<PageNo>>,
    pub sequence: Cell<Sequence>,
    pub flushes: Cell<u64>,
    pub failure: Cell<Option<PageNo>>,
    pub is_full: Cell<bool>,
    /// Compact everything down, to find garbage that upper levels hide.
    pub is_squeezing: Cell<bool>,
    pub compaction_buffers: Cell<u64>,
    pub stats: RefCell<EngineStats>,
}

#[derive(Default)]
pub(crate) struct Memtables {
    pub active: Memtable,
    /// Oldest first.
    pub frozen: VecDeque<Rc<Memtable>>,
}

impl Memtables {
    pub(crate) fn get(&self, key: &[u8]) -> Option<(Sequence, &Entry)> {
        let newest_first =
            std::iter::once(&self.active).chain(self.frozen.iter().rev().map(|m| &**m));
        newest_first.into_iter().find_map(|memtable| memtable.get(key, Sequence::MAX))
    }
}

/// What a Get found, and what it took.
#[derive(Clone, Debug, PartialEq)]
pub struct Lookup {
    /// The value, if the key has one.
    pub value: Option<Value>,
    /// Flash reads it took.
    pub flash_reads: u32,
}

/// When a conditional write goes ahead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Condition {
    /// Whatever is there.
    Always,
    /// Only over an existing value.
    MustExist,
    /// Only where there is no value.
    MustNotExist,
}

/// Where the newest entry of a key is.
enum Located {
    Memory(Entry),
    At(Pointer),
    Absent,
}

impl<M: Medium> Engine<M> {
    pub(crate) fn from_parts(
        handle: Handle,
        medium: M,
        options: Options,
        surroundings: Surroundings,
        cpu: Cpu,
        planted: Planted,
    ) -> Self {
        let shape = medium.shape();
        let format = PointerFormat::new(&shape);
        let levels = options.levels as usize;
        let input = sizing_input(&options, &surroundings, &shape, format);
        let inner = Inner {
            plan: RefCell::new(plan(&input, options.level_sizing, options.pinned_levels)),
            version: RefCell::new(Rc::new(Version::new(
                levels,
                options.prefix_bytes,
                options.range_pointers,
            ))),
            extents: RefCell::new(Extents::new(shape)),
            cursors: RefCell::new(vec![Box::default(); levels]),
            busy: RefCell::new(vec![false; levels]),
            stats: RefCell::new(EngineStats {
                compactions: vec![0; levels],
                ..EngineStats::default()
            }),
            handle,
            medium,
            shape,
            format,
            options,
            surroundings,
            cpu,
            planted,
            epochs: Epochs::default(),
            shared_reads: SharedReads::default(),
            room: Notify::default(),
            work: Notify::default(),
            memtables: RefCell::default(),
            unpublished: RefCell::default(),
            sequence: Cell::new(0),
            flushes: Cell::new(0),
            failure: Cell::new(None),
            is_full: Cell::new(false),
            is_squeezing: Cell::new(false),
            compaction_buffers: Cell::new(0),
        };
        Self { inner: Rc::new(inner) }
    }

    /// The value of `key`. `work` is processor time that the caller owes for this operation; it is
    /// charged together with the search.
    ///
    /// Takes at most one flash read per level that is not pinned, and one per page of the value.
    ///
    /// # Errors
    /// [`EngineError::KeyLength`]; [`EngineError::Corrupt`] if a page on the way is damaged.
    pub async fn get(&self, key: &[u8], work: Nanos) -> Result<Lookup, EngineError> {
        check_key(key)?;
        let inner = &*self.inner;
        let _guard = (!inner.planted.has(Fault::ReadWithoutEpoch)).then(|| inner.epochs.enter());
        let unpinned = inner.unpinned_levels();
        let mut flash_reads = 0;
        let value = match inner.locate(key, work, &mut flash_reads).await? {
            Located::Absent => None,
            Located::Memory(entry) => entry,
            Located::At(pointer) => {
                let value = inner.read_value(key, pointer, IoClass::ClientRead, &mut flash_reads);
                Some(value.await?)
            }
        };
        inner.count_get(key, value.as_ref(), flash_reads, unpinned);
        Ok(Lookup { value, flash_reads })
    }

    /// Whether `key` has a value; reads no value. See [`Self::get`] for `work` and errors.
    ///
    /// # Errors
    /// As [`Self::get`].
    pub async fn exists(&self, key: &[u8], work: Nanos) -> Result<bool, EngineError> {
        check_key(key)?;
        let _guard = self.inner.epochs.enter();
        Ok(match self.inner.locate(key, work, &mut 0).await? {
            Located::Absent => false,
            Located::Memory(entry) => entry.is_some(),
            Located::At(_) => true,
        })
    }

    /// Stores `value` under `key` if `condition` holds; returns whether it did.
    ///
    /// Acknowledged writes survive a power cut, being in memory that is dumped. Waits while the
    /// memtable is full and its flush is behind.
    ///
    /// # Errors
    /// [`EngineError::KeyLength`], [`EngineError::ValueTooLarge`], [`EngineError::Full`],
    /// [`EngineError::ReadOnly`]; with a condition also those of [`Self::get`].
    pub async fn put(
        &self,
        key: &[u8],
        value: Value,
        condition: Condition,
        work: Nanos,
    ) -> Result<bool, EngineError> {
        check_key(key)?;
        self.inner.check_value(key, &value)?;
        self.inner.write(key, Some(value), condition, work).await
    }

    /// Removes `key` if `condition` holds; returns whether it did. See [`Self::put`].
    ///
    /// # Errors
    /// As [`Self::put`], but a store without room still takes deletes.
    pub async fn delete(
        &self,
        key: &[u8],
        condition: Condition,
        work: Nanos,
    ) -> Result<bool, EngineError> {
        check_key(key)?;
        self.inner.write(key, None, condition, work).await
    }

    /// The longest value this store takes, in bytes.
    pub fn max_value_bytes(&self) -> u32 {
        self.inner.max_value_bytes()
    }

    /// The most flash reads that the Get of a value of `value_len` bytes can take.
    pub fn read_bound(&self, key_len: usize, value_len: u32) -> u32 {
        self.inner.read_bound(key_len, value_len)
    }

    /// Counters so far.
    pub fn stats(&self) -> EngineStats {
        EngineStats {
            shared_reads: self.inner.shared_reads.shared(),
            ..self.inner.stats.borrow().clone()
        }
    }

    /// Memory in use now.
    pub fn memory(&self) -> MemoryUse {
        self.inner.memory()
    }

    /// The level sizes in force.
    pub fn plan(&self) -> LevelPlan {
        self.inner.plan.borrow().clone()
    }

    /// Segments and entries of each level, L1 first.
    pub fn levels(&self) -> Vec<(u64, u64)> {
        let version = self.inner.version.borrow();
        let of = |level: &crate::level::Level| {
            (u64::from(level.totals().segments), level.totals().entries)
        };
        version.levels().iter().map(|level| of(level)).collect()
    }

    /// Waits until no memtable waits for its flush and no level is due for compaction.
    pub async fn settle(&self) {
        let inner = &*self.inner;
        inner.work.wait_until(|| inner.is_settled()).await;
    }
}

/// A key has 1 to 255 bytes, as SNIA's API has it.
fn check_key(key: &[u8]) -> Result<(), EngineError> {
    if (1..=MAX_KEY_BYTES).contains(&key.len()) {
        Ok(())
    } else {
        Err(EngineError::KeyLength(key.len()))
    }
}

pub(crate) fn sizing_input(
    options: &Options,
    surroundings: &Surroundings,
    shape: &Shape,
    format: PointerFormat,
) -> SizingInput {
    let key_bytes = surroundings.expected_key_bytes;
    let entries = meta_segment::entries_per_page(shape.payload_bytes, format.bytes, key_bytes);
    SizingInput {
        fill_bytes: (shape.capacity_bytes() as f64 * options.fill) as u64,
        capacity_bytes: shape.capacity_bytes(),
        pair_bytes: u64::from(key_bytes + surroundings.expected_value_bytes).max(1),
        key_bytes: u64::from(key_bytes),
        pointer_bytes: PAGE_ADDRESS_BYTES,
        entries_per_segment: u64::from(entries),
        segment_bytes: u64::from(shape.page_bytes),
        prefix_bytes: options.prefix_bytes as u64,
        range_pointer_bytes: if options.range_pointers { RANGE_POINTER_BYTES } else { 0 },
        dram_bytes: surroundings.index_dram_bytes,
        levels: options.levels,
    }
}

/// A level list entry holds a key and the address of a page.
pub(crate) const PAGE_ADDRESS_BYTES: u64 = 4;
/// A range pointer is the number of a segment in the next level.
pub(crate) const RANGE_POINTER_BYTES: u64 = 4;

impl<M: Medium> Inner<M> {
    /// Finds the newest entry of `key`, reading meta segments that are not in memory.
    async fn locate(
        &self,
        key: &[u8],
        mut work: Nanos,
        flash_reads: &mut u32,
    ) -> Result<Located, EngineError> {
        let mut effort = Effort { memtables: 1, ..Effort::default() };
        let in_memtable = self.memtables.borrow().get(key).map(|(_, entry)| entry.clone());
        if let Some(entry) = in_memtable {
            self.cpu.cores.spend(work + self.cpu.costs.of(effort)).await;
            return Ok(Located::Memory(entry));
        }
        let version = Rc::clone(&self.version.borrow());
        let mut step = search(&version, key, 0, None, self.format, &mut effort);
        loop {
            self.cpu.cores.spend(work + self.cpu.costs.of(effort)).await;
            let pending = match step {
                Step::Absent => return Ok(Located::Absent),
                Step::Found(pointer) if pointer.is_tombstone() => return Ok(Located::Absent),
                Step::Found(pointer) => return Ok(Located::At(pointer)),
                Step::Read(pending) => pending,
            };
            let image = self.read_meta(pending.page, IoClass::ClientRead).await?;
            *flash_reads += 1;
            let segment = MetaSegment::new(image.bytes(), self.format).expect("just checked");
            segment.prefetch();
            self.cpu.cores.spend(self.cpu.costs.of(segment.effort())).await;
            (work, effort) = (Nanos::ZERO, Effort::default());
            step = if let Some(pointer) = segment.find(key) {
                Step::Found(pointer)
            } else {
                let next = pending.level + 1;
                search(&version, key, next, pending.below, self.format, &mut effort)
            };
        }
    }

    /// Reads a page; reads of clients share what is under way.
    async fn read_raw(&self, page: PageNo, class: IoClass) -> Result<PageImage, EngineError> {
        let read = if class == IoClass::ClientRead {
            self.shared_reads.read(page, || self.medium.read(page, class)).await
        } else {
            self.medium.read(page, class).await
        };
        read.map_err(|_| EngineError::Corrupt(page))
    }

    /// Reads a page and checks that it is what was written there.
    pub(crate) async fn read_page(
        &self,
        page: PageNo,
        class: IoClass,
    ) -> Result<PageImage, EngineError> {
        let image = self.read_raw(page, class).await?;
        self.check_page(page, image)
    }

    pub(crate) fn check_page(
        &self,
        page: PageNo,
        image: PageImage,
    ) -> Result<PageImage, EngineError> {
        let is_intact = page::is_intact(&image, page) || self.planted.has(Fault::SkipChecksum);
        if is_intact { Ok(image) } else { Err(EngineError::Corrupt(page)) }
    }

    /// Reads a page that must be a meta segment.
    pub(crate) async fn read_meta(
        &self,
        page: PageNo,
        class: IoClass,
    ) -> Result<PageImage, EngineError> {
        let image = self.read_raw(page, class).await?;
        self.check_meta(page, image)
    }

    /// Checks a page that was read and must be a meta segment.
    pub(crate) fn check_meta(
        &self,
        page: PageNo,
        image: PageImage,
    ) -> Result<PageImage, EngineError> {
        let image = self.check_page(page, image)?;
        let is_meta = MetaSegment::new(image.bytes(), self.format).is_some();
        if is_meta { Ok(image) } else { Err(EngineError::Corrupt(page)) }
    }

    /// Reads the value that `pointer` says `key` has.
    pub(crate) async fn read_value(
        &self,
        key: &[u8],
        pointer: Pointer,
        class: IoClass,
        flash_reads: &mut u32,
    ) -> Result<Value, EngineError> {
        let (page, piece) = self.format.locate(pointer);
        let image = self.read_page(page, class).await?;
        *flash_reads += 1;
        match data_page::find(image.bytes(), piece, key) {
            Some(Found::Whole(value)) => Ok(value),
            Some(Found::Large(head)) => self.read_large(page, head, class, flash_reads).await,
            None => Err(EngineError::Corrupt(page)),
        }
    }

    /// Reads the further pages of a large value, all at once.
    pub(crate) async fn read_large(
        &self,
        first: PageNo,
        head: ObjectHead<'_>,
        class: IoClass,
        flash_reads: &mut u32,
    ) -> Result<Value, EngineError> {
        let payload = self.shape.payload_bytes;
        let pages = data_page::pages_of_large(payload, head.key.len(), head.value_len);
        let tails: Vec<_> =
            (1..pages).map(|number| self.medium.read(PageNo(first.0 + number), class)).collect();
        let mut bytes = head.first_part().to_vec();
        for (number, tail) in (1..).zip(tails) {
            let page = PageNo(first.0 + number);
            let image = tail.await.map_err(|_| EngineError::Corrupt(page))?;
            *flash_reads += 1;
            let image = self.check_page(page, image)?;
            let part = data_page::tail_part(image.bytes(), number);
            bytes.extend_from_slice(part.ok_or(EngineError::Corrupt(page))?);
        }
        if head.is_synthetic {
            return head.value().ok_or(EngineError::Corrupt(first));
        }
        if bytes.len() == head.value_len as usize {
            Ok(Value::from_bytes(&bytes))
        } else {
            Err(EngineError::Corrupt(first))
        }
    }

    /// The write path of puts and deletes.
    async fn write(
        &self,
        key: &[u8],
        entry: Entry,
        condition: Condition,
        work: Nanos,
    ) -> Result<bool, EngineError> {
        let is_delete = entry.is_none();
        let cost = self.cpu.costs.of(Effort { memtables: 1, ..Effort::default() });
        if condition == Condition::Always {
            self.cpu.cores.spend(work + cost).await;
            // Last, so that what it found still holds at the insert.
            self.wait_for_room(is_delete).await?;
            self.insert(key, entry);
            return Ok(true);
        }
        loop {
            let (start, flushes) = (self.sequence.get(), self.flushes.get());
            let guard = self.epochs.enter();
            let exists = match self.locate(key, work + cost, &mut 0).await? {
                Located::Absent => false,
                Located::Memory(entry) => entry.is_some(),
                Located::At(_) => true,
            };
            // Not while waiting for room: making room may mean waiting for readers to leave.
            drop(guard);
            self.wait_for_room(is_delete).await?;
            // No await from here to the insert: nothing can come in between.
            if self.flushes.get() != flushes {
                continue; // what was newer may have left the memtables meanwhile
            }
            let newest = self.memtables.borrow().get(key).map(|(at, entry)| (at, entry.is_some()));
            let exists = newest.filter(|(at, _)| *at > start).map_or(exists, |(_, is_put)| is_put);
            if exists != (condition == Condition::MustExist) {
                return Ok(false);
            }
            self.insert(key, entry);
            return Ok(true);
        }
    }

    /// Puts a client's write in the active memtable. No await: it happens at one instant.
    fn insert(&self, key: &[u8], entry: Entry) {
        let bytes = key.len() as u64 + u64::from(entry.as_ref().map_or(0, Value::len));
        self.sequence.set(self.sequence.get() + 1);
        {
            let mut stats = self.stats.borrow_mut();
            stats.writes += 1;
            stats.user_bytes += bytes;
        }
        self.insert_at(key, self.sequence.get(), entry);
    }

    /// Puts a write with its sequence number in the active memtable, and freezes that if full.
    pub(crate) fn insert_at(&self, key: &[u8], sequence: Sequence, entry: Entry) {
        self.memtables.borrow_mut().active.insert(key, sequence, entry, None);
        let is_due = self.memtables.borrow().active.bytes() >= self.options.memtable_bytes;
        if is_due || self.is_squeezing.get() {
            self.freeze_active();
        }
    }

    /// Hands the active memtable to the flush, if there is room in front of it.
    pub(crate) fn freeze_active(&self) {
        let memtables = &mut *self.memtables.borrow_mut();
        let has_room = memtables.frozen.len() < self.options.frozen_memtables;
        if has_room && memtables.active.len() > 0 {
            memtables.frozen.push_back(Rc::new(std::mem::take(&mut memtables.active)));
            self.work.notify_all();
        }
    }

    /// Waits until a client's write may go ahead.
    async fn wait_for_room(&self, is_delete: bool) -> Result<(), EngineError> {
        let started = self.handle.now();
        let mut has_waited = false;
        loop {
            if let Some(page) = self.failure.get() {
                return Err(EngineError::ReadOnly(page));
            }
            if self.is_full.get() && !is_delete {
                return Err(EngineError::Full);
            }
            let has_space = is_delete || self.has_space_for_clients();
            if self.has_memtable_room() && has_space {
                break;
            }
            has_waited = true;
            self.room.notified().await;
        }
        if has_waited {
            let mut stats = self.stats.borrow_mut();
            stats.stalls += 1;
            stats.stalled += self.handle.now() - started;
        }
        Ok(())
    }

    pub(crate) fn has_memtable_room(&self) -> bool {
        let memtables = self.memtables.borrow();
        memtables.active.bytes() < self.options.memtable_bytes
            || memtables.frozen.len() < self.options.frozen_memtables
    }

    /// Clients leave the last extents to the background work that makes room again, and wait while
    /// pinned levels are over the memory budget.
    fn has_space_for_clients(&self) -> bool {
        self.extents.borrow().free() > self.client_reserve()
            && self.memory_index_bytes() <= self.surroundings.index_dram_bytes
    }

    /// Free extents that clients may not use.
    pub(crate) fn client_reserve(&self) -> usize {
        let flush_pages = self.options.memtable_bytes.div_ceil(u64::from(self.shape.payload_bytes));
        3 + (2 * flush_pages).div_ceil(u64::from(self.shape.pages_per_extent)) as usize
    }

    fn check_value(&self, key: &[u8], value: &Value) -> Result<(), EngineError> {
        let max = self.max_value_bytes();
        let pages = data_page::pages_of(self.shape.payload_bytes, key.len(), value.len());
        if value.len() <= max && pages <= self.shape.pages_per_extent {
            return Ok(());
        }
        Err(EngineError::ValueTooLarge { len: value.len(), max })
    }

    fn max_value_bytes(&self) -> u32 {
        // A large value lies in consecutive pages of one extent; small drives have small extents.
        let pages = (self.shape.pages_per_extent / 4).max(1);
        let in_pages = (self.shape.payload_bytes - 512) * pages;
        MAX_VALUE_BYTES.min(in_pages)
    }

    fn read_bound(&self, key_len: usize, value_len: u32) -> u32 {
        let payload = self.shape.payload_bytes;
        self.unpinned_levels() + data_page::pages_of(payload, key_len, value_len)
    }

    /// Levels that are not in memory altogether: each may cost a Get a read.
    fn unpinned_levels(&self) -> u32 {
        let version = self.version.borrow();
        let totals = version.levels().iter().map(|level| level.totals());
        totals.filter(|totals| totals.pinned < totals.segments).count() as u32
    }

    /// `unpinned` is the number of levels not in memory when the Get began.
    fn count_get(&self, key: &[u8], value: Option<&Value>, flash_reads: u32, unpinned: u32) {
        let payload = self.shape.payload_bytes;
        let bound =
            unpinned + value.map_or(0, |v| data_page::pages_of(payload, key.len(), v.len()));
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
