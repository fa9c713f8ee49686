//! When collecting has been tried often enough.

use std::cell::Cell;

/// Extents fuller than this are not worth collecting, as long as there is a choice.
pub const WORTH_COLLECTING: f64 = 0.95;

/// Collections of objects, tried or done, since clients last had room. Those of an index are not in vain: each gives
/// units back, or is not begun.
#[derive(Default)]
pub(crate) struct Sweep {
    collected: Cell<u32>,
    gave_up: Cell<Option<InVain>>,
}

/// What there was when every extent had been collected in vain.
#[derive(Clone, Copy)]
struct InVain {
    /// Writes so far.
    writes: u64,
    /// Extents' worth of dead objects.
    garbage: f64,
}

impl Sweep {
    pub(crate) fn note_collected(&self, of_objects: bool, clients_have_room: bool) {
        let collected = self.collected.get() + u32::from(of_objects);
        self.collected.set(if clients_have_room { 0 } else { collected });
    }

    /// Whether `extents` collections gave nothing, nobody has written since, and merges have not found an
    /// extent's worth of dead objects more.
    pub(crate) fn has_failed(&self, extents: u32, writes: u64, garbage: impl Fn() -> f64) -> bool {
        if let Some(then) = self.gave_up.get() {
            if writes != then.writes || garbage() >= then.garbage + 1.0 {
                self.gave_up.set(None);
                self.collected.set(0);
            }
        } else if self.collected.get() > extents {
            self.gave_up.set(Some(InVain { writes, garbage: garbage() }));
        }
        self.gave_up.get().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_tried_again_after_a_write_and_when_there_is_more_to_collect() {
        let sweep = Sweep::default();
        let has_failed = |writes, garbage: f64| sweep.has_failed(2, writes, || garbage);
        let in_vain = || (0..3).for_each(|_| sweep.note_collected(true, false));
        (0..9).for_each(|_| sweep.note_collected(false, false));
        assert!(!has_failed(7, 0.4), "only the index was collected");
        in_vain();
        assert!(has_failed(7, 0.4) && has_failed(7, 1.3));
        assert!(!has_failed(8, 1.3), "somebody has written");
        in_vain();
        assert!(has_failed(8, 1.3));
        assert!(!has_failed(8, 2.3), "merges have found garbage");
        in_vain();
        sweep.note_collected(false, true);
        assert!(!has_failed(8, 2.3), "clients had room");
    }
}
