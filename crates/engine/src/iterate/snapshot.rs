//! Snapshots: the state of the store at one instant.
//!
//! A snapshot consists of a sequence number, the memtables and the version of that instant, and a
//! pin on every extent that was in use. All are shared, so a snapshot costs only the changes made
//! since. Its memory (`Surroundings::iterator_dram_bytes`) and its space are bounded; when either
//! runs out, the oldest snapshot expires. Writes never wait for a reader that does not drop its
//! snapshot.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::{Rc, Weak};

use runtime::{Handle, Nanos};

use crate::engine::Inner;
use crate::error::{EngineError, Expired, WantOf};
use crate::format::object::Sequence;
use crate::medium::Medium;
use crate::memory::DESCRIPTOR_OVERHEAD_BYTES;
use crate::memtable::SharedMemtable;
use crate::planted::Fault;
use crate::space::pins::Pin;
use crate::version::Version;

/// The store at one instant.
pub(crate) struct Snapshot {
    /// The sequence number of the last write in the snapshot.
    pub sequence: Sequence,
    /// The memtables, newest first. They are shared with writers, so they are read as of
    /// `sequence`.
    pub memtables: Vec<SharedMemtable>,
    pub version: Rc<Version>,
    number: u64,
    registry: Snapshots,
    pin: Pin,
    handle: Handle,
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        // The snapshot may hold the last reference to a flushed memtable; as in `Front::flushed`,
        // it is dropped in the background.
        for memtable in self.memtables.drain(..) {
            if let Ok(memtable) = Rc::try_unwrap(memtable) {
                drop(self.handle.compute(move || drop(memtable)));
            }
        }
        let live = self.registry.shared.live.borrow_mut().remove(&self.number);
        assert!(live.is_some(), "snapshot {} goes twice", self.number);
    }
}

/// A holder's reference to a snapshot, until the snapshot expires.
pub(crate) struct Hold {
    snapshot: RefCell<Result<Rc<Snapshot>, Expired>>,
    created: Nanos,
    /// The buffers of the iterators that read it, in bytes.
    buffer_bytes: Cell<u64>,
}

impl Hold {
    /// Returns the snapshot.
    ///
    /// # Errors
    /// [`EngineError::SnapshotTooOld`] once it has expired.
    pub(crate) fn get(&self) -> Result<Rc<Snapshot>, EngineError> {
        self.snapshot.borrow().clone().map_err(EngineError::SnapshotTooOld)
    }

    /// Adds the buffer of an iterator.
    fn take(&self, bytes: u64) {
        self.buffer_bytes.set(self.buffer_bytes.get() + bytes);
    }

    /// Removes the buffer of an iterator that ends.
    pub(crate) fn give_buffer_back(&self, bytes: u64) {
        let held = self.buffer_bytes.get();
        let left = held.checked_sub(bytes).expect("an iterator gives back what it took");
        self.buffer_bytes.set(left);
    }
}

/// A snapshot in the statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotInfo {
    /// The number of the snapshot, in the order of creation from 0.
    pub number: u64,
    /// The time since its creation.
    pub age: Nanos,
    /// The number of extents that are used only by it, and perhaps by other snapshots.
    pub extents_held: u64,
}

/// The additional memory used by snapshots, in bytes of the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotMemory {
    /// Descriptors of segments that are in no current level.
    pub descriptors: u64,
    /// Chunks of versions that are not shared with the current version.
    pub views: u64,
    /// Segments in memory that are in no current level.
    pub pinned_segments: u64,
    /// Memtables that have been flushed.
    pub memtables: u64,
    /// Buffers for prefetches.
    pub buffers: u64,
}

impl SnapshotMemory {
    /// Returns the sum of all fields.
    pub fn total(&self) -> u64 {
        self.descriptors + self.views + self.pinned_segments + self.memtables + self.buffers
    }
}

/// The live snapshots. Clones are handles to the same set.
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
    /// Returns the sequence number of the newest snapshot.
    pub(crate) fn newest(&self) -> Option<Sequence> {
        self.shared.live.borrow().last_key_value().map(|(_, live)| live.sequence)
    }

    fn holds(&self) -> Vec<(u64, Rc<Hold>)> {
        let live = self.shared.live.borrow();
        live.iter().filter_map(|(number, live)| Some((*number, live.hold.upgrade()?))).collect()
    }

    /// Whether a live snapshot has no holder any more: a command or readahead in flight still uses
    /// it, and it is dropped when that ends.
    fn is_any_leaving(&self) -> bool {
        let is_held = |hold: Rc<Hold>| hold.snapshot.borrow().is_ok();
        self.shared.live.borrow().values().any(|live| !live.hold.upgrade().is_some_and(is_held))
    }

    /// Expires the oldest snapshot. Returns false if no holder has one.
    fn expire_oldest(&self, now: Nanos, for_want_of: WantOf) -> bool {
        let is_held = |(_, hold): &(u64, Rc<Hold>)| hold.snapshot.borrow().is_ok();
        let Some((_, hold)) = self.holds().into_iter().find(is_held) else { return false };
        let expired = Expired { age: now - hold.created, for_want_of };
        let taken = hold.snapshot.replace(Err(expired));
        taken.is_ok()
    }
}

/// The result of a request to expire a snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expiry {
    /// A snapshot has expired.
    Done,
    /// A snapshot is expiring: a command still uses it.
    UnderWay,
    /// The oldest snapshot may live until then: most snapshots end earlier.
    NotBefore(Nanos),
    /// There are no snapshots.
    Nothing,
}

/// How long a snapshot may hold space that writers wait for: the time of a scan of some thousand
/// pairs.
const GRACE: Nanos = Nanos(50_000_000);

/// Bytes of a reference to a descriptor in a view.
const REFERENCE_BYTES: u64 = 4;

impl<M: Medium> Inner<M> {
    /// Takes a snapshot of the current state. Its holder needs `buffer_bytes` bytes of buffers.
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

    /// Reserves `bytes` bytes of buffers for another iterator of the snapshot in `hold`.
    ///
    /// # Errors
    /// [`EngineError::IteratorMemory`] if there is no memory for it;
    /// [`EngineError::SnapshotTooOld`] if the snapshot has expired.
    pub(crate) fn take_buffer(&self, hold: &Hold, bytes: u64) -> Result<(), EngineError> {
        hold.get()?;
        if self.snapshot_memory().total() + bytes > self.surroundings.iterator_dram_bytes {
            return Err(EngineError::IteratorMemory);
        }
        hold.take(bytes);
        Ok(())
    }

    /// Reserves `bytes` more bytes of buffers for an iterator of the snapshot, unless that would
    /// use the quarter of the memory kept for new iterators. Returns whether it did.
    pub(crate) fn grow_buffer(&self, hold: &Hold, bytes: u64) -> bool {
        let for_growth = self.surroundings.iterator_dram_bytes / 4 * 3;
        let has_room = self.snapshot_memory().total() + bytes <= for_growth;
        if has_room {
            hold.take(bytes);
        }
        has_room
    }

    /// Returns the memory used by snapshots now.
    pub(crate) fn snapshot_memory(&self) -> SnapshotMemory {
        if self.snapshots.newest().is_none() {
            // segments held by compactions do not count as snapshot memory
            return SnapshotMemory::default();
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

    /// Returns the bytes of memtables that only snapshots hold.
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

    /// Expires snapshots, oldest first, until memory is within its budget. A snapshot that a
    /// command still uses releases its memory when the command ends; no younger snapshots are
    /// expired meanwhile. Costs one lookup in an empty map if there are no snapshots.
    pub(crate) fn expire_for_memory(&self) {
        let is_over = || self.snapshot_memory().total() > self.surroundings.iterator_dram_bytes;
        while self.snapshots.newest().is_some() && is_over() {
            if self.snapshots.is_any_leaving() || !self.expire_oldest_snapshot(WantOf::Memory) {
                return;
            }
        }
    }

    /// Expires the oldest snapshot to free space, unless one is already expiring.
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

    /// Expires the oldest snapshot. Returns false if there is none.
    fn expire_oldest_snapshot(&self, for_want_of: WantOf) -> bool {
        let has_expired = self.snapshots.expire_oldest(self.store.handle.now(), for_want_of);
        self.stats.borrow_mut().snapshots_expired += u64::from(has_expired);
        has_expired
    }

    /// Returns all live snapshots, oldest first.
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
