//! Timers, which drive all steps: their tokens, and the step that each one continues.

use runtime::{Event, Nanos};

use super::Inner;
use crate::nand::DieIndex;
use crate::nand::operation::OperationId;

/// Timer token of a channel: this bit and the channel's number.
pub(super) const CHANNEL_TOKEN: u64 = 1 << 63;
/// Timer token of a read: this bit, the die's number and the read's. Without either bit: a die's
/// number and its generation.
pub(super) const READ_TOKEN: u64 = 1 << 62;

impl Event for Inner {
    fn fire(&self, token: u64) {
        let state = &mut *self.state.borrow_mut();
        if state.is_off {
            return;
        }
        if token & CHANNEL_TOKEN != 0 {
            self.transfer_ended(state, (token & !CHANNEL_TOKEN) as u32);
        } else if token & READ_TOKEN != 0 {
            let die = DieIndex(((token & !READ_TOKEN) >> 32) as u32);
            self.sensed(state, die, OperationId(token as u32));
        } else {
            let (die, generation) = (DieIndex((token >> 32) as u32), token as u32);
            if state.dies[die.0 as usize].generation == generation {
                self.array_step_ended(state, die);
            }
        }
    }
}

impl Inner {
    pub(super) fn arm(&self, at: Nanos, token: u64) {
        let me = self.me.upgrade().expect("the flash is alive while it is used");
        self.handle.fire_at(at, me, token);
    }
}

pub(super) fn die_token(die: DieIndex, generation: u32) -> u64 {
    u64::from(die.0) << 32 | u64::from(generation)
}
