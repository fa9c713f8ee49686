//! When is the store full? And what is given up before it is.

use std::rc::Rc;

use runtime::Nanos;

use crate::lsm::Inner;
use crate::lsm::collect::WORTH_COLLECTING;
use crate::lsm::snapshot::Expiry;
use crate::operations::Fullness;
use crate::store::medium::Medium;

impl<M: Medium> Inner<M> {
    /// With no victim left and clients held up, garbage may still hide under entries of memtables
    /// and upper levels: everything is moved down first, and only then the store counts as full.
    /// So does a store that cannot go on: whose collections give nothing, or whose flushes and
    /// compactions lack space with nothing to collect. Deletes start this again.
    ///
    /// Before all that, the oldest snapshot expires: what it held is garbage then. Returns whether
    /// there may be something to collect now.
    pub(crate) fn consider_being_full(&self) -> bool {
        let is_short = !self.has_extents_for_clients();
        if is_short && self.snapshots_hold_garbage() {
            match self.expire_for_space() {
                Expiry::Done => return true,
                Expiry::UnderWay => return false, // its pin wakes us when it goes
                Expiry::NotBefore(until) => {
                    self.wake_at(until);
                    return false;
                }
                Expiry::Nothing => {}
            }
        }
        let is_squeezed = self.is_squeezed();
        let is_stuck = is_short && self.is_starved() && self.is_quiet();
        if is_short && !is_squeezed {
            self.front.freeze_active();
            if !self.is_squeezing.replace(true) {
                self.store.work.notify_all();
            }
        } else {
            self.is_squeezing.set(false);
        }
        let was_full = self.front.fullness.get() != Fullness::Room;
        let is_full = is_short && (is_squeezed || self.front.has_given_up() || was_full);
        let fullness = match is_stuck {
            true => Fullness::Stuck,
            false if is_full || self.index_memory_is_used_up() => Fullness::Full,
            false => Fullness::Room,
        };
        self.front.set_fullness(fullness);
        false
    }

    /// Wakes background work at an instant, unless it will be woken by then anyway.
    fn wake_at(&self, until: Nanos) {
        if self.wakes_at.get() <= self.store.handle.now() {
            self.wakes_at.set(until);
            let (handle, work) = (self.store.handle.clone(), Rc::clone(&self.store.work));
            self.store.handle.spawn("end of a grace period", async move {
                handle.sleep_until(until).await;
                work.notify_all();
            });
        }
    }

    /// Whether extents could be released or collected, were it not for snapshots.
    fn snapshots_hold_garbage(&self) -> bool {
        let extents = self.store.extents.borrow();
        self.store.held() > 0
            || extents.choose_victim(WORTH_COLLECTING, |id| self.store.is_pinned(id)).is_some()
    }

    /// Whether nothing is under way that could give space back. Commands are that still read from a
    /// snapshot that has expired.
    pub(crate) fn is_quiet(&self) -> bool {
        let gives_nothing = self.store.releasing() == 0
            && self.store.held() == 0
            && self.store.moved.borrow().is_empty();
        gives_nothing && self.busy.borrow().iter().all(|busy| !busy)
    }

    /// Whether clients have room without what is on its way to being free.
    pub(crate) fn has_extents_for_clients_now(&self) -> bool {
        self.store.extents.borrow().free() > self.front.client_reserve()
    }

    pub(crate) fn has_extents_for_clients(&self) -> bool {
        self.store.extents_in_sight() > self.front.client_reserve()
    }

    /// Whether the index is over its budget and no compaction is left that could shrink it.
    pub(crate) fn index_memory_is_used_up(&self) -> bool {
        self.memory_index_bytes() > self.surroundings.index_dram_bytes && self.is_settled()
    }

    /// Whether every entry is in the last level.
    pub(crate) fn is_squeezed(&self) -> bool {
        let memtables = self.front.memtables.borrow();
        let version = self.version.borrow();
        let (_, upper) = version.levels().split_last().expect("there are levels");
        memtables.is_empty() && upper.iter().all(|level| level.len() == 0)
    }

    /// Whether flushes or compactions wait for space.
    pub(crate) fn is_starved(&self) -> bool {
        self.front.flush_is_starved.get() || self.compaction_is_starved()
    }
}
