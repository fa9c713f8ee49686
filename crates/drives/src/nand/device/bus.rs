//! Transfers over the channels: commands and pages, for one die at a time.

use runtime::Nanos;

use super::timers::CHANNEL_TOKEN;
use super::{Inner, State};
use crate::nand::DieIndex;
use crate::nand::channel::Transfer;
use crate::nand::die::{Reading, Stage};
use crate::nand::operation::{OperationId, Request};

impl Inner {
    pub(super) fn channel_of(&self, die: DieIndex) -> u32 {
        let channel = self.geometry.channel_of(die);
        let is_apart = die.0 >= self.geometry.dies();
        if is_apart { channel + self.geometry.channels } else { channel }
    }

    /// Requests a command transfer of duration `span`.
    pub(super) fn command(&self, state: &mut State, die: DieIndex, id: OperationId, span: Nanos) {
        let channel = self.channel_of(die);
        if state.channels[channel as usize].request_command(Transfer { die, id, span }) {
            self.occupy(state, channel, span);
        }
    }

    pub(super) fn ask_for_bus(
        &self,
        state: &mut State,
        die: DieIndex,
        id: OperationId,
        span: Nanos,
    ) {
        let channel = self.channel_of(die);
        let priority = state.operations.get(id).priority;
        if state.channels[channel as usize].request(Transfer { die, id, span }, priority) {
            self.occupy(state, channel, span);
        }
        self.let_read_end(state, die);
    }

    /// Promotes the prefetches of a die that wait for the bus if a demand read waits for the die.
    /// Such a prefetch occupies its die; if others kept the bus busy, both would wait.
    pub(super) fn let_read_end(&self, state: &mut State, die: DieIndex) {
        let this = &state.dies[die.0 as usize];
        let is_sending = |reading: &Reading| matches!(reading.stage, Stage::DataOut(_));
        if this.demand_read_waits() && this.readings.iter().any(is_sending) {
            state.channels[self.channel_of(die) as usize].promote_die(die);
        }
    }

    fn occupy(&self, state: &mut State, channel: u32, span: Nanos) {
        self.arm(self.handle.now() + span, CHANNEL_TOKEN | u64::from(channel));
        state.stats.channel_busy += span;
    }

    pub(super) fn transfer_ended(&self, state: &mut State, channel: u32) {
        let Transfer { die, id, .. } = state.channels[channel as usize].ended();
        // The next command of the die that is free now, if it has one, goes before data of other
        // dies.
        let has_commands = self.durations.command_on_channel.is_some();
        if !has_commands {
            self.carry_next(state, channel);
        }
        self.carried(state, die, id);
        if has_commands {
            self.carry_next(state, channel);
        }
    }

    fn carry_next(&self, state: &mut State, channel: u32) {
        if let Some(span) = state.channels[channel as usize].go_on() {
            self.occupy(state, channel, span);
        }
    }

    /// Continues an operation of the die after its transfer.
    fn carried(&self, state: &mut State, die: DieIndex, id: OperationId) {
        match &state.operations.get(id).request {
            Request::Read(..) => match state.dies[die.0 as usize].reading(id).stage {
                Stage::Command => self.sense(state, die, id),
                Stage::DataOut(sensed) => self.sent(state, die, id, sensed),
                Stage::Sensing(_) | Stage::Waiting(_) => {
                    unreachable!("a transfer belongs to a read that is on the bus")
                }
            },
            Request::Erase(_) => self.run_erase(state, die, id),
            Request::Program(first, _) => {
                let (_, index) = self.geometry.locate(*first);
                let program = self.durations.program_of(self.geometry.page_type(index));
                self.run(state, die, id, self.durations.command + program, false);
            }
        }
    }
}
