//! Programs and erases in the array: they run, may be suspended for reads, and change the cells at
//! their end.

use runtime::{Handle, Nanos};

use super::{Inner, State};
use crate::nand::DieIndex;
use crate::nand::die::{Carries, Phase, Running, Suspended};
use crate::nand::operation::{OperationId, Request};

impl Inner {
    pub(super) fn start_program(&self, state: &mut State, die: DieIndex, id: OperationId) {
        let Request::Program(first, images) = &state.operations.get(id).request else {
            unreachable!("it is a program")
        };
        let (first, pages) = (*first, images.len());
        state.array.assert_programmable(first, pages);
        let data = self.durations.transfer_page * pages as u64;
        let command = self.durations.command_on_channel.unwrap_or(Nanos::ZERO);
        self.enter(state, die, Phase::OnBus(Carries::DataIn), None);
        self.ask_for_bus(state, die, id, command + data);
    }

    pub(super) fn start_erase(&self, state: &mut State, die: DieIndex, id: OperationId) {
        match self.durations.command_on_channel {
            Some(span) => {
                self.enter(state, die, Phase::OnBus(Carries::EraseCommand), None);
                self.command(state, die, id, span);
            }
            None => self.run_erase(state, die, id),
        }
    }

    pub(super) fn run_erase(&self, state: &mut State, die: DieIndex, id: OperationId) {
        self.run(state, die, id, self.durations.command + self.durations.erase, true);
    }

    pub(super) fn run(
        &self,
        state: &mut State,
        die: DieIndex,
        id: OperationId,
        span: Nanos,
        is_erase: bool,
    ) {
        let since = self.handle.now();
        let running =
            Running { id, is_erase, since, ends: since + span, suspends: 0, is_rechecked: false };
        self.enter(state, die, Phase::Running(running), Some(span));
        self.attend(state, die);
    }

    pub(super) fn suspend(&self, state: &mut State, die: DieIndex) {
        let Phase::Running(running) = state.dies[die.0 as usize].phase else {
            unreachable!("only a running operation is suspended")
        };
        let durations = self.durations.suspend.as_ref().expect("checked by give_way");
        let now = self.handle.now();
        let span = durations.suspending(running.is_erase).expect("checked by give_way");
        if running.is_erase {
            state.stats.erase_suspends += 1;
        } else {
            state.stats.program_suspends += 1;
        }
        let suspended = Suspended {
            id: running.id,
            is_erase: running.is_erase,
            since: now,
            remaining: running.ends - now,
            suspends: running.suspends + 1,
        };
        self.enter(state, die, Phase::Suspending(suspended), Some(span));
    }

    pub(super) fn resume(&self, state: &mut State, die: DieIndex, suspended: Suspended) {
        let durations = self.durations.suspend.as_ref().expect("something was suspended");
        let since = self.handle.now() + durations.resume;
        let running = Running {
            id: suspended.id,
            is_erase: suspended.is_erase,
            since,
            ends: since + suspended.remaining,
            suspends: suspended.suspends,
            is_rechecked: false,
        };
        let span = durations.resume + suspended.remaining;
        self.enter(state, die, Phase::Running(running), Some(span));
        self.attend(state, die);
    }

    pub(super) fn array_step_ended(&self, state: &mut State, die: DieIndex) {
        let now = self.handle.now();
        let this = &mut state.dies[die.0 as usize];
        match &this.phase {
            Phase::Running(running) if now < running.ends => self.attend(state, die),
            Phase::Running(running) => {
                let id = running.id;
                this.phase = Phase::Idle;
                complete(state, id, &self.handle);
                self.attend(state, die);
            }
            Phase::Suspending(suspended) => {
                this.suspended = Some(*suspended);
                this.phase = Phase::Idle;
                self.attend(state, die);
            }
            Phase::Idle | Phase::OnBus(_) => unreachable!("no timer is armed in this phase"),
        }
    }
}

/// Completes a program or erase: changes the cells, and wakes the submitter.
fn complete(state: &mut State, id: OperationId, handle: &Handle) {
    apply(state, id);
    state.operations.finish(id, Ok(None), handle);
}

/// Applies a program or erase to the cells.
pub(crate) fn apply(state: &mut State, id: OperationId) {
    let operation = state.operations.get(id);
    let counts = state.stats.of_mut(operation.class);
    match &mut operation.request {
        Request::Program(first, images) => {
            counts.pages_programmed += images.len() as u64;
            state.array.program(*first, std::mem::take(images));
        }
        Request::Erase(block) => {
            counts.blocks_erased += 1;
            state.array.erase(*block);
        }
        Request::Read(..) => unreachable!("a read does not run in the array"),
    }
}
