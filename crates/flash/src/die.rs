//! A die: one operation at a time, and the rule of what comes next. Decisions only; the clock and
//! the buses are in `device`.

use runtime::{Carrier, Nanos, Priority};

use crate::Blocker;
use crate::operation::OperationId;
use crate::profile::{Overlap, SuspendDurations};
use crate::queue::PriorityQueue;

/// What a die does as a whole. Its reads are in [`Die::readings`].
pub(crate) enum Phase {
    /// Nothing, so that it may read.
    Idle,
    /// Waiting for the channel or using it.
    OnBus(Carries),
    /// Programming or erasing the array.
    Running(Running),
    /// On the way from running to suspended.
    Suspending(Suspended),
}

/// What an operation of the whole die has the channel carry.
#[derive(Clone, Copy)]
pub(crate) enum Carries {
    /// Command and address of an erase.
    EraseCommand,
    /// What is to be programmed, behind its command.
    DataIn,
}

/// A read that has begun.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    pub id: OperationId,
    pub sensor: u32,
    pub stage: Stage,
}

/// How far a read is.
#[derive(Clone, Copy)]
pub(crate) enum Stage {
    /// Its command waits for the channel or crosses it.
    Command,
    /// The array is read into the page register.
    Sensing(Sensed),
    /// The page stands in the page register; the cache register holds the one before it.
    Waiting(Sensed),
    /// The page waits for the channel or crosses it.
    DataOut(Sensed),
}

/// What a sense brings.
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
    pub needs: Needs,
}

/// What an operation takes of its die.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// A read: one of the parts that sense for themselves.
    Sensor(u32),
    /// A program or an erase.
    All,
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
    /// Reads that have begun: one, unless they overlap.
    pub readings: Vec<Reading>,
    overlap: Overlap,
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

impl Die {
    pub(crate) fn new(overlap: Overlap) -> Self {
        Self {
            phase: Phase::Idle,
            readings: Vec::new(),
            overlap,
            generation: 0,
            waiting: PriorityQueue::default(),
            suspended: None,
            passed_over_since: None,
            share: Share::default(),
            busy_since: None,
        }
    }

    /// Whether it does nothing, and has nothing to do.
    pub(crate) fn is_at_rest(&self) -> bool {
        let is_idle = matches!(self.phase, Phase::Idle) && self.readings.is_empty();
        is_idle && self.suspended.is_none() && self.waiting.is_empty() && self.busy_since.is_none()
    }

    /// Carries what a die at rest remembers.
    pub(crate) fn carry(&mut self, by: &mut Carrier<'_>) -> Option<()> {
        by.option(&mut self.passed_over_since, Carrier::nanos)?;
        by.option(&mut self.share.began, Carrier::nanos)?;
        by.nanos(&mut self.share.given)?;
        by.nanos(&mut self.share.owed)
    }

    /// What a newly arrived read would have to wait for.
    pub(crate) fn blocker(&self, needs: Needs) -> Blocker {
        let by_kind = |is_erase| {
            if is_erase { Blocker::Erase } else { Blocker::Program }
        };
        match &self.phase {
            Phase::Idle if !has_room_for(needs, &self.readings, self.overlap) => Blocker::Read,
            Phase::Idle => self.suspended.map_or(Blocker::None, |s| by_kind(s.is_erase)),
            Phase::OnBus(Carries::EraseCommand) => Blocker::Erase,
            Phase::OnBus(Carries::DataIn) => Blocker::Program,
            Phase::Running(running) => by_kind(running.is_erase),
            Phase::Suspending(suspended) => by_kind(suspended.is_erase),
        }
    }

    /// Whether something could begin beside the reads that are under way.
    pub(crate) fn has_room(&self) -> bool {
        self.readings.is_empty() || self.overlap.is_any()
    }

    /// Whether a sensor has a page on its way out, so that the next sense waits until that is moved.
    pub(crate) fn is_sending(&self, sensor: u32) -> bool {
        let is_sending = |r: &Reading| r.sensor == sensor && matches!(r.stage, Stage::DataOut(_));
        self.readings.iter().any(is_sending)
    }

    /// A read that is under way.
    pub(crate) fn reading(&mut self, id: OperationId) -> &mut Reading {
        let reading = self.readings.iter_mut().find(|reading| reading.id == id);
        reading.expect("a read is under way until its end")
    }

    /// Demand reads first, then prefetches, then background work in order of arrival; but
    /// background work that was passed over for `deadline` goes before everything. In a write stall
    /// others are owed no more time than the background work before took: both have half.
    ///
    /// With an operation suspended, only demand reads may run, and not for longer than the
    /// profile's span. What takes all of the die waits until its reads have ended; once it is its turn,
    /// none begins.
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
            if !self.readings.is_empty() {
                return Next::Nothing;
            }
            self.suspended = None;
            self.share.given += now - suspended.since;
            return Next::Resume(suspended);
        }
        if self.readings.is_empty() {
            self.share.end(now);
        }
        let deadline = if is_write_stall { deadline.min(self.share.owed) } else { deadline };
        let has_background = self.waiting.peek_of(Priority::Background).is_some();
        let is_overdue = self.passed_over_since.is_some_and(|since| since + deadline <= now);
        if has_background && is_overdue {
            return self.start_background(now);
        }
        for priority in [Priority::Demand, Priority::Prefetch] {
            let Some(first) = self.waiting.peek_of(priority) else { continue };
            let takes_all = first.needs == Needs::All;
            if has_background {
                self.passed_over_since.get_or_insert(now);
            }
            let next = self.start(priority);
            if takes_all || matches!(next, Next::Start(_)) {
                return next;
            }
        }
        if has_background { self.start_background(now) } else { Next::Nothing }
    }

    fn start_background(&mut self, now: Nanos) -> Next {
        let next = self.start(Priority::Background);
        if matches!(next, Next::Start(_)) {
            self.passed_over_since = None;
            self.share.begin(now);
        } else {
            self.passed_over_since.get_or_insert(now);
        }
        next
    }

    /// The first of a priority for which there is room. Reads pass each other, if their sensors differ, and
    /// nothing else.
    fn start(&mut self, priority: Priority) -> Next {
        let Self { waiting, readings, overlap, .. } = self;
        let may_go = |w: &Waiting| has_room_for(w.needs, readings, *overlap);
        let next = waiting.pop_first(priority, may_go, |w| w.needs == Needs::All);
        next.map_or(Next::Nothing, |w| Next::Start(w.id))
    }

    pub(crate) fn demand_read_waits(&self) -> bool {
        self.waiting.peek_of(Priority::Demand).is_some_and(|w| w.needs != Needs::All)
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
        let is_allowed = running.suspends < suspend.most(running.is_erase);
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

/// Whether the reads that are under way leave room for an operation.
fn has_room_for(needs: Needs, readings: &[Reading], overlap: Overlap) -> bool {
    let Needs::Sensor(sensor) = needs else { return readings.is_empty() };
    let leaves = |reading: &Reading| {
        reading.sensor != sensor
            || overlap.cache.is_some() && matches!(reading.stage, Stage::DataOut(_))
    };
    readings.iter().all(leaves)
}
