//! Snapshots: the store as it was at one instant.
//!
//! A snapshot is a sequence number, the memtables and the version of that instant, and a pin on
//! every extent that was in use. All are shared: what it costs is what has changed since. Memory is
//! bounded (`Surroundings::iterator_dram_bytes`) and so is space; when either runs out, the oldest
//! snapshot expires, and writes never wait for a reader that forgot to leave.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::{Rc, Weak};

use pages::error::{EngineError, Expired, WantOf};
use pages::format::object::Sequence;
use pages::medium::Medium;
use pages::memtable::SharedMemtable;
use pages::store::pins::Pin;
use runtime::{Handle, Nanos};

use crate::lsm::Inner;
use crate::lsm::memory::DESCRIPTOR_OVERHEAD_BYTES;
use crate::lsm::version::Version;
use crate::planted::Fault;

/// The store at one instant.
pub(crate) struct Snapshot {
    /// Writes up to this one are in it.
    pub sequence: Sequence,
    /// Newest first; shared with the writers, so read as of `sequence`.
    pub memtables: Vec<SharedMemtable>,
    pub version: Rc<Version>,
    number: u64,
    registry: Snapshots,
    pin: Pin,
    handle: Handle,
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        // One that was flushed meanwhile nobody else may have: as in `Front::flushed`.
        for memtable in self.memtables.drain(..) {
            if let Ok(memtable) = Rc::try_unwrap(memtable) {
                drop(self.handle.compute(move || drop(memtable)));
            }
        }
        let live = self.registry.shared.live.borrow_mut().remove(&self.number);
        assert!(live.is_some(), "snapshot {} goes twice", self.number);
    }
}

/// Somebody's hold on a snapshot, until it expires.
pub(crate) struct Hold {
    snapshot: RefCell<Result<Rc<Snapshot>, Expired>>,
    created: Nanos,
    /// Of the iterators that read it.
    buffer_bytes: Cell<u64>,
}

impl Hold {
    /// The snapshot.
    ///
    /// # Errors
    /// [`EngineError::SnapshotTooOld`] once it has expired.
    pub(crate) fn get(&self) -> Result<Rc<Snapshot>, EngineError> {
        self.snapshot.borrow().clone().map_err(EngineError::SnapshotTooOld)
    }

    /// An iterator that reads it has more.
    fn take(&self, bytes: u64) {
        self.buffer_bytes.set(self.buffer_bytes.get() + bytes);
    }

    /// An iterator that reads it goes.
    pub(crate) fn give_buffer_back(&self, bytes: u64) {
        let held = self.buffer_bytes.get();
        let left = held.checked_sub(bytes).expect("an iterator gives back what it took");
        self.buffer_bytes.set(left);
    }
}

/// A snapshot as statistics show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotInfo {
    /// When it was made, in order from 0.
    pub number: u64,
    /// How long it has lived.
    pub age: Nanos,
    /// Extents that nothing refers to any more but it, and other snapshots maybe.
    pub extents_held: u64,
}

/// What snapshots cost in memory, in bytes of the device, apart from what the store needs anyway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotMemory {
    /// Descriptors of segments that are in no current level.
    pub descriptors: u64,
    /// Chunks of versions that the current one does not share.
    pub views: u64,
    /// Segments in memory that are in no current level.
    pub pinned_segments: u64,
    /// Memtables that have been flushed.
    pub memtables: u64,
    /// Buffers for prefetches.
    pub buffers: u64,
}

impl SnapshotMemory {
    /// All of it.
    pub fn total(&self) -> u64 {
        self.descriptors + self.views + self.pinned_segments + self.memtables + self.buffers
    }
}

/// The snapshots that live. Clones are handles to the same.
#[derive(Clone, Default)]
pub(crate) struct Snapshots {
    shared: Rc<Shared>,
}

#[derive(Default)]
struct Shared {
    next: Cell<u64>,
    live: RefCell<BTreeMap<u64, Live>>,
}

struct Live {
    sequence: Sequence,
    hold: Weak<Hold>,
}

impl Snapshots {
    /// The sequence number of the newest one.
    pub(crate) fn newest(&self) -> Option<Sequence> {
        self.shared.live.borrow().last_key_value().map(|(_, live)| live.sequence)
    }

    fn holds(&self) -> Vec<(u64, Rc<Hold>)> {
        let live = self.shared.live.borrow();
        live.iter().filter_map(|(number, live)| Some((*number, live.hold.upgrade()?))).collect()
    }

    /// Whether one lives that nobody holds any more: a command under way or a read ahead of one has
    /// it, and it goes when that ends.
    fn is_any_leaving(&self) -> bool {
        let is_held = |hold: Rc<Hold>| hold.snapshot.borrow().is_ok();
        self.shared.live.borrow().values().any(|live| !live.hold.upgrade().is_some_and(is_held))
    }

    /// Takes the oldest snapshot away from whoever holds it. False if nobody holds any.
    fn expire_oldest(&self, now: Nanos, for_want_of: WantOf) -> bool {
        let is_held = |(_, hold): &(u64, Rc<Hold>)| hold.snapshot.borrow().is_ok();
        let Some((_, hold)) = self.holds().into_iter().find(is_held) else { return false };
        let expired = Expired { age: now - hold.created, for_want_of };
        let taken = hold.snapshot.replace(Err(expired));
        taken.is_ok()
    }
}

/// What came of the wish that a snapshot expire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expiry {
    /// One has expired.
    Done,
    /// One is expiring: a command still uses it.
    UnderWay,
    /// The oldest may live until then: most are gone by themselves before.
    NotBefore(Nanos),
    /// There is none.
    Nothing,
}

/// How long a snapshot may hold back space that writers wait for: a scan of some thousand pairs.
const GRACE: Nanos = Nanos(50_000_000);

/// Bytes of a reference to a descriptor in a view.
const REFERENCE_BYTES: u64 = 4;

impl<M: Medium> Inner<M> {
    /// Takes a snapshot now. Its holder needs `buffer_bytes` of buffers.
    ///
    /// # Errors
    /// [`EngineError::IteratorMemory`] if there is no memory for it.
    pub(crate) fn take_snapshot(&self, buffer_bytes: u64) -> Result<Rc<Hold>, EngineError> {
        let budget = self.surroundings.iterator_dram_bytes;
        if self.snapshot_memory().total() + buffer_bytes > budget {
            return Err(EngineError::IteratorMemory);
        }
        let registry = self.snapshots.clone();
        let number = registry.shared.next.replace(registry.shared.next.get() + 1);
        let reads_on = self.planted.has(Fault::ReadPastSnapshot);
        let sequence = if reads_on { Sequence::MAX } else { self.front.sequence.get() };
        let before = self.snapshots.newest().unwrap_or(0);
        assert!(before <= sequence, "a snapshot of write {sequence} comes after {before}");
        let snapshot = Rc::new(Snapshot {
            sequence,
            memtables: self.front.memtables.borrow().newest_first().map(Rc::clone).collect(),
            version: Rc::clone(&self.version.borrow()),
            number,
            registry: registry.clone(),
            pin: self.store.pins.pin(self.store.extents.borrow().opened()),
            handle: self.store.handle.clone(),
        });
        let hold = Rc::new(Hold {
            snapshot: RefCell::new(Ok(snapshot)),
            created: self.store.handle.now(),
            buffer_bytes: Cell::new(buffer_bytes),
        });
        let live = Live { sequence, hold: Rc::downgrade(&hold) };
        registry.shared.live.borrow_mut().insert(number, live);
        Ok(hold)
    }

    /// One more iterator reads the snapshot that `hold` holds, and needs `bytes` of buffers.
    ///
    /// # Errors
    /// [`EngineError::IteratorMemory`] if there is no memory for it; [`EngineError::SnapshotTooOld`].
    pub(crate) fn take_buffer(&self, hold: &Hold, bytes: u64) -> Result<(), EngineError> {
        hold.get()?;
        if self.snapshot_memory().total() + bytes > self.surroundings.iterator_dram_bytes {
            return Err(EngineError::IteratorMemory);
        }
        hold.take(bytes);
        Ok(())
    }

    /// Gives an iterator that reads the snapshot `bytes` more of buffers, if what is left for those that begin is not touched. Whether it did.
    pub(crate) fn grow_buffer(&self, hold: &Hold, bytes: u64) -> bool {
        let for_growth = self.surroundings.iterator_dram_bytes / 4 * 3;
        let has_room = self.snapshot_memory().total() + bytes <= for_growth;
        if has_room {
            hold.take(bytes);
        }
        has_room
    }

    /// What snapshots cost now.
    pub(crate) fn snapshot_memory(&self) -> SnapshotMemory {
        if self.snapshots.newest().is_none() {
            return SnapshotMemory::default(); // what compactions have in hand is not theirs
        }
        let in_use = self.pool.in_use();
        let version = self.version.borrow();
        let totals = version.levels().iter().map(|level| level.totals());
        let (mut segments, mut pinned, mut key_bytes) = (0, 0, 0);
        for level in totals {
            segments += u64::from(level.segments);
            pinned += u64::from(level.pinned);
            key_bytes += level.key_bytes;
        }
        let descriptor_bytes = key_bytes / segments.max(1) + DESCRIPTOR_OVERHEAD_BYTES;
        let holds = self.snapshots.holds();
        SnapshotMemory {
            descriptors: in_use.descriptors.saturating_sub(segments) * descriptor_bytes,
            views: in_use.references.saturating_sub(segments) * REFERENCE_BYTES,
            pinned_segments: in_use.in_memory.saturating_sub(pinned)
                * u64::from(self.store.shape.page_bytes),
            memtables: self.flushed_memtable_bytes(&holds),
            buffers: holds.iter().map(|(_, hold)| hold.buffer_bytes.get()).sum(),
        }
    }

    /// Bytes of memtables that only snapshots hold.
    fn flushed_memtable_bytes(&self, holds: &[(u64, Rc<Hold>)]) -> u64 {
        let memtables = self.front.memtables.borrow();
        let mut seen: BTreeSet<_> = memtables.newest_first().map(Rc::as_ptr).collect();
        let snapshots = holds.iter().filter_map(|(_, hold)| hold.snapshot.borrow().clone().ok());
        let mut bytes = 0;
        for snapshot in snapshots {
            for memtable in snapshot.memtables.iter().filter(|m| seen.insert(Rc::as_ptr(m))) {
                bytes += memtable.borrow().bytes();
            }
        }
        bytes
    }

    /// Lets snapshots expire, oldest first, until memory is within its budget. One that a command
    /// still uses gives its memory back when that ends; younger ones need not go for it. Costs a
    /// look at an empty map when there are no snapshots.
    pub(crate) fn expire_for_memory(&self) {
        let is_over = || self.snapshot_memory().total() > self.surroundings.iterator_dram_bytes;
        while self.snapshots.newest().is_some() && is_over() {
            if self.snapshots.is_any_leaving() || !self.expire_oldest_snapshot(WantOf::Memory) {
                return;
            }
        }
    }

    /// Lets the oldest snapshot expire to gain space, unless one is on its way out already.
    pub(crate) fn expire_for_space(&self) -> Expiry {
        if self.snapshots.is_any_leaving() {
            return Expiry::UnderWay;
        }
        let oldest = self.snapshots.holds().first().map(|(_, hold)| hold.created);
        let until = oldest.map_or(Nanos::ZERO, |created| created + GRACE);
        if self.store.handle.now() < until {
            return Expiry::NotBefore(until);
        }
        if self.expire_oldest_snapshot(WantOf::Space) { Expiry::Done } else { Expiry::Nothing }
    }

    /// Lets the oldest snapshot expire. False if there is none to expire.
    fn expire_oldest_snapshot(&self, for_want_of: WantOf) -> bool {
        let has_expired = self.snapshots.expire_oldest(self.store.handle.now(), for_want_of);
        self.stats.borrow_mut().snapshots_expired += u64::from(has_expired);
        has_expired
    }

    /// Every snapshot that lives, oldest first.
    pub(crate) fn snapshot_infos(&self) -> Vec<SnapshotInfo> {
        let now = self.store.handle.now();
        let holds = self.snapshots.holds();
        let info = |(number, hold): &(u64, Rc<Hold>)| {
            let snapshot = hold.snapshot.borrow();
            let held = snapshot.as_ref().map_or(0, |snapshot| self.store.held_by(&snapshot.pin));
            SnapshotInfo { number: *number, age: now - hold.created, extents_held: held as u64 }
        };
        holds.iter().map(info).collect()
    }
}
