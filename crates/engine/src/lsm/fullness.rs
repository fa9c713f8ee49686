//! When is the store full? And what is given up before it is.

use std::rc::Rc;

use pages::collector::{Collected, Next};
use pages::medium::Medium;
use pages::operations::{Fullness, UsedUp};
use pages::store::sweep::WORTH_COLLECTING;
use runtime::Nanos;

use crate::lsm::Inner;
use crate::lsm::snapshot::Expiry;

/// Where a store stands that has nothing to collect.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, not states")]
struct Situation {
    /// Clients lack extents.
    is_short: bool,
    /// Every entry is in the last level.
    is_squeezed: bool,
    /// Flushes or compactions lack space, and nothing is under way that could give them some.
    is_at_rest: bool,
    /// Collecting everything once gave nothing.
    has_given_up: bool,
    was_full: bool,
    /// The bytes of memory that the index may take, if it takes them.
    memory_used_up: Option<u64>,
    /// The index takes too much, a write needs room, and upper levels may hide what of the index can go.
    may_shrink: bool,
}

/// What follows from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Outlook {
    /// Everything is to be moved down, to find garbage that upper levels hide.
    squeezes: bool,
    fullness: Fullness,
}

impl Situation {
    /// With no victim left and clients held up, garbage may still hide under entries of memtables
    /// and upper levels: everything is moved down first, and only then the store counts as full.
    /// So does a store that cannot go on: whose collections give nothing, or whose flushes and
    /// compactions lack space with nothing to collect. Deletes start this again.
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
    /// What is done when there is nothing to collect: the oldest snapshot expires, everything is
    /// moved down, clients are told where they stand.
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
                Expiry::UnderWay => return Next::Wait, // its pin wakes us when it goes
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

    /// Has everything moved down, or ends that.
    fn set_squeezing(&self, squeezes: bool) {
        if squeezes {
            self.front.freeze_active();
        }
        match (self.is_squeezing.replace(squeezes), squeezes) {
            (false, true) => self.store.work.notify_all(),
            (true, false) => self.store.room.notify_all(), // nothing may be left to compact
            _ => {}
        }
    }

    /// Whether anything lacks the room that readers hold: a client's write, a flush or a compaction, or a compaction that somebody asks for. Else who reads all
    /// of a full store, to copy it say, would be told again and again that its instant is gone, though nobody wants to write. Simulated designs do not ask.
    fn is_room_needed(&self) -> bool {
        let is_asked = || self.manual.is_asked() || self.is_starved();
        !self.options.leaves_room || self.front.needs_room() || is_asked()
    }

    /// Lets clients put again where there is room for that, and ends what was to make some. Whether there is none, nobody knows before collection has
    /// come to its end.
    pub(crate) fn take_puts_again(&self) {
        if !self.is_short() {
            let outlook = self.situation().outlook();
            if !outlook.squeezes {
                self.set_squeezing(false);
            }
            self.front.set_fullness(outlook.fullness);
        }
    }

    /// The facts of this instant.
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

    /// Whether flushes or compactions lack space, and nothing is under way that could give them some.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.is_starved() && self.is_quiet() && !self.tables_can_shrink()
    }

    /// Whether nothing is under way that could give space back. Commands are that still read from a
    /// snapshot that has expired.
    pub(crate) fn is_quiet(&self) -> bool {
        let gives_nothing = self.store.releasing() == 0
            && self.store.held() == 0
            && self.store.moved.borrow().is_empty();
        let compacts_tables = self.tables.as_ref().is_some_and(|tables| !tables.is_idle());
        gives_nothing && !compacts_tables && self.busy.borrow().iter().all(|busy| !busy)
    }

    /// Whether something is under way that gives space, or garbage, and will wake the collector.
    pub(crate) fn is_giving_space(&self) -> bool {
        let are_moved = !self.store.moved.borrow().is_empty();
        self.store.releasing() > 0
            || are_moved && !self.front.has_space_for_clients()
            || self.busy.borrow().iter().any(|busy| *busy)
            || self.is_squeezing.get() && !self.is_at_rest()
    }

    /// Whether the index is over its budget and no compaction is left that could shrink it, but those that look for what upper levels hide.
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
