//! A die: one operation at a time, and the rule of what comes next. Decisions only; the clock and
//! the buses are in `device`.

use runtime::{Nanos, Priority};

use crate::Blocker;
use crate::operation::OperationId;
use crate::profile::SuspendDurations;
use crate::queue::PriorityQueue;

/// What a die is doing.
pub(crate) enum Phase {
    Idle,
    /// Reading the array into the page register.
    Sensing {
        id: OperationId,
        is_readable: bool,
    },
    /// Waiting for the channel or using it.
    OnBus {
        id: OperationId,
        carries: Carries,
    },
    /// Programming or erasing the array.
    Running(Running),
    /// On the way from running to suspended.
    Suspending(Suspended),
}

/// What an operation has the channel carry.
#[derive(Clone, Copy)]
pub(crate) enum Carries {
    /// Command and address of a read.
    ReadCommand,
    /// Command and address of an erase.
    EraseCommand,
    /// What is to be programmed, behind its command.
    DataIn,
    /// What was read.
    DataOut(Sensed),
}

/// A page stands in the page register.
#[derive(Clone, Copy)]
pub(crate) struct Sensed {
    /// Whether its bit errors were within what the code corrects.
    pub is_readable: bool,
}

/// A program or erase in the array.
#[derive(Clone, Copy)]
pub(crate) struct Running {
    pub id: OperationId,
    pub is_erase: bool,
    /// When it began, or went on after a suspension.
    pub since: Nanos,
    pub ends: Nanos,
    pub suspends: u32,
    /// A timer is armed for the instant at which suspending becomes possible.
    pub is_rechecked: bool,
}

/// A program or erase that waits for demand reads.
#[derive(Clone, Copy)]
pub(crate) struct Suspended {
    pub id: OperationId,
    pub is_erase: bool,
    pub since: Nanos,
    pub remaining: Nanos,
    pub suspends: u32,
}

/// An operation that waits for its die.
#[derive(Clone, Copy)]
pub(crate) struct Waiting {
    pub id: OperationId,
    pub is_read: bool,
}

/// What an idle die does next.
pub(crate) enum Next {
    Start(OperationId),
    Resume(Suspended),
    Nothing,
}

/// Whether the running operation gives way to a demand read.
pub(crate) enum GiveWay {
    No,
    Now,
    /// Not before this instant: it must make some progress first.
    At(Nanos),
}

pub(crate) struct Die {
    pub phase: Phase,
    /// Timers of an earlier generation are void.
    pub generation: u32,
    pub waiting: PriorityQueue<Waiting>,
    pub suspended: Option<Suspended>,
    /// Since when background work has been waiting while others went ahead of it.
    passed_over_since: Option<Nanos>,
    share: Share,
    pub busy_since: Option<Nanos>,
}

/// How the die's time is shared in a write stall.
#[derive(Clone, Copy, Default)]
struct Share {
    /// When the background operation that runs began.
    began: Option<Nanos>,
    /// What others had of the die while it was suspended.
    given: Nanos,
    /// What they are owed for it.
    owed: Nanos,
}

impl Share {
    fn begin(&mut self, now: Nanos) {
        *self = Self { began: Some(now), ..Self::default() };
    }

    fn end(&mut self, now: Nanos) {
        if let Some(began) = self.began.take() {
            let took = now - began - self.given;
            self.owed = took.saturating_since(self.given);
        }
    }
}

impl Default for Die {
    fn default() -> Self {
        Self {
            phase: Phase::Idle,
            generation: 0,
            waiting: PriorityQueue::default(),
            suspended: None,
            passed_over_since: None,
            share: Share::default(),
            busy_since: None,
        }
    }
}

impl Die {
    /// What a newly arrived read would have to wait for.
    pub(crate) fn blocker(&self) -> Blocker {
        let by_kind = |is_erase| {
            if is_erase { Blocker::Erase } else { Blocker::Program }
        };
        match &self.phase {
            Phase::Idle => self.suspended.map_or(Blocker::None, |s| by_kind(s.is_erase)),
            Phase::Sensing { .. } => Blocker::Read,
            Phase::OnBus { carries, .. } => match carries {
                Carries::ReadCommand | Carries::DataOut(_) => Blocker::Read,
                Carries::EraseCommand => Blocker::Erase,
                Carries::DataIn => Blocker::Program,
            },
            Phase::Running(running) => by_kind(running.is_erase),
            Phase::Suspending(suspended) => by_kind(suspended.is_erase),
        }
    }

    /// Demand reads first, then prefetches, then background work in order of arrival; but
    /// background work that was passed over for `deadline` goes before everything. In a write stall
    /// others are owed no more time than the background work before took: both have half.
    ///
    /// With an operation suspended, only demand reads may run, and not for longer than the
    /// profile's span.
    pub(crate) fn choose_next(
        &mut self,
        now: Nanos,
        deadline: Nanos,
        suspend: Option<&SuspendDurations>,
        is_write_stall: bool,
    ) -> Next {
        if let Some(suspended) = self.suspended {
            let span = suspend.map_or(Nanos::ZERO, |s| s.max_span);
            let may_read = now < suspended.since + span;
            if may_read && self.demand_read_waits() {
                return self.start(Priority::Demand);
            }
            self.suspended = None;
            self.share.given += now - suspended.since;
            return Next::Resume(suspended);
        }
        self.share.end(now);
        let deadline = if is_write_stall { deadline.min(self.share.owed) } else { deadline };
        let has_background = self.waiting.peek_of(Priority::Background).is_some();
        let is_overdue = self.passed_over_since.is_some_and(|since| since + deadline <= now);
        if has_background && is_overdue {
            self.passed_over_since = None;
            self.share.begin(now);
            return self.start(Priority::Background);
        }
        let has_urgent = [Priority::Demand, Priority::Prefetch]
            .into_iter()
            .any(|priority| self.waiting.peek_of(priority).is_some());
        match (has_background, has_urgent) {
            (true, true) => _ = self.passed_over_since.get_or_insert(now),
            (true, false) => self.passed_over_since = None,
            (false, _) => {}
        }
        if has_background && !has_urgent {
            self.share.begin(now);
        }
        self.waiting.pop().map_or(Next::Nothing, |w| Next::Start(w.id))
    }

    /// The read that occupies it, if it is one.
    pub(crate) fn reading(&self) -> Option<OperationId> {
        match self.phase {
            Phase::Sensing { id, .. }
            | Phase::OnBus { id, carries: Carries::ReadCommand | Carries::DataOut(_) } => Some(id),
            _ => None,
        }
    }

    fn start(&mut self, priority: Priority) -> Next {
        self.waiting.pop_of(priority).map_or(Next::Nothing, |w| Next::Start(w.id))
    }

    pub(crate) fn demand_read_waits(&self) -> bool {
        self.waiting.peek_of(Priority::Demand).is_some_and(|w| w.is_read)
    }

    /// Whether the program or erase that is running should be suspended.
    pub(crate) fn give_way(&self, now: Nanos, suspend: Option<&SuspendDurations>) -> GiveWay {
        let (Phase::Running(running), Some(suspend)) = (&self.phase, suspend) else {
            return GiveWay::No;
        };
        let Some(suspending) = suspend.suspending(running.is_erase) else {
            return GiveWay::No;
        };
        let earliest = running.since + suspend.min_progress;
        // What is nearly done is done sooner than suspended and resumed.
        let detour = suspend.resume + suspending;
        let is_worth_it = earliest.max(now) + detour < running.ends;
        let is_allowed = running.suspends < suspend.max_per_operation;
        if !self.demand_read_waits() || !is_allowed || !is_worth_it {
            return GiveWay::No;
        }
        match now < earliest {
            false => GiveWay::Now,
            true if running.is_rechecked => GiveWay::No,
            true => GiveWay::At(earliest),
        }
    }
}
