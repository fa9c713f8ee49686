//! The page store: holds the pages and objects of an index.
//!
//! It manages extents, space, reads, writes and releases, and knows nothing about the order of
//! keys. Every index (the LSM-tree, the hash table) owns one.
//!
//! Invariants:
//! - A page that was handed out and has no place in an index yet is *unpublished*. A power cut
//!   turns it into a hole.
//! - Space is promised before it is written to, so that no write waits half-way (`priority`).
//! - An extent is released only when no active reader can reach it (`epochs`).

pub(crate) mod apart;
pub(crate) mod epochs;
pub(crate) mod extent;
pub(crate) mod extents;
pub(crate) mod handing_out;
pub(crate) mod limits;
pub(crate) mod pacing;
pub(crate) mod pins;
pub(crate) mod priority;
pub(crate) mod promise;
mod quarantine;
pub(crate) mod releasing;
pub(crate) mod tally;
pub(crate) mod units;
pub(crate) mod unread;
pub(crate) mod writing;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use runtime::{Cores, Handle, Notify, Semaphore};

use crate::effort::CpuCosts;
use crate::error::{EngineError, Failure, OpenError};
use crate::format::page::{HEADER_BYTES, MAX_PAGE_BYTES, StoreId};
use crate::format::pointer::PointerFormat;
use crate::medium::{ExtentId, Medium, MediumError, PageNo, Shape, Stream};
use crate::planted::Planted;
use crate::read::shared::SharedReads;
use crate::space::epochs::Epochs;
use crate::space::extent::{Extent, State};
use crate::space::extents::Extents;
use crate::space::pins::{Moment, Pins};
use crate::space::promise::Promised;
use crate::space::unread::Unread;

/// The processor that a store runs on, and the costs of its steps there.
pub struct Cpu {
    /// The cores; shared with other users of the processor.
    pub cores: Rc<Cores>,
    /// The cost of each step.
    pub costs: CpuCosts,
}

/// The highest number of a store's first run, and the largest step from one run to the next.
pub(crate) const MOST_FIRST_RUN: u32 = 1 << 12;

/// The kinds of writes that wait because the medium is out of space. They continue as soon as it
/// has some.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lack {
    /// Writes of the log or the manifest: no client write becomes durable.
    pub journal: bool,
    /// Writes of background work.
    pub others: bool,
}

/// The error returned to clients that would wait for such space.
pub(crate) const NO_ROOM: EngineError = EngineError::Medium(MediumError::NoSpace);

/// Pages and extents of one medium.
pub struct PageStore<M> {
    /// Clock, tasks and random numbers.
    pub handle: Handle,
    /// The medium that stores the pages.
    pub medium: M,
    /// The identity that every page contains, journal pages included.
    pub id: Rc<Cell<StoreId>>,
    /// The shape of the medium. `payload_bytes` is capped at `MAX_PAGE_BYTES`, the most that a
    /// page can describe.
    pub shape: Shape,
    /// The number of pages that are best written together.
    pub(crate) run_pages: u32,
    /// The encoding of pointers for this medium.
    pub format: PointerFormat,
    /// The processor.
    pub cpu: Cpu,
    /// A deliberate bug, to test the tests.
    pub planted: Planted,
    /// The active readers.
    pub epochs: Epochs,
    /// The extents that snapshots may read.
    pub pins: Pins,
    /// The state of every extent.
    pub extents: RefCell<Extents>,
    /// Wakes background tasks.
    pub work: Rc<Notify>,
    /// Wakes writers.
    pub room: Rc<Notify>,
    pub(crate) shared_reads: SharedReads,
    pub(crate) rebuilt_reads: Cell<u64>,
    /// Pages that were handed out to writers and are not published yet.
    pub(crate) unpublished: RefCell<BTreeSet<PageNo>>,
    promised: Promised,
    /// Serialises flushes: the pages of a large object are consecutive, and so are those of a
    /// flush.
    handing_out: Semaphore,
    /// For each stream: extents reserved for it, because it cannot work without them.
    pub set_aside: [Cell<usize>; Stream::ALL.len()],
    /// Whether an edit makes the pages that it refers to durable before the edit itself
    /// ([`Self::sync_placed`]). Otherwise each writer of pages waits for that.
    pub edits_sync: Cell<bool>,
    /// The most extents that one step of a compaction uses. Flushes leave them free.
    pub step_extents: Cell<usize>,
    /// Allows one erase at a time, so that a read never finds all dies erasing.
    erasing: Semaphore,
    /// Extents whose objects were moved to memtables, with the number of the memtable that must be
    /// flushed before the extent can be released. Used only where memory does not survive a power
    /// cut.
    pub moved: RefCell<Vec<(ExtentId, u64)>>,
    /// Extents to be released, with the moment from which nothing refers to them.
    retired: RefCell<BTreeMap<ExtentId, Moment>>,
    /// Extents that could not be read.
    pub(crate) unread: RefCell<Unread>,
    /// Whether the counts of the extents come from a recovery.
    is_recovered: Cell<bool>,
    /// The reason why background work stopped, if it did.
    pub(crate) failure: Rc<Cell<Option<Failure>>>,
    /// The writes that wait because the medium is out of space.
    lack: Cell<Lack>,
    /// Whether the store holds only log and manifest.
    pub(crate) is_journal: bool,
    /// The store of log and manifest, if they have a medium of their own.
    pub(crate) journal: OnceCell<Rc<Self>>,
}

impl<M: Medium> PageStore<M> {
    /// Creates a store with the identity `id`, all of whose extents are free.
    pub fn new(handle: Handle, medium: M, cpu: Cpu, planted: Planted, id: StoreId) -> Self {
        let shape = medium.shape();
        let payload_bytes = shape.payload_bytes.min(MAX_PAGE_BYTES);
        let shape = Shape { payload_bytes, ..shape };
        assert!(payload_bytes as usize >= 2 * HEADER_BYTES, "pages of {payload_bytes} bytes");
        assert!(
            shape.pages_per_extent.is_multiple_of(shape.append_unit),
            "extents of {} pages are not whole append units of {}",
            shape.pages_per_extent,
            shape.append_unit
        );
        let work = Rc::<Notify>::default();
        let run_pages = medium.run_pages();
        assert!(
            run_pages > 0 && run_pages.is_multiple_of(shape.append_unit),
            "runs of {run_pages} pages are not whole append units of {}",
            shape.append_unit
        );
        Self {
            run_pages,
            handle,
            medium,
            id: Rc::new(Cell::new(id)),
            shape,
            format: PointerFormat::new(&shape),
            cpu,
            planted,
            epochs: Epochs::default(),
            pins: Pins::new(Rc::clone(&work)),
            moved: RefCell::default(),
            retired: RefCell::default(),
            unread: RefCell::default(),
            extents: RefCell::new(Extents::new(shape)),
            work,
            room: Rc::default(),
            shared_reads: SharedReads::default(),
            rebuilt_reads: Cell::new(0),
            unpublished: RefCell::default(),
            promised: Promised::default(),
            handing_out: Semaphore::new(1),
            set_aside: Default::default(),
            edits_sync: Cell::new(false),
            step_extents: Cell::new(1),
            erasing: Semaphore::new(1),
            is_recovered: Cell::new(false),
            failure: Rc::default(),
            lack: Cell::default(),
            is_journal: false,
            journal: OnceCell::new(),
        }
    }

    /// Returns a store of log and manifest on `medium`, with the identity, the failure and the
    /// waiting tasks of this store.
    pub(crate) fn store_of_journal(&self, medium: M) -> Self {
        let cpu = Cpu { cores: Rc::clone(&self.cpu.cores), costs: self.cpu.costs.clone() };
        Self {
            id: Rc::clone(&self.id),
            room: Rc::clone(&self.room),
            work: Rc::clone(&self.work),
            failure: Rc::clone(&self.failure),
            is_journal: true,
            ..Self::new(self.handle.clone(), medium, cpu, self.planted, self.id.get())
        }
    }

    pub(crate) fn set_lack(&self, lack: Lack) {
        self.lack.set(lack);
        self.room.notify_all();
        self.work.notify_all();
    }

    /// Stops background work. The first failure is the one that is reported.
    pub fn fail(&self, failure: impl Into<Failure>) {
        let failure = match failure.into() {
            Failure::Medium(error) if self.is_journal => Failure::JournalMedium(error),
            other => other,
        };
        self.failure.set(self.failure.get().or(Some(failure)));
        self.room.notify_all();
        self.work.notify_all();
    }

    /// Begins run `run`: pages contain this number from now on, if the medium is written anywhere.
    /// On such a medium, pages that an earlier run wrote and no manifest knows of may lie where
    /// this run writes.
    pub(crate) fn begin_run(&self, run: u32) {
        for store in [self].into_iter().chain(self.journal.get().map(|journal| &**journal)) {
            if store.medium.is_written_anywhere() {
                store.extents.borrow_mut().begin_run(run);
            }
        }
    }

    /// Returns a number for the run after `last`; `None` if the numbers are used up. On media that
    /// are written anywhere, a random number of some thousand is skipped. Recovery may not see that
    /// there was a run after `last`, which was interrupted or is on a missing member, and must not
    /// use the number of that run again.
    pub(crate) fn run_after(&self, last: u32) -> Option<u32> {
        let is_anywhere = self.medium.is_written_anywhere()
            || self.journal.get().is_some_and(|journal| journal.medium.is_written_anywhere());
        let skipped = if is_anywhere {
            let label = format!("run begun at {}", self.handle.now().0);
            self.handle.rng(&label).below(u64::from(MOST_FIRST_RUN)) as u32
        } else {
            0
        };
        last.checked_add(1 + skipped)
    }

    /// Restores the state of the extents from a recovery.
    pub fn restore_extents(&self, extents: Extents) {
        *self.extents.borrow_mut() = extents;
        self.is_recovered.set(true);
    }

    /// Returns an extent without live items for which `may_go` is true. Returns `None` in a store
    /// that has failed, because wrong counts may be the reason for the failure.
    pub fn empty_extent(&self, may_go: impl Fn(ExtentId, &Extent) -> bool) -> Option<ExtentId> {
        self.is_healthy().then(|| self.extents.borrow().empty(may_go))?
    }

    /// Reports that the index and its counts contradict each other. That is a bug, unless the state
    /// was recovered. In that case the store accepts no more writes.
    pub fn contradicts_itself(&self, what: &'static str) -> EngineError {
        assert!(self.is_recovered.get(), "{what}");
        let failure = Failure::Inconsistent(what);
        self.fail(failure);
        EngineError::ReadOnly(failure)
    }

    /// Returns the reason why background work stopped, if it did.
    pub fn failure(&self) -> Option<Failure> {
        self.failure.get()
    }

    /// Checks that background work has not stopped.
    ///
    /// # Errors
    /// Returns [`EngineError::ReadOnly`] once background work has stopped.
    pub fn check_healthy(&self) -> Result<(), EngineError> {
        self.failure().map_or(Ok(()), |failure| Err(EngineError::ReadOnly(failure)))
    }

    /// Returns the writes that wait because the medium is out of space.
    pub(crate) fn lack(&self) -> Lack {
        self.lack.get()
    }

    /// Whether any write waits because the medium is out of space.
    pub fn lacks_room(&self) -> bool {
        self.lack.get() != Lack::default()
    }

    /// Whether background work is running, that is, has not failed.
    pub fn is_healthy(&self) -> bool {
        self.failure.get().is_none()
    }

    /// Returns the number of client reads that another client's read served.
    pub fn shared_reads(&self) -> u64 {
        self.shared_reads.shared()
    }

    /// Returns the number of damaged pages that were rebuilt from the medium's redundancy.
    pub fn rebuilt_reads(&self) -> u64 {
        self.rebuilt_reads.get()
    }

    pub(crate) fn count_rebuilt(&self, pages: u64) {
        self.rebuilt_reads.set(self.rebuilt_reads.get() + pages);
    }

    /// Whether every page handed out in the extent is published or a known hole.
    pub fn is_published(&self, id: ExtentId) -> bool {
        let first = self.shape.page(id, 0);
        let end = PageNo(first.0 + self.shape.pages_per_extent);
        self.unpublished.borrow().range(first..end).next().is_none()
    }

    /// Returns the extents as a power cut would leave them: unpublished pages become holes.
    pub fn extents_after_a_cut(&self) -> Extents {
        let mut extents = self.extents.borrow().clone();
        for page in &*self.unpublished.borrow() {
            extents.add_hole(*page);
        }
        extents
    }

    /// Prepares the open extents to be filled further after a power cut that memory has survived.
    /// They are not closed, because a drive that loses power again and again would run out of free
    /// extents. Open extents without live items are closed, so that they can be released.
    ///
    /// # Errors
    /// Returns [`OpenError::LostMemory`] if a page is found where none may be,
    /// [`OpenError::Medium`] if the medium fails.
    pub async fn resume(&self) -> Result<(), OpenError> {
        let (open, free) = {
            let extents = self.extents.borrow();
            let free = extents.iter().filter(|(_, extent)| extent.state == State::Free);
            (extents.open_ones(), free.map(|(id, _)| id).collect::<Vec<_>>())
        };
        for id in free {
            if self.medium.frontier(id).await? > 0 {
                return Err(OpenError::LostMemory);
            }
        }
        for id in open {
            let frontier = self.medium.frontier(id).await?;
            let resumed = self.extents.borrow_mut().resume_at(id, frontier);
            resumed.ok_or(OpenError::LostMemory)?;
            self.extents.borrow_mut().close_if_unused(id);
        }
        Ok(())
    }

    /// Whether the extent's count of live items is reliable. Once generations have wrapped around,
    /// an old index entry may have been counted as a death among the present contents. Such a data
    /// extent is read before it is released.
    pub fn count_is_certain(&self, id: ExtentId) -> bool {
        let extents = self.extents.borrow();
        let extent = extents.get(id);
        extent.stream != Stream::Objects || self.format.tells_apart(extent.generation)
    }
}
