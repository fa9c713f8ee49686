//! Steps of a read, from its sense to the end of its transfer.

use runtime::{IoClass, Nanos};

use super::timers::{READ_TOKEN, die_token};
use super::{Inner, State};
use crate::nand::die::{Needs, Reading, Sensed, Stage};
use crate::nand::operation::{Operation, OperationId, Outcome, Request};
use crate::nand::{DieIndex, PageAddress, ReadError};

impl Inner {
    pub(super) fn start_read(&self, state: &mut State, die: DieIndex, id: OperationId) {
        let operation = state.operations.get(id);
        if operation.class == IoClass::ClientRead {
            let waited = self.handle.now() - operation.submitted;
            state.stats.count_wait(operation.blocked_by, waited);
        }
        let (_, needs) = self.needs(&operation.request);
        let Needs::Sensor(sensor) = needs else { unreachable!("it is a read") };
        let reading = Reading { id, sensor, stage: Stage::Command };
        state.dies[die.0 as usize].readings.push(reading);
        match self.durations.command_on_channel {
            Some(span) => self.command(state, die, id, span),
            None => self.sense(state, die, id),
        }
    }

    pub(super) fn sense(&self, state: &mut State, die: DieIndex, id: OperationId) {
        let (block, index) = self.geometry.locate(read_page(state.operations.get(id)));
        let page_type = self.geometry.page_type(index);
        let is_disturbed = self
            .durations
            .disturb_limit
            .is_some_and(|limit| state.array.read_count(block) >= limit);
        let (retries, is_readable) = self.draw_retries(state);
        let is_readable = is_readable && !is_disturbed;
        let sense = self.durations.read[page_type as usize];
        let this = &mut state.dies[die.0 as usize];
        let sensor = this.reading(id).sensor;
        let moving = self.durations.overlap.cache.filter(|_| this.is_sending(sensor));
        let span = self.durations.command + sense + self.durations.retry * retries;
        this.reading(id).stage = Stage::Sensing(Sensed { is_readable });
        let token = READ_TOKEN | die_token(die, id.0);
        self.arm(self.handle.now() + span + moving.unwrap_or(Nanos::ZERO), token);
    }

    /// Draws the extra senses of a read, and whether it succeeds.
    fn draw_retries(&self, state: &mut State) -> (u64, bool) {
        let Some(errors) = &self.errors else {
            return (0, true);
        };
        let mut retries = 0;
        while state.error_rng.chance(errors.retry_probability) {
            if retries == errors.max_retries {
                return (u64::from(retries), false);
            }
            retries += 1;
            state.stats.read_retries += 1;
        }
        (u64::from(retries), true)
    }

    /// Notes that a page was sensed.
    pub(super) fn sensed(&self, state: &mut State, die: DieIndex, id: OperationId) {
        state.array.prefetch_image(read_page(state.operations.get(id)));
        let this = &mut state.dies[die.0 as usize];
        let Reading { sensor, stage: Stage::Sensing(sensed), .. } = *this.reading(id) else {
            unreachable!("a sense ends once")
        };
        if this.is_sending(sensor) {
            this.reading(id).stage = Stage::Waiting(sensed);
        } else {
            self.send(state, die, id, sensed);
        }
    }

    /// Requests the channel for a sensed page. With cache read its sensor is free for the next
    /// page.
    fn send(&self, state: &mut State, die: DieIndex, id: OperationId, sensed: Sensed) {
        state.dies[die.0 as usize].reading(id).stage = Stage::DataOut(sensed);
        let Request::Read(_, bytes) = state.operations.get(id).request else {
            unreachable!("only reads sense")
        };
        self.ask_for_bus(state, die, id, self.durations.transfer_of(bytes));
        if self.durations.overlap.cache.is_some() {
            self.attend(state, die);
        }
    }

    /// Completes a read whose page has crossed the channel.
    pub(super) fn sent(&self, state: &mut State, die: DieIndex, id: OperationId, sensed: Sensed) {
        let this = &mut state.dies[die.0 as usize];
        let sensor = this.reading(id).sensor;
        this.readings.retain(|reading| reading.id != id);
        let next = this.readings.iter_mut().find_map(|reading| match reading.stage {
            Stage::Waiting(sensed) if reading.sensor == sensor => Some((reading.id, sensed)),
            _ => None,
        });
        if let Some((next, sensed)) = next {
            self.send(state, die, next, sensed);
        }
        let outcome = bring(state, id, sensed);
        let class = state.operations.get(id).class;
        state.stats.of_mut(class).pages_read += 1;
        state.operations.finish(id, outcome, &self.handle);
        self.attend(state, die);
    }
}

fn read_page(operation: &Operation) -> PageAddress {
    let Request::Read(page, _) = operation.request else { unreachable!("only reads sense") };
    page
}

/// Returns the outcome of a read at the end of its transfer. The die was occupied since the sense,
/// so the cells have not changed since.
fn bring(state: &mut State, id: OperationId, sensed: Sensed) -> Outcome {
    let image = state.array.read(read_page(state.operations.get(id)))?;
    if sensed.is_readable { Ok(Some(image)) } else { Err(ReadError::Uncorrectable) }
}
