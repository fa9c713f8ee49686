//! The next operation of a die, as `die` chooses it, and the accounting of its busy time.

use runtime::Nanos;

use super::timers::die_token;
use super::{Inner, State};
use crate::nand::DieIndex;
use crate::nand::die::{GiveWay, Next, Phase};
use crate::nand::operation::{OperationId, Request};

impl Inner {
    /// Starts the operations that the die can start now.
    pub(super) fn attend(&self, state: &mut State, die: DieIndex) {
        if state.is_off {
            // Submitted after a power cut: it never completes.
            return;
        }
        let now = self.handle.now();
        let suspend = self.durations.suspend.as_ref();
        let this = &mut state.dies[die.0 as usize];
        match this.phase {
            Phase::Idle => self.attend_idle(state, die),
            Phase::Running(_) => match this.give_way(now, suspend) {
                GiveWay::No => {}
                GiveWay::Now => self.suspend(state, die),
                GiveWay::At(instant) => {
                    if let Phase::Running(running) = &mut this.phase {
                        running.is_rechecked = true;
                    }
                    let token = die_token(die, this.generation);
                    self.arm(instant, token);
                }
            },
            Phase::OnBus(_) | Phase::Suspending(_) => {}
        }
    }

    /// Starts operations while there is room besides the reads in flight.
    fn attend_idle(&self, state: &mut State, die: DieIndex) {
        let (now, deadline) = (self.handle.now(), self.durations.background_deadline);
        let suspend = self.durations.suspend.as_ref();
        loop {
            let this = &mut state.dies[die.0 as usize];
            if !matches!(this.phase, Phase::Idle) || !this.has_room() {
                return;
            }
            match this.choose_next(now, deadline, suspend, state.is_write_stall) {
                Next::Start(id) => self.start(state, die, id),
                Next::Resume(suspended) => return self.resume(state, die, suspended),
                Next::Nothing if this.readings.is_empty() => return self.rest(state, die),
                Next::Nothing => return,
            }
        }
    }

    fn start(&self, state: &mut State, die: DieIndex, id: OperationId) {
        let now = self.handle.now();
        state.dies[die.0 as usize].busy_since.get_or_insert(now);
        match &state.operations.get(id).request {
            Request::Read(..) => self.start_read(state, die, id),
            Request::Program(..) => self.start_program(state, die, id),
            Request::Erase(_) => self.start_erase(state, die, id),
        }
    }

    fn rest(&self, state: &mut State, die: DieIndex) {
        if let Some(since) = state.dies[die.0 as usize].busy_since.take() {
            state.stats.die_busy += self.handle.now() - since;
        }
    }

    /// Moves the die into `phase`, with a timer for its end if that is known. Older timers become
    /// void.
    pub(super) fn enter(
        &self,
        state: &mut State,
        die: DieIndex,
        phase: Phase,
        span: Option<Nanos>,
    ) {
        let this = &mut state.dies[die.0 as usize];
        this.phase = phase;
        this.generation = this.generation.wrapping_add(1);
        if let Some(span) = span {
            self.arm(self.handle.now() + span, die_token(die, this.generation));
        }
    }
}
