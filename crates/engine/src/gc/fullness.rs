//! Decides when the store is full, and which resources are given up before.

use std::rc::Rc;

use runtime::Nanos;

use super::sweep::WORTH_COLLECTING;
use super::{Collected, Next};
use crate::engine::Inner;
use crate::error::UsedUp;
use crate::iterate::snapshot::Expiry;
use crate::medium::Medium;
use crate::operations::Fullness;

/// The state of a store that has nothing to collect.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, not states")]
struct Situation {
    /// Clients lack free extents.
    is_short: bool,
    /// Every entry is in the last level.
    is_squeezed: bool,
    /// Flushes or compactions lack space, and no work under way could free any.
    is_at_rest: bool,
    /// A collection pass over everything freed nothing.
    has_given_up: bool,
    was_full: bool,
    /// The index memory budget in bytes, if the index has used it up.
    memory_used_up: Option<u64>,
    /// The index is over its budget, a write needs room, and upper levels may hide index entries
    /// that can be dropped.
    may_shrink: bool,
}

/// The decision that follows from a [`Situation`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Outlook {
    /// Whether to move everything down, to find garbage that upper levels hide.
    squeezes: bool,
    fullness: Fullness,
}

impl Situation {
    /// With no victim left and clients blocked, garbage may still be hidden under entries of
    /// memtables and upper levels: everything is moved down first, and only then the store counts
    /// as full. A store that cannot make progress also counts as full: if its collections free
    /// nothing, or if its flushes and compactions lack space and nothing can be collected. Deletes
    /// start this process again.
    fn outlook(self) -> Outlook {
        let is_full = self.is_short && (self.is_squeezed || self.has_given_up || self.was_full);
        let fullness = match (self.is_short && self.is_at_rest, self.memory_used_up) {
            (true, _) => Fullness::Stuck,
            (false, _) if is_full => Fullness::Full(UsedUp::Space),
            (false, Some(bytes)) => Fullness::Full(UsedUp::IndexMemory(bytes)),
            (false, None) => Fullness::Room,
        };
        let squeezes = (self.is_short || self.may_shrink) && !self.is_squeezed;
        Outlook { squeezes, fullness }
    }
}

impl<M: Medium> Inner<M> {
    /// Acts when nothing can be collected: expires the oldest snapshot, starts moving everything
    /// down, and updates the fullness that clients see.
    pub(crate) fn consider_being_full(&self) -> Next {
        if self.is_short() && self.snapshots_hold_garbage() {
            self.front.note_held();
            if !self.is_room_needed() {
                self.front.leave_readers();
                return Next::Wait;
            }
            match self.expire_for_space() {
                Expiry::Done => {
                    self.front.forget_refusals();
                    self.front.begin_sweep_anew();
                    return Next::LookAgain;
                }
                // its pin wakes this task when it is released
                Expiry::UnderWay => return Next::Wait,
                Expiry::NotBefore(until) => {
                    self.wake_at(until);
                    return Next::Wait;
                }
                Expiry::Nothing => {}
            }
        } else if self.is_short() && self.is_room_needed() && self.front.begin_sweep_anew() {
            return Next::LookAgain;
        }
        let outlook = self.situation().outlook();
        self.front.forget_refusals();
        self.set_squeezing(outlook.squeezes);
        self.front.set_fullness(outlook.fullness);
        Next::Wait
    }

    /// Starts or ends moving everything down.
    fn set_squeezing(&self, squeezes: bool) {
        if squeezes {
            self.front.freeze_active();
        }
        match (self.is_squeezing.replace(squeezes), squeezes) {
            (false, true) => self.store.work.notify_all(),
            (true, false) => self.store.room.notify_all(), // maybe nothing is left to compact
            _ => {}
        }
    }

    /// Whether a client's write, a flush, a compaction or a requested compaction needs the room
    /// that readers hold. Otherwise a client that reads all of a full store, for example to copy
    /// it, would see its snapshot expire again and again although no write needs the space. Designs
    /// without `leaves_room` (the simulated ones) always return true.
    fn is_room_needed(&self) -> bool {
        let is_asked = || self.manual.is_asked() || self.is_starved();
        !self.options.leaves_room || self.front.needs_room() || is_asked()
    }

    /// Lets clients put again if there is room, and ends squeezing. Only a complete collection pass
    /// can show that no room is left.
    pub(crate) fn take_puts_again(&self) {
        if !self.is_short() {
            let outlook = self.situation().outlook();
            if !outlook.squeezes {
                self.set_squeezing(false);
            }
            self.front.set_fullness(outlook.fullness);
        }
    }

    /// Returns the current situation.
    fn situation(&self) -> Situation {
        Situation {
            is_short: self.is_short(),
            is_squeezed: self.is_squeezed(),
            is_at_rest: self.is_at_rest(),
            has_given_up: self.front.has_given_up(),
            was_full: self.front.fullness.get() != Fullness::Room,
            memory_used_up: self.index_memory_is_used_up().then_some(self.index_budget),
            may_shrink: self.is_over_budget()
                && (self.is_squeezing.get() || self.front.needs_room() && self.is_settled()),
        }
    }

    fn is_short(&self) -> bool {
        !self.front.has_extents_for_clients()
    }

    /// Wakes background work at `until`, unless an earlier wake-up is already set.
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

    /// Whether extents could be released or collected if no snapshot held them.
    fn snapshots_hold_garbage(&self) -> bool {
        let extents = self.store.extents.borrow();
        self.store.held() > 0
            || extents.choose_victim(WORTH_COLLECTING, |id| self.store.is_pinned(id)).is_some()
    }

    /// Whether flushes or compactions lack space, and no work under way could free any.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.is_starved() && self.is_quiet() && !self.tables_can_shrink()
    }

    /// Whether no work under way could free space. Commands that still read from an expired
    /// snapshot count as such work.
    pub(crate) fn is_quiet(&self) -> bool {
        let gives_nothing = self.store.releasing() == 0
            && self.store.held() == 0
            && self.store.moved.borrow().is_empty();
        let compacts_tables = self.tables.as_ref().is_some_and(|tables| !tables.is_idle());
        gives_nothing && !compacts_tables && self.busy.borrow().iter().all(|busy| !busy)
    }

    /// Whether work under way will free space or produce garbage, and will wake the collector.
    pub(crate) fn is_giving_space(&self) -> bool {
        let are_moved = !self.store.moved.borrow().is_empty();
        self.store.releasing() > 0
            || are_moved && !self.front.has_space_for_clients()
            || self.busy.borrow().iter().any(|busy| *busy)
            || self.is_squeezing.get() && !self.is_at_rest()
    }

    /// Whether the index is over its budget and no compaction is left that could shrink it, other
    /// than those that look for entries hidden by upper levels.
    pub(crate) fn index_memory_is_used_up(&self) -> bool {
        let was_so = || matches!(self.front.fullness.get(), Fullness::Full(UsedUp::IndexMemory(_)));
        self.is_over_budget() && (self.is_settled() || self.is_squeezing.get() && was_so())
    }

    /// Whether every entry is in the last level.
    pub(crate) fn is_squeezed(&self) -> bool {
        let memtables = self.front.memtables.borrow();
        if let Some(tables) = &self.tables {
            let tree = tables.tree();
            let (_, upper) = tree.levels().split_last().expect("there are levels");
            let is_down = memtables.is_empty() && upper.iter().all(Vec::is_empty);
            return is_down && !self.tables_can_shrink();
        }
        let version = self.version.borrow();
        let (_, upper) = version.levels().split_last().expect("there are levels");
        memtables.is_empty() && upper.iter().all(|level| level.len() == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_squeezes_before_it_is_full_and_is_stuck_only_at_rest() {
        let short = Situation {
            is_short: true,
            is_squeezed: false,
            is_at_rest: false,
            has_given_up: false,
            was_full: false,
            memory_used_up: None,
            may_shrink: false,
        };
        let of = |situation: Situation| {
            let outlook = situation.outlook();
            (outlook.squeezes, outlook.fullness)
        };
        assert_eq!(of(Situation { is_short: false, ..short }), (false, Fullness::Room));
        assert_eq!(of(short), (true, Fullness::Room));
        assert_eq!(
            of(Situation { is_squeezed: true, ..short }),
            (false, Fullness::Full(UsedUp::Space))
        );
        assert_eq!(
            of(Situation { has_given_up: true, ..short }),
            (true, Fullness::Full(UsedUp::Space))
        );
        assert_eq!(of(Situation { is_at_rest: true, ..short }), (true, Fullness::Stuck));
        let roomy = Situation { is_short: false, is_at_rest: true, ..short };
        assert_eq!(of(roomy), (false, Fullness::Room));
        assert_eq!(
            of(Situation { memory_used_up: Some(9), ..roomy }),
            (false, Fullness::Full(UsedUp::IndexMemory(9)))
        );
        assert_eq!(
            of(Situation { memory_used_up: Some(9), may_shrink: true, ..roomy }),
            (true, Fullness::Full(UsedUp::IndexMemory(9)))
        );
    }
}
