//! The pace of garbage collection beside clients.

use super::Set;
use super::place::Stream;
use crate::ssd::table::{State, Table};

impl Set {
    pub(super) fn give_credit(&self, slots: i64) {
        let most = i64::from(self.layout.data_slots());
        self.jobs.credit.set((self.jobs.credit.get() + slots).min(most));
        self.space_changed.notify_all();
    }

    /// Delays flushes while space is low to the pace at which collection makes room: clients wait
    /// often and briefly, instead of for long when no space is left.
    pub(super) async fn keep_pace(&self, slots: u32) {
        let may_go = || {
            let is_paced = self.jobs.is_collecting.get() && self.plm.windows.borrow().runs_jobs();
            !is_paced || self.jobs.credit.get() >= 0
        };
        self.space_changed.wait_until(may_go).await;
        if self.jobs.is_collecting.get() {
            self.jobs.credit.set(self.jobs.credit.get() - i64::from(slots));
            self.pace_may_change();
        }
    }

    /// Wakes collection that waits for clients, to check again whether it may continue.
    pub(super) fn pace_may_change(&self) {
        if self.keeps_pace() {
            self.space_changed.notify_all();
        }
    }

    /// Returns whether collection proceeds only as fast as clients write. With windows enabled it
    /// collects as much as it can while it may run.
    pub(super) fn keeps_pace(&self) -> bool {
        !self.plm.windows.borrow().config().enabled
    }

    /// Returns whether collection may continue. The counterpart of [`Self::keep_pace`]: collection
    /// waits while the room it maintains exists, counting the slots of `under_way` that it is about
    /// to gain. It does not wait if a client or a lockdown needs a whole superblock, or if another
    /// job is due.
    pub(super) fn may_go_on(&self, under_way: u64) -> bool {
        let table = self.table.borrow();
        // Clients may wait for mapping pages, and mapping pages for the collection of their
        // superblocks.
        let is_over = table.mapping_that_stay() > self.mapping_superblocks;
        let is_other_due = is_over || !self.jobs.reclaims.borrow().is_empty();
        let is_wanted = self.jobs.wants_room.get() || is_other_due;
        let is_paced = self.keeps_pace() && self.jobs.is_collecting.get() && !is_wanted;
        let lacks = || self.slots_lacking(&table, under_way) > 0;
        if !is_paced || table.free() <= self.kept(&table) || lacks() {
            return true;
        }
        if self.jobs.credit.get() < self.jobs.lead {
            self.jobs.credit.set(self.jobs.lead);
            self.space_changed.notify_all();
        }
        false
    }

    /// Returns the slots by which the room is below the level that collection maintains. The room
    /// consists of the slots that can be written before another superblock must be freed: free
    /// superblocks, the rest of the open ones, the slots already gained from the superblock that is
    /// being collected, and those of `under_way`.
    pub(super) fn slots_lacking(&self, table: &Table, under_way: u64) -> u64 {
        let emptied = self.jobs.emptied.get();
        let leaving = table.in_state(State::Leaving) as u64 - u64::from(emptied.is_some());
        let whole = (u64::from(table.free()) + leaving) * u64::from(self.layout.data_slots());
        let of_open = self.slots_left(Stream::Host) + self.slots_left(Stream::Moved);
        let room = whole + of_open + u64::from(emptied.unwrap_or(0)) + under_way;
        let kept = self.reserve(table) + self.jobs.keeps_free;
        (u64::from(kept) * u64::from(self.layout.data_slots())).saturating_sub(room)
    }
}
