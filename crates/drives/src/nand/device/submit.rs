//! Submission of operations to their dies, and promotion of reads in flight.

use runtime::{IoClass, Priority};

use super::{Inner, Lane, State};
use crate::nand::die::{Needs, Waiting};
use crate::nand::operation::{Operation, OperationId, Request};
use crate::nand::{BlockAddress, DieIndex, PageAddress};

impl Inner {
    pub(super) fn submit(&self, lane: Lane, request: Request, class: IoClass) -> OperationId {
        let state = &mut *self.state.borrow_mut();
        state.submitted += 1;
        if let Request::Read(page, _) = &request {
            state.array.prefetch_place(*page);
        }
        let (block, needs) = self.needs(&request);
        let die = self.die_in(lane, block);
        let now = self.handle.now();
        let target = &mut state.dies[die.0 as usize];
        let operation = Operation {
            request,
            class,
            priority: class.priority(),
            submitted: now,
            blocked_by: target.blocker(needs),
            waker: None,
            outcome: None,
            is_abandoned: false,
        };
        let id = state.operations.insert(operation);
        target.waiting.push(class.priority(), Waiting { id, needs });
        self.let_read_end(state, die);
        self.attend(state, die);
        id
    }

    /// The dies and channels of [`Lane::Apart`] are numbered after the others.
    fn die_in(&self, lane: Lane, block: BlockAddress) -> DieIndex {
        let die = self.geometry.die_of(block);
        match lane {
            Lane::Shared => die,
            Lane::Apart => DieIndex(die.0 + self.geometry.dies()),
        }
    }

    /// Returns the block of an operation, and the part of the die that it needs.
    pub(super) fn needs(&self, request: &Request) -> (BlockAddress, Needs) {
        match request {
            Request::Read(page, _) => {
                let (block, index) = self.geometry.locate(*page);
                let sensor = self.geometry.plane(index) % self.durations.overlap.sensors;
                (block, Needs::Sensor(sensor))
            }
            Request::Program(page, _) => (self.geometry.locate(*page).0, Needs::All),
            Request::Erase(block) => (*block, Needs::All),
        }
    }

    pub(super) fn promote(&self, state: &mut State, die: DieIndex, page: PageAddress) {
        let State { dies, operations, .. } = state;
        let this = &mut dies[die.0 as usize];
        let promoted = this.waiting.promote(|w| operations.get(w.id).is_read_of(page));
        let waiting = promoted.map(|w| w.id);
        let mut under_way = this.readings.iter().map(|reading| reading.id);
        let reading = under_way.find(|id| operations.get(*id).is_read_of(page));
        let Some(id) = waiting.or(reading) else { return };
        operations.get(id).priority = Priority::Demand;
        if reading == Some(id) {
            state.channels[self.channel_of(die) as usize].promote(id);
        }
        self.let_read_end(state, die);
        self.attend(state, die);
    }
}
