//! The internal job queue, and the choice of the next job: a plain function of the table and a few
//! facts.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use runtime::{Nanos, Notify, Semaphore};

use crate::nand::BlockAddress;
use crate::ssd::layout::Layout;
use crate::ssd::profile::SsdProfile;
use crate::ssd::table::{State, Table};

/// Free superblocks reserved for garbage collection: it needs one to free others.
pub(crate) const RESERVE: u32 = 2;

/// Superblocks that may be collected at a time: one is read while the copies of the other are
/// programmed. Not more than the reserve.
const LEAVING: usize = RESERVE as usize;

/// An internal job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Job {
    /// Move the valid slots of a superblock, and erase it.
    Collect(u32, Reason),
    /// Move the valid slots of one block; it is erased with its superblock.
    Reclaim(BlockAddress),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reason {
    Space,
    Wear,
    /// Mapping pages use more superblocks than are reserved for them.
    Mapping,
}

/// The internal job queue.
pub(super) struct Jobs {
    pub(super) reclaims: RefCell<VecDeque<BlockAddress>>,
    /// Whether space ran low and has not reached the upper threshold yet.
    pub(super) is_collecting: Cell<bool>,
    /// Slots that clients may fill while space is low: as many as collection is freeing.
    pub(super) credit: Cell<i64>,
    /// Slots that clients may fill before collection at their pace must follow: one program per
    /// die. Without this lead, client writes and collection would take turns.
    pub(super) lead: i64,
    /// Superblocks of room that collection at the pace of clients maintains, beyond the reserve.
    pub(super) keeps_free: u32,
    /// Slots already processed of the superblock that is being collected.
    pub(super) emptied: Cell<Option<u32>>,
    /// Write pacing: whether free superblocks are down to the number that collection keeps free, or
    /// hardly more.
    pub(super) is_space_low: Cell<bool>,
    /// Write pacing: interval between blocks, from the gain of the last collection, or from that of
    /// the next one if data were discarded since. 0 before the first collection.
    pub(super) pace: Cell<Nanos>,
    pub(super) leaving: Semaphore,
    /// Whether a lockdown waits for room for the buffer.
    pub(super) wants_room: Cell<bool>,
    pub(super) changed: Notify,
    /// Notified when a job has ended, or the conditions have changed: reads that are held back wait
    /// for it.
    pub(super) decided: Notify,
}

impl Jobs {
    /// Creates an empty queue. Clients may fill the slots of the lead.
    pub(super) fn new(profile: &SsdProfile, layout: &Layout) -> Self {
        let dies = profile.flash_of_set().geometry.dies();
        let lead = i64::from(dies * layout.slots_per_unit);
        let percent = profile.background.start_free_percent;
        Self {
            reclaims: RefCell::default(),
            is_collecting: Cell::new(false),
            credit: Cell::new(lead),
            lead,
            keeps_free: profile.superblocks_kept(layout, percent),
            emptied: Cell::new(None),
            is_space_low: Cell::new(false),
            pace: Cell::new(Nanos::ZERO),
            leaving: Semaphore::new(LEAVING),
            wants_room: Cell::new(false),
            changed: Notify::default(),
            decided: Notify::default(),
        }
    }

    /// Notes that there may be a job to do.
    pub(super) fn wake(&self) {
        self.changed.notify_all();
    }

    /// Queues the read reclaim of a block, unless it is queued already.
    pub(super) fn ask_for_reclaim(&self, block: BlockAddress) {
        let mut reclaims = self.reclaims.borrow_mut();
        if !reclaims.contains(&block) {
            reclaims.push_back(block);
            self.wake();
        }
    }
}

/// State of the room for the buffer, for which a lockdown may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Room {
    /// No lockdown waits for it.
    NotWanted,
    /// There is enough.
    There,
    /// Not enough, but collection in progress may free more.
    MayCome,
    /// Not enough.
    Lacking,
}

/// Inputs of a decision, besides the table.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact by itself")]
pub(super) struct Facts {
    /// Whether the window permits jobs.
    pub may_run: bool,
    /// A block that was read so often that its data must move now.
    pub in_danger: Option<BlockAddress>,
    /// A block that was read often: its data will be in danger.
    pub read_often: Option<BlockAddress>,
    /// Room for the buffer.
    pub room: Room,
    /// Free superblocks that clients may not use.
    pub reserve: u32,
    /// Free superblocks at or below which clients or mapping pages wait.
    pub kept: u32,
    /// Superblocks that mapping pages may use.
    pub mapping_superblocks: u32,
    /// Whether the mapping is far behind with the changes for moved blocks.
    pub owes_much: bool,
    /// Whether collection has begun and has not reached its upper threshold yet.
    pub is_collecting: bool,
    /// Whether collection at the pace of clients would wait for them: the room it maintains exists.
    pub waits_for_clients: bool,
    /// Most valid slots of a superblock that is worth collecting: its other slots hold at least one
    /// unit.
    pub most_valid: u32,
    /// Share of free superblocks, in percent, at which collection begins.
    pub start_free_percent: f64,
    /// Share of free superblocks, in percent, at which collection ends.
    pub stop_free_percent: f64,
    /// Erases by which a superblock may lag behind the most worn one.
    pub wear_spread: u32,
}

/// The next job, and the state after the decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Decision {
    pub job: Option<Job>,
    /// Whether a lockdown continues to wait for room. If no more room can be made, it proceeds
    /// without.
    pub wants_room: bool,
    /// New value of [`Facts::is_collecting`].
    pub is_collecting: bool,
}

/// Returns whether free superblocks are down to the number that collection keeps free plus one that
/// is about to be opened.
pub(super) fn is_space_low(table: &Table, facts: &Facts) -> bool {
    free_soon(table) < mark(table, facts, facts.start_free_percent) + 1.0
}

/// Returns the superblocks that are free or being collected. If those being collected did not
/// count, a collection that is slowed by client reads would start further ones, with victims that
/// hold more valid slots.
fn free_soon(table: &Table) -> f64 {
    f64::from(table.free()) + table.in_state(State::Leaving) as f64
}

/// Returns the reserve plus `percent` of all superblocks.
fn mark(table: &Table, facts: &Facts, percent: f64) -> f64 {
    f64::from(facts.reserve) + f64::from(table.count()) * percent / 100.0
}

/// Returns whether a lockdown waits for room. While it does, reads of data in danger wait, and such
/// data move only after room was made: if reads endangered data as fast as they can be moved, there
/// would never be room.
pub(super) fn lacks_room(room: Room) -> bool {
    matches!(room, Room::MayCome | Room::Lacking)
}

/// Chooses the next job, in this order: data in danger, unless a lockdown waits for room; mapping
/// pages over their share; space for which clients or a lockdown wait; data that are or will be in
/// danger; wear, if collection would only wait for clients; space; wear.
pub(super) fn decide(table: &Table, facts: &Facts) -> Decision {
    let as_it_is = Decision {
        job: None,
        wants_room: facts.room != Room::NotWanted,
        is_collecting: facts.is_collecting,
    };
    if !facts.may_run {
        return as_it_is;
    }
    let emptiest = |is_mapping, reason| {
        let victim = table.greediest(is_mapping)?;
        let gains = table.valid_slots(victim) <= facts.most_valid;
        gains.then_some(Job::Collect(victim, reason))
    };
    let of_mapping = || emptiest(true, Reason::Mapping);
    let victim = || emptiest(false, Reason::Space).or_else(of_mapping);
    // Collection for waiting clients may take long, and needs only one free superblock.
    let lacks_room = lacks_room(facts.room);
    if let Some(block) = facts.in_danger.filter(|_| table.free() >= RESERVE && !lacks_room) {
        return Decision { job: Some(Job::Reclaim(block)), ..as_it_is };
    }
    if table.mapping_that_stay() > facts.mapping_superblocks
        && let Some(job) = of_mapping()
    {
        return Decision { job: Some(job), ..as_it_is };
    }
    if (table.free() <= facts.kept || lacks_room)
        && let Some(job) = victim()
    {
        return Decision { job: Some(job), ..as_it_is };
    }
    // If no room can be made, and none is on its way, the lockdown proceeds without.
    let wants_room = facts.room == Room::MayCome;
    if let Some(block) = facts.in_danger.or(facts.read_often) {
        return Decision { job: Some(Job::Reclaim(block)), wants_room, ..as_it_is };
    }
    let laggard = || {
        let superblock = table.laggard(facts.wear_spread).filter(|_| table.free() > facts.kept)?;
        Some(Job::Collect(superblock, Reason::Wear))
    };
    if facts.waits_for_clients
        && let Some(job) = laggard()
    {
        return Decision { job: Some(job), wants_room, ..as_it_is };
    }
    let to_be_free = free_soon(table);
    let is_below = |percent: f64| to_be_free < mark(table, facts, percent);
    let goes_on = facts.is_collecting && is_below(facts.stop_free_percent);
    let may_collect = is_below(facts.start_free_percent) || goes_on;
    if let Some(job) = victim().filter(|_| may_collect) {
        // Moves wait for the mapping to catch up, except those for which a client waits for space.
        let job = Some(job).filter(|_| !facts.owes_much);
        return Decision { job, wants_room, is_collecting: true };
    }
    Decision { job: laggard(), wants_room, is_collecting: false }
}

#[cfg(test)]
mod tests {
    use crate::nand::Geometry;

    use super::*;
    use crate::ssd::layout::Slot;

    /// Creates a table of ten superblocks. The first ones are full, with the given numbers of valid
    /// slots.
    fn table(valid: &[u32]) -> Table {
        let layout = Layout::new(&Geometry {
            channels: 1,
            dies_per_channel: 2,
            planes_per_die: 1,
            blocks_per_plane: 10,
            pages_per_block: 12,
            page_bytes: 4_096,
            spare_bytes: 64,
            transfer_bytes: 4_096,
            one_shot: true,
            bits_per_cell: 3,
        });
        let mut table = Table::new(&layout, 0, None);
        for count in valid {
            let superblock = table.open().expect("one is free");
            let first = layout.first(superblock).0;
            (first..first + count).for_each(|slot| table.add_valid(Slot(slot)));
            table.close(superblock);
        }
        table
    }

    /// Facts that call for no job.
    fn facts() -> Facts {
        Facts {
            may_run: true,
            in_danger: None,
            read_often: None,
            room: Room::NotWanted,
            reserve: RESERVE,
            kept: RESERVE,
            mapping_superblocks: 0,
            owes_much: false,
            is_collecting: false,
            waits_for_clients: false,
            most_valid: 18,
            start_free_percent: 20.0,
            stop_free_percent: 40.0,
            wear_spread: 3,
        }
    }

    const DANGER: Option<BlockAddress> = Some(BlockAddress(7));
    const EMPTIEST: Option<Job> = Some(Job::Collect(1, Reason::Space));

    fn of(job: Option<Job>, wants_room: bool, is_collecting: bool) -> Decision {
        Decision { job, wants_room, is_collecting }
    }

    #[test]
    fn collecting_begins_at_one_mark_and_ends_at_the_other() {
        let (at_ease, middle, low) =
            (table(&[9, 2, 5]), table(&[9, 2, 5, 9, 9]), table(&[9, 2, 5, 9, 9, 9, 9]));
        let collecting = Facts { is_collecting: true, ..facts() };
        for (table, facts, expected) in [
            (&at_ease, facts(), of(None, false, false)),
            (&middle, facts(), of(None, false, false)),
            (&low, facts(), of(EMPTIEST, false, true)),
            (&middle, collecting.clone(), of(EMPTIEST, false, true)),
            (&at_ease, collecting.clone(), of(None, false, false)),
            // No superblock would gain space.
            (&table(&[19; 7]), collecting.clone(), of(None, false, false)),
            (&low, Facts { may_run: false, ..collecting }, of(None, false, true)),
        ] {
            assert_eq!(decide(table, &facts), expected, "{} free, {facts:?}", table.free());
        }
    }

    #[test]
    fn what_is_on_its_way_out_counts_as_free() {
        let mut low = table(&[9, 2, 5, 9, 9, 9, 9]);
        assert_eq!(decide(&low, &facts()), of(EMPTIEST, false, true));
        low.begin_leaving(1);
        assert_eq!(decide(&low, &facts()), of(None, false, false), "one more will be enough");
        let collecting = Facts { is_collecting: true, ..facts() };
        let next = Some(Job::Collect(2, Reason::Space));
        assert_eq!(decide(&low, &collecting), of(next, false, true), "not at the other mark yet");
        let mut full = table(&[9, 2, 5, 9, 9, 9, 9, 9]);
        full.begin_leaving(1);
        assert_eq!(
            decide(&full, &facts()),
            of(next, false, false),
            "clients wait for what is free"
        );
    }

    #[test]
    fn data_in_danger_go_first_and_what_may_wait_behind_those_who_wait_for_space() {
        let (low, full) = (table(&[9, 2, 5, 9, 9, 9, 9, 9]), table(&[9, 2, 5, 9, 9, 9, 9, 9, 9]));
        let in_danger = Facts { in_danger: DANGER, read_often: DANGER, ..facts() };
        let read_often = Facts { read_often: DANGER, ..facts() };
        let reclaim = DANGER.map(Job::Reclaim);
        assert_eq!(decide(&low, &in_danger).job, reclaim);
        assert_eq!(decide(&low, &read_often).job, EMPTIEST, "clients wait");
        let lacking = Facts { room: Room::Lacking, ..in_danger.clone() };
        assert_eq!(decide(&table(&[9, 2, 5]), &lacking), of(EMPTIEST, true, false));
        let in_vain = Facts { most_valid: 1, ..lacking };
        assert_eq!(decide(&table(&[9, 2, 5]), &in_vain), of(reclaim, false, false));
        assert_eq!(decide(&table(&[9, 2, 5, 9, 9, 9]), &read_often).job, reclaim);
        assert_eq!(decide(&full, &in_danger).job, EMPTIEST, "one is needed to collect another");
    }

    #[test]
    fn room_for_the_buffer_is_made_as_long_as_some_can_be() {
        let [lacking, coming, there] =
            [Room::Lacking, Room::MayCome, Room::There].map(|room| Facts { room, ..facts() });
        assert_eq!(decide(&table(&[9, 2]), &lacking), of(EMPTIEST, true, false));
        assert_eq!(decide(&table(&[20]), &coming), of(None, true, false));
        assert_eq!(decide(&table(&[20]), &lacking), of(None, false, false), "so be it");
        assert_eq!(decide(&table(&[9, 2]), &there), of(None, false, false));
    }

    #[test]
    fn what_lags_behind_in_wear_is_moved_when_there_is_nothing_else() {
        let mut worn = table(&[9, 9]);
        worn.set_erases(0, 10);
        worn.set_erases(1, 6);
        let laggard = Some(Job::Collect(1, Reason::Wear));
        assert_eq!(decide(&worn, &facts()).job, laggard);
        assert_eq!(decide(&worn, &Facts { wear_spread: 4, ..facts() }).job, None);
        // Space comes before wear, unless collection would only wait for clients.
        let mut low = table(&[9, 2, 5, 9, 9, 9, 9]);
        low.set_erases(0, 10);
        let collecting = Facts { is_collecting: true, ..facts() };
        assert_eq!(decide(&low, &collecting), of(EMPTIEST, false, true));
        let waiting = Facts { waits_for_clients: true, ..collecting };
        assert_eq!(decide(&low, &waiting), of(laggard, false, true));
    }

    #[test]
    fn mapping_pages_beyond_their_share_are_collected_and_nobody_else_pays_for_them() {
        let mut low = table(&[9, 2, 5, 4, 9, 9, 9]);
        for superblock in [1, 3] {
            low.is_for_mapping(superblock);
        }
        let shared = Facts { mapping_superblocks: 2, ..facts() };
        let of_clients = Some(Job::Collect(2, Reason::Space));
        assert_eq!(decide(&low, &shared).job, of_clients, "mapping pages have their share");
        let over = Facts { mapping_superblocks: 1, ..facts() };
        assert_eq!(decide(&low, &over).job, Some(Job::Collect(1, Reason::Mapping)));
        low.begin_leaving(1);
        assert_eq!(decide(&low, &over).job, None, "one less, and one more is about to be free");
        let dense = Facts { most_valid: 4, kept: 3, ..shared };
        let of_mapping = Some(Job::Collect(3, Reason::Mapping));
        assert_eq!(decide(&low, &dense).job, of_mapping, "nothing else would gain");
    }

    #[test]
    fn collection_waits_for_the_mapping_unless_somebody_waits_for_space() {
        let low = table(&[9, 2, 5, 9, 9, 9, 9]);
        let owing = Facts { owes_much: true, ..facts() };
        assert_eq!(decide(&low, &owing), of(None, false, true));
        assert_eq!(decide(&low, &Facts { kept: 3, ..owing }).job, EMPTIEST);
    }
}
