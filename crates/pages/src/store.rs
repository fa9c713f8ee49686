//! The page store: what an index keeps its pages and objects in.
//!
//! It knows extents, space, reads, writes and releases, and nothing of keys in order. Every index
//! (the LSM-tree, the hash table) owns one.
//!
//! Invariants: a page that was handed out and has no place in an index yet is *unpublished*, and a
//! power cut makes a hole of it; space is promised before it is written to, so that no write ever
//! waits half-way (`space`); an extent is released only when no reader under way can lead to it
//! (`epochs`).

pub mod apart;
pub mod changes;
pub mod epochs;
pub mod extent;
pub mod extents;
mod handing_out;
pub(crate) mod journaling;
pub(crate) mod limits;
pub(crate) mod pacing;
pub mod pins;
pub mod promise;
pub(crate) mod publishing;
pub(crate) mod reading;
pub(crate) mod releasing;
pub(crate) mod shared_reads;
pub mod space;
pub mod sweep;
mod tally;
pub(crate) mod units;
pub(crate) mod unread;
pub mod value_read;
pub mod writing;

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
use crate::store::epochs::Epochs;
use crate::store::extent::{Extent, State};
use crate::store::extents::Extents;
use crate::store::pins::{Moment, Pins};
use crate::store::promise::Promised;
use crate::store::shared_reads::SharedReads;
use crate::store::unread::Unread;

/// The processor a store runs on, and what its steps cost there.
pub struct Cpu {
    /// The cores; shared with whoever else runs on them.
    pub cores: Rc<Cores>,
    /// What each step costs.
    pub costs: CpuCosts,
}

/// The highest number of a store's first run, and the most by which one grows from run to run.
pub(crate) const MOST_FIRST_RUN: u32 = 1 << 12;

/// What waits for room that the medium lacks, and will be written as soon as there is some.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lack {
    /// Of the log or the manifest: no write becomes durable.
    pub journal: bool,
    /// Of what background work writes.
    pub others: bool,
}

/// What clients are told who would wait for it.
pub(crate) const NO_ROOM: EngineError = EngineError::Medium(MediumError::NoSpace);

/// Pages and extents of one medium.
pub struct PageStore<M> {
    /// Clock, tasks, randomness.
    pub handle: Handle,
    /// Where pages go.
    pub medium: M,
    /// Stands in every page, those of the journal included.
    pub id: Rc<Cell<StoreId>>,
    /// The form of the medium, whose pages have no more bytes than a page can say.
    pub shape: Shape,
    /// Pages that are written together at best.
    pub(crate) run_pages: u32,
    /// How pointers are stored on it.
    pub format: PointerFormat,
    /// The processor.
    pub cpu: Cpu,
    /// A deliberate bug, for tests of the tests.
    pub planted: Planted,
    /// Readers under way.
    pub epochs: Epochs,
    /// What snapshots may read.
    pub pins: Pins,
    /// The state of every extent.
    pub extents: RefCell<Extents>,
    /// Background tasks wait here.
    pub work: Rc<Notify>,
    /// Writers wait here.
    pub room: Rc<Notify>,
    pub(crate) shared_reads: SharedReads,
    pub(crate) rebuilt_reads: Cell<u64>,
    /// Pages handed out to writers whose result is not published yet.
    pub(crate) unpublished: RefCell<BTreeSet<PageNo>>,
    promised: Promised,
    /// Objects of one flush at a time are handed to the medium: pages of a large one follow one another,
    /// and so do those of a flush.
    handing_out: Semaphore,
    /// Extents that others leave to a stream which cannot do without them.
    pub set_aside: [Cell<usize>; Stream::ALL.len()],
    /// Whether edits see to it that what they refer to is durable before they are ([`Self::sync_placed`]). Else whoever
    /// writes waits for that.
    pub edits_sync: Cell<bool>,
    /// Extents that one step of a compaction takes at most; flushes leave them to it.
    pub step_extents: Cell<usize>,
    /// One extent is erased at a time, so that reads never find all dies erasing.
    erasing: Semaphore,
    /// Extents whose objects were moved to memtables, with the number of the memtable that has to be
    /// flushed before they can be released. Only where memory does not survive.
    pub moved: RefCell<Vec<(ExtentId, u64)>>,
    /// Extents that are to be released, and since when nothing refers to them.
    retired: RefCell<BTreeMap<ExtentId, Moment>>,
    /// Extents that could not be read.
    unread: RefCell<Unread>,
    /// Whether the counts of extents are another life's.
    is_recovered: Cell<bool>,
    /// Why background work stopped, if it did.
    failure: Rc<Cell<Option<Failure>>>,
    /// What waits for room that the medium lacks.
    lack: Cell<Lack>,
    /// Whether nothing but log and manifest lies here.
    is_journal: bool,
    /// Log and manifest, if they lie on a medium of their own.
    pub(crate) journal: OnceCell<Rc<Self>>,
}

impl<M: Medium> PageStore<M> {
    /// A store of the identity `id`, all of whose extents are free.
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

    pub(crate) fn set_lack(&self, lack: Lack) {
        self.lack.set(lack);
        self.room.notify_all();
        self.work.notify_all();
    }

    /// Background work cannot go on. The first reason is the one that is told.
    pub fn fail(&self, failure: impl Into<Failure>) {
        let failure = match failure.into() {
            Failure::Medium(error) if self.is_journal => Failure::JournalMedium(error),
            other => other,
        };
        self.failure.set(self.failure.get().or(Some(failure)));
        self.room.notify_all();
        self.work.notify_all();
    }

    /// A run begins, and has this number: pages carry it from now on, where media are written anywhere. What a run before
    /// wrote, and no manifest knows of, may lie where this one writes.
    pub(crate) fn begin_run(&self, run: u32) {
        for store in [self].into_iter().chain(self.journal.get().map(|journal| &**journal)) {
            if store.medium.is_written_anywhere() {
                store.extents.borrow_mut().begin_run(run);
            }
        }
    }

    /// A number for the run behind those up to `last`; `None` if there is none left. Where media are written anywhere it is
    /// drawn from some thousands: a recovery may not see that there was another one behind `last`, cut short, or on a
    /// member that is away, and is not to begin the same run.
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

    /// Takes the counts of extents over from another life.
    pub fn restore_extents(&self, extents: Extents) {
        *self.extents.borrow_mut() = extents;
        self.is_recovered.set(true);
    }

    /// An extent in which nothing is in use, of those that `may_go`. `None` in a store that has failed:
    /// it may have done so because its counts cannot be right.
    pub fn empty_extent(&self, may_go: impl Fn(ExtentId, &Extent) -> bool) -> Option<ExtentId> {
        self.is_healthy().then(|| self.extents.borrow().empty(may_go))?
    }

    /// The index and what is counted of it contradict one another: a bug, unless it came so from another
    /// life. Then the store takes no more writes.
    pub fn contradicts_itself(&self, what: &'static str) -> EngineError {
        assert!(self.is_recovered.get(), "{what}");
        let failure = Failure::Inconsistent(what);
        self.fail(failure);
        EngineError::ReadOnly(failure)
    }

    /// Why background work stopped, if it did.
    pub fn failure(&self) -> Option<Failure> {
        self.failure.get()
    }

    /// # Errors
    /// [`EngineError::ReadOnly`] once background work has stopped.
    pub fn check_healthy(&self) -> Result<(), EngineError> {
        self.failure().map_or(Ok(()), |failure| Err(EngineError::ReadOnly(failure)))
    }

    /// What waits for room that the medium lacks.
    pub(crate) fn lack(&self) -> Lack {
        self.lack.get()
    }

    /// Whether anything waits for room that the medium lacks.
    pub fn lacks_room(&self) -> bool {
        self.lack.get() != Lack::default()
    }

    /// Whether background work goes on.
    pub fn is_healthy(&self) -> bool {
        self.failure.get().is_none()
    }

    /// Client reads that another client's read served.
    pub fn shared_reads(&self) -> u64 {
        self.shared_reads.shared()
    }

    /// Pages that were not what they should be, and were rebuilt from the medium's redundancy.
    pub fn rebuilt_reads(&self) -> u64 {
        self.rebuilt_reads.get()
    }

    pub(crate) fn count_rebuilt(&self, pages: u64) {
        self.rebuilt_reads.set(self.rebuilt_reads.get() + pages);
    }

    /// Whether every page of the extent that was handed out is published (or a known hole).
    pub fn is_published(&self, id: ExtentId) -> bool {
        let first = self.shape.page(id, 0);
        let end = PageNo(first.0 + self.shape.pages_per_extent);
        self.unpublished.borrow().range(first..end).next().is_none()
    }

    /// The extents as a power cut would leave them: what is unpublished becomes holes.
    pub fn extents_after_a_cut(&self) -> Extents {
        let mut extents = self.extents.borrow().clone();
        for page in &*self.unpublished.borrow() {
            extents.add_hole(*page);
        }
        extents
    }

    /// After a power cut that memory has survived: makes the extents that were being filled ready to
    /// be filled further. They are not closed instead, because a drive that loses power over and over
    /// would run out of free ones; but for those that hold nothing in use, which it gets back.
    ///
    /// # Errors
    /// [`OpenError::LostMemory`] if anything lies where nothing may, [`OpenError::Medium`].
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

    /// Whether the extent's count of live items can be relied on. Once generations have wrapped
    /// around, an entry that was left behind long ago may have been taken for a death among the
    /// present contents: such a data extent is read before it is released.
    pub fn count_is_certain(&self, id: ExtentId) -> bool {
        let extents = self.extents.borrow();
        let extent = extents.get(id);
        extent.stream != Stream::Objects || self.format.tells_apart(extent.generation)
    }
}
