//! When collecting has been tried often enough.

use std::cell::Cell;

/// Extents fuller than this are not worth collecting, as long as there is a choice.
pub const WORTH_COLLECTING: f64 = 0.95;

/// Collections, tried or done, since clients last had room.
#[derive(Default)]
pub(crate) struct Sweep {
    collected: Cell<u32>,
    /// Writes so far when every extent had been collected in vain.
    gave_up_at: Cell<Option<u64>>,
}

impl Sweep {
    pub(crate) fn note_collected(&self, clients_have_room: bool) {
        self.collected.set(if clients_have_room { 0 } else { self.collected.get() + 1 });
    }

    /// Whether `extents` collections gave nothing and nobody has written since.
    pub(crate) fn has_failed(&self, extents: u32, writes: u64) -> bool {
        if self.gave_up_at.get().is_some_and(|then| then != writes) {
            self.gave_up_at.set(None);
            self.collected.set(0);
        } else if self.collected.get() > extents {
            self.gave_up_at.set(Some(writes));
        }
        self.gave_up_at.get().is_some()
    }
}
