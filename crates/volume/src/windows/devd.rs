//! The task that gives the members their slots in turn, so that all others are in their
//! deterministic windows: Vigil-KV's `devd` (ATC'22, section 6.2).
//!
//! A lost member is skipped. A member outside its window, for example a replacement, has the next
//! slot.

use std::rc::Rc;

use block::nvme::{WindowSelect, WindowStatus};
use engine::MediumError;
use runtime::{Handle, Nanos};

use super::bandwidth::Bandwidth;
use super::slot::{Mode, Pressure, Rules, latest_end};
use super::{Gate, InternalReads, Keeper, State, Windowed, Windows};
use crate::planted::Fault;
use crate::volume::{Condition, Inner, Taker};

type Done = Result<(), MediumError>;

/// Poll interval for a replacement while all members are lost (assumed).
const POLL: Nanos = Nanos(50_000_000);

pub(super) struct Devd<M> {
    inner: Rc<Inner<M>>,
    windows: Rc<Windows>,
    rules: Rules,
    bandwidths: Vec<Bandwidth>,
    mode: Mode,
    /// The member whose turn is next.
    turn: usize,
    has_unfinished: bool,
}

impl<M: Windowed> Devd<M> {
    pub(super) fn new(inner: Rc<Inner<M>>, windows: Rc<Windows>) -> Self {
        let assumed = Bandwidth::new(windows.options.write_bytes_per_second);
        let bandwidths = vec![assumed; inner.stripes.members()];
        // Preliminary, until the devices report their values.
        let rules = Rules { max_dtwin: Nanos::MAX, min_ndwin: Nanos::ZERO, lockdown: Nanos::ZERO };
        let (mode, turn, has_unfinished) = (Mode::Min, 0, false);
        Self { inner, windows, rules, bandwidths, mode, turn, has_unfinished }
    }

    /// Takes all members to their deterministic windows, then each member in turn out of its window
    /// and back, until windows are turned off.
    pub(super) async fn run(mut self) {
        self.begin().await;
        while !self.windows.is_ending.get() {
            self.pause().await;
            let Some(member) = self.next() else {
                // All members are lost: wait until one is replaced.
                self.inner.handle.sleep(POLL).await;
                continue;
            };
            let taker = self.inner.taker(member);
            let done = self.slot(&taker).await;
            self.settle(&taker, done);
        }
        self.end().await;
    }

    /// Gives all members their first slot at once: there are no windows yet that it could disturb.
    async fn begin(&mut self) {
        for taker in self.serving() {
            let enabled = self.enable(&taker).await;
            self.settle(&taker, enabled);
        }
        let handle = self.inner.handle.clone();
        handle.sleep(self.rules.min_ndwin).await;
        let closing = |taker: Taker<M>| {
            let windows = Rc::clone(&self.windows);
            let close = close_slot(Rc::clone(&taker.medium), windows, handle.clone(), true);
            (taker, handle.spawn("first window", close))
        };
        let closing: Vec<_> = self.serving().into_iter().map(closing).collect();
        for (taker, closed) in closing {
            let closed = closed.await;
            if closed.is_ok() {
                self.enter_dtwin(&taker);
            }
            self.settle(&taker, closed.map(drop));
        }
        self.windows.has_begun.set(true);
        self.windows.changed.notify_all();
    }

    /// Ends the slots of a member that has failed or was replaced.
    fn settle(&self, taker: &Taker<M>, done: Done) {
        if let Err(why) = done {
            self.inner.fail(taker, why);
        }
        let is_serving = self.inner.condition(taker.index) == Condition::Serving;
        if !is_serving || !self.inner.is_current(taker) {
            taker.medium.give_up(done.err().unwrap_or(MediumError::Gone));
        }
    }

    fn serving(&self) -> Vec<Taker<M>> {
        let takers = self.inner.takers().into_iter();
        takers.filter(|taker| self.inner.condition(taker.index) == Condition::Serving).collect()
    }

    /// Turns windows on at a member, and reads the device's requirements.
    async fn enable(&mut self, taker: &Taker<M>) -> Done {
        match self.windows.options.keeper {
            Keeper::Host(rules) => self.rules = rules,
            Keeper::Device => {
                let medium = taker.medium.medium();
                self.windows.bear(medium.configure_windows(true).await)?;
                let Some(log) = self.windows.bear(medium.window_log().await)? else {
                    return Ok(()); // The member follows the requirements of the others.
                };
                let lockdown_us = log.lockdown_estimate_us.map_or(0, std::num::NonZeroU64::get);
                let rules = &mut self.rules;
                rules.max_dtwin = rules.max_dtwin.min(Nanos::from_millis(log.dtwin.time_ms));
                let least = Nanos::from_millis(log.ndwin_minimum_high_ms);
                rules.min_ndwin = rules.min_ndwin.max(least);
                rules.lockdown = rules.lockdown.max(Nanos::from_micros(lockdown_us));
                rules.lockdown = rules.lockdown.max(rules.margin());
            }
        }
        let packs_reads = self.windows.options.internal_reads == InternalReads::InSlots;
        taker.medium.flow().set_packs_reads(packs_reads);
        taker.medium.is_enabled.set(true);
        Ok(())
    }

    /// Returns the ends of the deterministic windows of all members in one, in order of their turns
    /// from `turn` on.
    fn deadlines(&self, turn: usize) -> Vec<Nanos> {
        let members = self.inner.stripes.members();
        let in_turn = (0..members).map(|step| (turn + step) % members);
        let of = |member| self.inner.taker(member).medium.dtwin_ends.get();
        in_turn.filter_map(of).collect()
    }

    /// Waits until a slot is needed, or until a member has to leave its window.
    async fn pause(&self) {
        if !self.windows.options.pauses {
            return;
        }
        let until = latest_end(self.deadlines(self.turn), self.rules.shortest_slot());
        let handle = &self.inner.handle;
        let windows = Rc::clone(&self.windows);
        let clock = handle.clone();
        let alarm = handle.spawn("end of a pause", async move {
            clock.sleep_until(until.max(clock.now())).await;
            windows.changed.notify_all();
        });
        let is_over = || handle.now() >= until || self.is_urged();
        self.windows.changed.wait_until(is_over).await;
        alarm.abort();
    }

    /// Whether a slot is needed.
    fn is_urged(&self) -> bool {
        let windows = &self.windows;
        let has_syncs = |taker: &Taker<M>| taker.medium.flow().has_syncs();
        let is_outside = |taker: &Taker<M>| taker.medium.dtwin_ends.get().is_none();
        windows.is_ending.get()
            || windows.is_stalled.get()
            || windows.cached() > windows.options.cache_bytes / 10
            || self.serving().iter().any(|taker| has_syncs(taker) || is_outside(taker))
    }

    /// Returns the member that has the next slot.
    fn next(&mut self) -> Option<usize> {
        let members = self.inner.stripes.members();
        let in_turn = (0..members).map(|step| (self.turn + step) % members);
        let serving = in_turn.filter(|member| self.inner.condition(*member) == Condition::Serving);
        let serving: Vec<usize> = serving.collect();
        let is_outside =
            |member: &&usize| self.inner.taker(**member).medium.dtwin_ends.get().is_none();
        let next = serving.iter().find(is_outside).or(serving.first()).copied()?;
        self.turn = (next + 1) % members;
        Some(next)
    }

    /// Runs a slot of a member.
    async fn slot(&mut self, taker: &Taker<M>) -> Done {
        let (gate, handle) = (&taker.medium, self.inner.handle.clone());
        let flow = gate.flow();
        if !gate.is_enabled.get() {
            self.enable(taker).await?;
        }
        let keeper = self.windows.options.keeper;

        self.check_window(taker).await?;
        let udt = handle.now();
        flow.set_state(State::Udt);
        flow.reads_ended().await;
        gate.dtwin_ends.set(None);
        if keeper == Keeper::Device {
            self.windows.bear(gate.medium().select_window(WindowSelect::Ndwin).await)?;
        }

        let and = handle.now();
        let ndwin = self.ndwin(taker, and);
        flow.begin_slot(and + ndwin, self.bandwidths[taker.index].worst());
        handle.sleep_until(and + self.rules.min_ndwin).await;
        let is_early = self.inner.planted.has(Fault::EndSlotsEarly);
        if !is_early {
            flow.slot_is_done().await;
        }

        let und = handle.now();
        self.note_work(taker, und - and);
        let windows = Rc::clone(&self.windows);
        let locked = close_slot(Rc::clone(gate), windows, handle.clone(), !is_early).await?;
        self.enter_dtwin(taker);
        let quiet = handle.now();
        self.windows.count(|stats| {
            stats.slots += 1;
            stats.udt += and - udt;
            stats.and += und - and;
            stats.und += locked - und;
            stats.lockdown += quiet - locked;
        });
        Ok(())
    }

    /// Counts a member that has left its window on its own.
    async fn check_window(&self, taker: &Taker<M>) -> Done {
        let gate = &taker.medium;
        if self.windows.options.keeper == Keeper::Device && gate.dtwin_ends.get().is_some() {
            let log = self.windows.bear(gate.medium().window_log().await)?;
            let is_lost = log.is_some_and(|log| log.status != WindowStatus::Dtwin);
            self.windows.count(|stats| stats.lost_windows += u64::from(is_lost));
        }
        Ok(())
    }

    /// Returns the length of AND and UND together, for a slot of a member that begins now.
    fn ndwin(&mut self, taker: &Taker<M>, now: Nanos) -> Nanos {
        let pressure = Pressure {
            cached: self.windows.cached(),
            limit: self.windows.options.cache_bytes,
            has_unfinished: self.has_unfinished,
        };
        self.mode = pressure.mode(self.mode);
        let end = latest_end(self.deadlines(self.turn), self.rules.shortest_slot());
        let room = end.saturating_since(now + self.rules.lockdown + self.rules.margin());
        let (backlog, bandwidth) =
            (taker.medium.flow().backlog(), self.bandwidths[taker.index].worst());
        let slots = self.windows.options.slots;
        slots.ndwin(self.mode, &self.rules, backlog, bandwidth, room)
    }

    /// Records the work done in a slot.
    fn note_work(&mut self, taker: &Taker<M>, span: Nanos) {
        let flow = taker.medium.flow();
        let (begun, left) = (flow.begun_in_slot(), flow.backlog() - flow.bytes_under_way());
        if left > 0 {
            // The member had work during the whole slot, so this measures its bandwidth.
            self.bandwidths[taker.index].observe(begun - flow.bytes_under_way(), span);
        }
        self.has_unfinished = left > 0;
        self.windows.count(|stats| {
            stats.slot_bytes += begun;
            stats.unfinished_slots += u64::from(left > 0);
            stats.long_slots += u64::from(span > self.rules.min_ndwin + self.rules.margin());
        });
    }

    /// Records that a member is in its deterministic window again.
    fn enter_dtwin(&self, taker: &Taker<M>) {
        let lasts = Nanos(self.rules.max_dtwin.0 - self.rules.margin().0);
        let ends = Nanos(self.inner.handle.now().0.saturating_add(lasts.0));
        taker.medium.dtwin_ends.set(Some(ends));
        taker.medium.flow().set_state(State::Adt);
    }

    /// Writes all waiting writes, and turns windows off.
    async fn end(&mut self) {
        for taker in self.inner.takers() {
            let gate = &taker.medium;
            gate.flow().begin_slot(Nanos::MAX, u64::MAX);
            let mut synced = Ok(());
            // More syncs may be requested meanwhile.
            while synced.is_ok() && gate.flow().has_work() {
                gate.flow().slot_is_done().await;
                synced = gate.sync_slot().await;
            }
            gate.flow().set_state(State::Off);
            gate.is_enabled.set(false);
            gate.dtwin_ends.set(None);
            let off = match self.windows.options.keeper {
                Keeper::Device if synced.is_ok() => {
                    self.windows.bear(gate.medium().configure_windows(false).await).map(drop)
                }
                _ => synced,
            };
            self.settle(&taker, off);
        }
        // Members that were added meanwhile.
        self.inner.takers().iter().for_each(|taker| taker.medium.flow().set_state(State::Off));
        // Stripes not yet written to all members are read from `plm_cache` until they are.
        self.windows.is_over.set(true);
        let is_written = || self.windows.images.borrow().is_empty();
        self.inner.changed.wait_until(is_written).await;
        self.inner.windows.replace(None);
        self.inner.changed.notify_all();
    }
}

/// Ends the commands in progress on a member and takes it to its deterministic window. Returns the
/// time at which its lockdown began.
async fn close_slot<M: Windowed>(
    gate: Rc<Gate<M>>,
    windows: Rc<Windows>,
    handle: Handle,
    drains: bool,
) -> Result<Nanos, MediumError> {
    gate.flow().set_state(State::Und);
    if drains {
        gate.flow().writes_ended().await;
    }
    gate.sync_slot().await?;
    let locked = handle.now();
    gate.flow().set_state(State::Lockdown);
    gate.flow().reads_ended().await;
    if windows.options.keeper == Keeper::Device {
        windows.bear(gate.medium().select_window(WindowSelect::Dtwin).await)?;
    }
    Ok(locked)
}

impl Windows {
    /// Checks the result of a window command. A device that refuses one is outside its window,
    /// which is counted. Only a device that is gone is an error; otherwise the member and its data
    /// stay in use.
    fn bear<T>(&self, outcome: Result<T, MediumError>) -> Result<Option<T>, MediumError> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(MediumError::Gone) => Err(MediumError::Gone),
            Err(_) => {
                self.count(|stats| stats.lost_windows += 1);
                Ok(None)
            }
        }
    }
}
