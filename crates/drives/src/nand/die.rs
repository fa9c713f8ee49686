//! A die and its schedule: one operation at a time, or several overlapping reads. Decisions only;
//! the clock and the buses are in `device`.

use runtime::{Carrier, Nanos, Priority};

use super::Blocker;
use super::operation::OperationId;
use super::profile::{Overlap, SuspendDurations};
use super::queue::PriorityQueue;

/// The phase of a whole die. Its reads are in [`Die::readings`].
pub(crate) enum Phase {
    /// Idle, or reading.
    Idle,
    /// Waiting for the channel or using it.
    OnBus(Carries),
    /// Programming or erasing the array.
    Running(Running),
    /// In transition from running to suspended.
    Suspending(Suspended),
}

/// The transfer of an operation of the whole die.
#[derive(Clone, Copy)]
pub(crate) enum Carries {
    /// Command and address of an erase.
    EraseCommand,
    /// Command and data of a program.
    DataIn,
}

/// A read in progress.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    pub id: OperationId,
    pub sensor: u32,
    pub stage: Stage,
}

/// Stage of a read.
#[derive(Clone, Copy)]
pub(crate) enum Stage {
    /// Its command waits for the channel or crosses it.
    Command,
    /// The array is being read into the page register.
    Sensing(Sensed),
    /// The page is in the page register; the cache register holds the previous page.
    Waiting(Sensed),
    /// The page waits for the channel or crosses it.
    DataOut(Sensed),
}

/// Result of a sense.
#[derive(Clone, Copy)]
pub(crate) struct Sensed {
    /// Whether the ECC could correct its bit errors.
    pub is_readable: bool,
}

/// A program or erase in the array.
#[derive(Clone, Copy)]
pub(crate) struct Running {
    pub id: OperationId,
    pub is_erase: bool,
    /// Start, or end of the last suspension.
    pub since: Nanos,
    pub ends: Nanos,
    pub suspends: u32,
    /// Whether a timer is armed for the time at which suspending becomes possible.
    pub is_rechecked: bool,
}

/// A program or erase suspended for demand reads.
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

/// The part of a die that an operation needs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// A read needs one sensor.
    Sensor(u32),
    /// A program or an erase needs the whole die.
    All,
}

/// The next action of an idle die.
pub(crate) enum Next {
    Start(OperationId),
    Resume(Suspended),
    Nothing,
}

/// Whether the running operation gives way to a demand read.
pub(crate) enum GiveWay {
    No,
    Now,
    /// At this time: it must make some progress first.
    At(Nanos),
}

pub(crate) struct Die {
    pub phase: Phase,
    /// Reads in progress: one, unless they overlap.
    pub readings: Vec<Reading>,
    overlap: Overlap,
    /// Timers of an earlier generation are void.
    pub generation: u32,
    pub waiting: PriorityQueue<Waiting>,
    pub suspended: Option<Suspended>,
    /// Time since which other operations have been overtaking waiting background work.
    passed_over_since: Option<Nanos>,
    share: Share,
    pub busy_since: Option<Nanos>,
}

/// Division of the die's time during a write stall.
#[derive(Clone, Copy, Default)]
struct Share {
    /// Start of the running background operation.
    began: Option<Nanos>,
    /// Time given to other operations while it was suspended.
    given: Nanos,
    /// Time owed to other operations for it.
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

    /// Returns whether the die is idle and no operation waits for it.
    pub(crate) fn is_at_rest(&self) -> bool {
        let is_idle = matches!(self.phase, Phase::Idle) && self.readings.is_empty();
        is_idle && self.suspended.is_none() && self.waiting.is_empty() && self.busy_since.is_none()
    }

    /// Saves or restores the state of an idle die.
    pub(crate) fn carry(&mut self, by: &mut Carrier<'_>) -> Option<()> {
        by.option(&mut self.passed_over_since, Carrier::nanos)?;
        by.option(&mut self.share.began, Carrier::nanos)?;
        by.nanos(&mut self.share.given)?;
        by.nanos(&mut self.share.owed)
    }

    /// Returns the kind of operation for which a newly arrived read would have to wait.
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

    /// Returns whether an operation could begin besides the reads in progress.
    pub(crate) fn has_room(&self) -> bool {
        self.readings.is_empty() || self.overlap.is_any()
    }

    /// Returns whether a page of the sensor is being transferred, so that the next sense must first
    /// move it out of the way.
    pub(crate) fn is_sending(&self, sensor: u32) -> bool {
        let is_sending = |r: &Reading| r.sensor == sensor && matches!(r.stage, Stage::DataOut(_));
        self.readings.iter().any(is_sending)
    }

    /// Returns a read in progress.
    pub(crate) fn reading(&mut self, id: OperationId) -> &mut Reading {
        let reading = self.readings.iter_mut().find(|reading| reading.id == id);
        reading.expect("a read is under way until its end")
    }

    /// Chooses the next action: demand reads first, then prefetches, then background work in order
    /// of arrival. Background work that was overtaken for `deadline` goes before everything. During
    /// a write stall other operations are owed at most the time that the previous background
    /// operation took: each side gets half.
    ///
    /// While an operation is suspended, only demand reads may run, for at most the profile's span.
    /// An operation that needs the whole die waits until its reads have ended; once it is its turn,
    /// no further read begins.
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

    /// Starts the first operation of a priority for which there is room. Reads may overtake each
    /// other if their sensors differ; no other operation is overtaken.
    fn start(&mut self, priority: Priority) -> Next {
        let Self { waiting, readings, overlap, .. } = self;
        let may_go = |w: &Waiting| has_room_for(w.needs, readings, *overlap);
        let next = waiting.pop_first(priority, may_go, |w| w.needs == Needs::All);
        next.map_or(Next::Nothing, |w| Next::Start(w.id))
    }

    pub(crate) fn demand_read_waits(&self) -> bool {
        self.waiting.peek_of(Priority::Demand).is_some_and(|w| w.needs != Needs::All)
    }

    /// Returns whether the running program or erase should be suspended.
    pub(crate) fn give_way(&self, now: Nanos, suspend: Option<&SuspendDurations>) -> GiveWay {
        let (Phase::Running(running), Some(suspend)) = (&self.phase, suspend) else {
            return GiveWay::No;
        };
        let Some(suspending) = suspend.suspending(running.is_erase) else {
            return GiveWay::No;
        };
        let earliest = running.since + suspend.min_progress;
        // An operation that is nearly done ends sooner than it could be suspended and resumed.
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

/// Returns whether the reads in progress leave room for an operation.
fn has_room_for(needs: Needs, readings: &[Reading], overlap: Overlap) -> bool {
    let Needs::Sensor(sensor) = needs else { return readings.is_empty() };
    let leaves = |reading: &Reading| {
        reading.sensor != sensor
            || overlap.cache.is_some() && matches!(reading.stage, Stage::DataOut(_))
    };
    readings.iter().all(leaves)
}
