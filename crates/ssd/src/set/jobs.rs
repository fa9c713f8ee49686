//! The internal job queue, and which job is next: a plain function of the table and a few facts.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use flash::BlockAddress;
use runtime::{Nanos, Notify, Semaphore};

use crate::layout::Layout;
use crate::profile::SsdProfile;
use crate::table::{State, Table};

/// Free superblocks that are left to garbage collection: it needs one to make others free.
pub(crate) const RESERVE: u32 = 2;

/// Superblocks that may be on their way out at a time: one is read while the copies of the other
/// land. Not more than what is kept free for them.
const LEAVING: usize = RESERVE as usize;

/// What there is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Job {
    /// Move what is valid elsewhere and erase.
    Collect(u32, Reason),
    /// Move what is valid in one block elsewhere; it is erased with its superblock.
    Reclaim(BlockAddress),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reason {
    Space,
    Wear,
    /// Mapping pages have more superblocks than are kept for them.
    Mapping,
}

/// The internal job queue.
pub(super) struct Jobs {
    pub(super) reclaims: RefCell<VecDeque<BlockAddress>>,
    /// Space ran low and is not back at its mark yet.
    pub(super) is_collecting: Cell<bool>,
    /// Slots that clients may fill while space is low: as many as collecting is making free.
    pub(super) credit: Cell<i64>,
    /// Slots that clients may fill before collection that keeps pace with them has to follow: a
    /// program of each die. Without that, the two would take turns.
    pub(super) lead: i64,
    /// Superblocks of room that collection at the pace of clients keeps, beside the reserve.
    pub(super) keeps_free: u32,
    /// Slots of the superblock that is being emptied that have been seen to.
    pub(super) emptied: Cell<Option<u32>>,
    /// Write pacing: as many superblocks are free as collection keeps free, or hardly more.
    pub(super) is_space_low: Cell<bool>,
    /// Write pacing: how long after the one before the next block is due, by what the last collection gained, or what the next one
    /// gains if data were discarded since. 0 before the first.
    pub(super) pace: Cell<Nanos>,
    pub(super) leaving: Semaphore,
    /// A lockdown is to come, and what is in the buffer needs room.
    pub(super) wants_room: Cell<bool>,
    pub(super) changed: Notify,
    /// A job has ended, or what there is to do has changed: reads that are held back wait for that.
    pub(super) decided: Notify,
}

impl Jobs {
    /// Nothing is under way, and clients may fill the slots of the lead.
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

    /// There may be something to do.
    pub(super) fn wake(&self) {
        self.changed.notify_all();
    }

    /// Has the data of a block moved, once.
    pub(super) fn ask_for_reclaim(&self, block: BlockAddress) {
        let mut reclaims = self.reclaims.borrow_mut();
        if !reclaims.contains(&block) {
            reclaims.push_back(block);
            self.wake();
        }
    }
}

/// Room for what is in the buffer, for which a lockdown may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Room {
    /// Nobody waits for it.
    NotWanted,
    /// There is enough.
    There,
    /// There is not, but what is under way may make some.
    MayCome,
    /// There is not.
    Lacking,
}

/// What a decision goes by, besides the table.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact by itself")]
pub(super) struct Facts {
    /// The window lets jobs run.
    pub may_run: bool,
    /// A block that was read so often that its data cannot wait.
    pub in_danger: Option<BlockAddress>,
    /// A block that was read often: its data will be in danger.
    pub read_often: Option<BlockAddress>,
    /// Room for what is in the buffer.
    pub room: Room,
    /// Free superblocks that clients leave to others.
    pub reserve: u32,
    /// Those that somebody waits behind.
    pub kept: u32,
    /// Superblocks that mapping pages may have.
    pub mapping_superblocks: u32,
    /// The mapping is far behind what was moved.
    pub owes_much: bool,
    /// Collecting has begun, and not come to its mark yet.
    pub is_collecting: bool,
    /// Collecting at the pace of clients would wait for these: there is as much room as it keeps.
    pub waits_for_clients: bool,
    /// Slots that may be valid in a superblock which is worth collecting: without them a unit can be
    /// written.
    pub most_valid: u32,
    /// Share of free superblocks at which collecting begins.
    pub start_free_percent: f64,
    /// Share at which it ends.
    pub stop_free_percent: f64,
    /// Erases by which a superblock may lag behind the most worn.
    pub wear_spread: u32,
}

/// What is next, and how things stand then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Decision {
    pub job: Option<Job>,
    /// A lockdown goes on waiting for room. If no more can be made it goes on without.
    pub wants_room: bool,
    /// See [`Facts::is_collecting`].
    pub is_collecting: bool,
}

/// Whether no more is free than what collection keeps free, and a superblock that is about to be opened.
pub(super) fn is_space_low(table: &Table, facts: &Facts) -> bool {
    free_soon(table) < mark(table, facts, facts.start_free_percent) + 1.0
}

/// Superblocks that are free, or on their way out. Without these, collection that takes longer because clients read would
/// begin further ones meanwhile, whose victims hold more.
fn free_soon(table: &Table) -> f64 {
    f64::from(table.free()) + table.in_state(State::Leaving) as f64
}

/// So many free superblocks are a share of all, beside the reserve.
fn mark(table: &Table, facts: &Facts, percent: f64) -> f64 {
    f64::from(facts.reserve) + f64::from(table.count()) * percent / 100.0
}

/// Whether a lockdown waits for room. Data in danger are not read then, and move behind that: where reads bring them there as fast as they
/// can move, there would never be room.
pub(super) fn lacks_room(room: Room) -> bool {
    matches!(room, Room::MayCome | Room::Lacking)
}

/// What to do next: data in danger, unless a lockdown waits for room; space for those who wait for it, data that are or will be in
/// danger, space, wear.
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
    // Collecting for those who wait may go on for long, and needs one free superblock.
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
    // If it cannot be made, and nothing is on its way that could change that, so be it.
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
        // What is moved waits for the mapping; whoever waits for space does not.
        let job = Some(job).filter(|_| !facts.owes_much);
        return Decision { job, wants_room, is_collecting: true };
    }
    Decision { job: laggard(), wants_room, is_collecting: false }
}

#[cfg(test)]
mod tests {
    use flash::Geometry;

    use super::*;
    use crate::layout::Slot;

    /// A table of ten superblocks, of which the first ones are full, with so many valid slots each.
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

    /// Nothing is the matter.
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
            // Nothing could be gained.
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
        // Space goes before, but not if it would only wait for clients.
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
