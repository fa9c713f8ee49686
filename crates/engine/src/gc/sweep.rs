//! Decides when garbage collection has been tried often enough.

use std::cell::Cell;

use runtime::Carrier;

/// Extents with a higher utilisation are not worth collecting while others exist.
pub(crate) const WORTH_COLLECTING: f64 = 0.95;

/// Counts collections of objects, tried or done, since clients last had room and wrote. Room alone
/// is not enough: the moved objects may use it up as soon as they are flushed, and before that the
/// memtables have no room. Collections of index extents are not counted: each frees units, or is
/// not begun.
#[derive(Default)]
pub(crate) struct Sweep {
    collected: Cell<u32>,
    /// The number of writes at the previous collection.
    writes: Cell<u64>,
    gave_up: Cell<Option<InVain>>,
    /// Whether snapshots held garbage when there was nothing else to collect.
    pub(crate) held: Cell<bool>,
}

/// The state when every extent had been collected without gaining space.
#[derive(Clone, Copy, Default)]
struct InVain {
    /// The number of writes.
    writes: u64,
    /// The dead objects, in full extents.
    died: f64,
}

impl Sweep {
    /// Carries the whole state.
    pub(crate) fn carry(&self, by: &mut Carrier<'_>) -> Option<()> {
        by.cell(&self.collected, Carrier::u32)?;
        by.cell(&self.writes, Carrier::u64)?;
        by.cell(&self.held, Carrier::bool)?;
        by.cell(&self.gave_up, |by, gave_up| {
            by.option(gave_up, |by, then| {
                by.u64(&mut then.writes)?;
                by.f64(&mut then.died)
            })
        })
    }

    pub(crate) fn note_collected(&self, of_objects: bool, clients_have_room: bool, writes: u64) {
        let collected = self.collected.get() + u32::from(of_objects);
        let has_helped = clients_have_room && self.writes.replace(writes) != writes;
        self.collected.set(if has_helped { 0 } else { collected });
    }

    /// Whether `extents` collections gained nothing, no client has written since, and compaction
    /// has not found at least one more full extent of dead objects. Without `writes` the store is
    /// full: a delete alone would cause all extents to be collected again, although they stay full
    /// until compaction finds the objects that it hides.
    pub(crate) fn has_failed(&self, extents: u32, writes: Option<u64>, died: f64) -> bool {
        if let Some(then) = self.gave_up.get() {
            let has_written = writes.is_some_and(|writes| writes != then.writes);
            if has_written || died >= then.died + 1.0 {
                self.begin_anew();
            }
        } else if self.collected.get() > extents {
            let writes = writes.unwrap_or(self.writes.get());
            self.gave_up.set(Some(InVain { writes, died }));
        }
        self.gave_up.get().is_some()
    }

    /// Resets the count: all extents may be collected again.
    pub(crate) fn begin_anew(&self) {
        self.gave_up.set(None);
        self.collected.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_tried_again_after_a_write_and_when_there_is_more_to_collect() {
        let sweep = Sweep::default();
        let has_failed = |writes, died: f64| sweep.has_failed(2, Some(writes), died);
        let in_vain = || (0..3).for_each(|_| sweep.note_collected(true, false, 7));
        (0..9).for_each(|_| sweep.note_collected(false, false, 7));
        assert!(!has_failed(7, 0.4), "only the index was collected");
        in_vain();
        assert!(has_failed(7, 0.4) && has_failed(7, 1.3));
        assert!(!has_failed(8, 1.3), "somebody has written");
        in_vain();
        assert!(has_failed(8, 1.3));
        assert!(!has_failed(8, 2.3), "merges have found garbage");
        in_vain();
        sweep.note_collected(false, true, 8);
        assert!(!has_failed(8, 2.3), "clients had room");
        (0..3).for_each(|_| sweep.note_collected(true, true, 8));
        assert!(has_failed(8, 2.3), "clients had room and could not use it");
        assert!(sweep.has_failed(2, None, 3.2), "deletes do not count while it is full");
        assert!(!sweep.has_failed(2, None, 3.3), "merges have found garbage");
    }
}
