//! What sets suffer, and what an operator does about it. On layouts with redundancy one set at a time: the next
//! one only when all of them are whole.

use runtime::Rng;

use crate::fault::Fault;
use crate::machine::Machine;
use crate::rack::{Rack, RackImage, Rot};
use crate::shape::Shape;
use crate::tally::{Tally, narrate};

/// What has become of the set that suffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Victim {
    /// There is none.
    None,
    /// It was away and is back, or is a fresh one: it is being filled.
    Filling(usize),
    /// It answers nothing, but what it holds was right when it went.
    Away(usize),
    /// Some of what it holds is wrong or cannot be read, or it takes no writes.
    Damaged(usize),
}

/// What happens to sets in a trial.
pub(crate) struct Harm {
    victim: Victim,
}

impl Default for Harm {
    fn default() -> Self {
        Self { victim: Victim::None }
    }
}

impl Harm {
    /// The set that suffers.
    pub(crate) fn victim(&self) -> Option<usize> {
        match self.victim {
            Victim::None => None,
            Victim::Filling(set) | Victim::Away(set) | Victim::Damaged(set) => Some(set),
        }
    }

    /// Something happens to a set of a volume with redundancy, or not.
    pub(crate) fn strike(
        &mut self,
        machine: &mut Machine,
        shape: &Shape,
        fault: Option<Fault>,
        tally: &mut Tally,
        rng: &mut Rng,
    ) {
        self.look(machine, tally);
        // A journal's own set is left alone: nothing stands in for it.
        let sets = shape.data_sets() as usize;
        let set = self.victim().unwrap_or_else(|| rng.below(sets as u64) as usize);
        if !others_are_whole(machine, set, sets) {
            return;
        }
        let what = rng.below(6);
        narrate(format_args!("set {set}, so far {:?}: {what}", self.victim));
        match what {
            0 => {
                machine.rack.harm(set, |ailment| ailment.is_away = true);
                tally.lost_sets += 1;
                let is_damaged = matches!(self.victim, Victim::Damaged(_));
                self.victim = if is_damaged { self.victim } else { Victim::Away(set) };
            }
            1 => {
                machine.rack.harm(set, |ailment| ailment.is_read_only = true);
                tally.read_only_sets += 1;
                self.victim = Victim::Damaged(set);
            }
            2 | 3 => {
                damage(&machine.rack, set, shape, tally, rng);
                self.victim = Victim::Damaged(set);
            }
            4 if self.victim != Victim::None => {
                machine.replace(set, shape, fault);
                tally.replaced_sets += 1;
                self.victim = Victim::Filling(set);
            }
            _ => {}
        }
    }

    /// A set that was filled is as good as any.
    fn look(&mut self, machine: &Machine, tally: &mut Tally) {
        if let Victim::Filling(set) = self.victim
            && !lacking(machine).contains(&set)
        {
            self.victim = Victim::None;
            tally.filled += 1;
        }
    }

    /// What happens while there is no power: a set comes back, or cells forget.
    pub(crate) fn strike_unpowered(
        &mut self,
        image: &mut RackImage,
        tally: &mut Tally,
        rng: &mut Rng,
    ) {
        if let Victim::Away(set) = self.victim
            && rng.chance(0.5)
        {
            self.bring_back(set, image, tally);
        }
        let Victim::Damaged(set) = self.victim else { return };
        if rng.chance(0.2) {
            tally.rotten_cells += flip_cells(image.cells(set), rng);
        }
    }

    /// A set that is away comes back as it was when it went. False if there is none.
    pub(crate) fn come_back(&mut self, image: &mut RackImage, tally: &mut Tally) -> bool {
        let Victim::Away(set) = self.victim else { return false };
        self.bring_back(set, image, tally);
        true
    }

    fn bring_back(&mut self, set: usize, image: &mut RackImage, tally: &mut Tally) {
        narrate(format_args!("set {set} comes back"));
        image.harm(set, |ailment| ailment.is_away = false);
        tally.stale_sets += 1;
        self.victim = Victim::Filling(set);
    }
}

/// Whether all but one have what they should have.
fn others_are_whole(machine: &Machine, set: usize, sets: usize) -> bool {
    let lacking = lacking(machine);
    (0..sets).all(|other| other == set || !lacking.contains(&other))
}

/// Sets that are lost, or lack something that was written.
fn lacking(machine: &Machine) -> Vec<usize> {
    let volume = machine.store.volume().expect("there is redundancy");
    [volume.failed_members(), volume.members_behind()].concat()
}

/// Blocks of a set rot, or it loses writes.
pub(crate) fn damage(rack: &Rack, set: usize, shape: &Shape, tally: &mut Tally, rng: &mut Rng) {
    if rng.chance(0.3) {
        let writes = 1 + rng.below(4) as u32;
        rack.harm(set, |ailment| ailment.loses += writes);
        tally.lost_writes += u64::from(writes);
        return;
    }
    let blocks = shape.storage.drive.blocks_per_set();
    let count = if rng.chance(0.5) { 1 + rng.below(8) } else { rng.below(blocks) / 2 };
    for _ in 0..count {
        let block = rng.below(blocks);
        let bits = u64::from(block::BLOCK_BYTES) * 8;
        let rot =
            if rng.chance(0.5) { Rot::Unreadable } else { Rot::Flipped(rng.below(bits) as u32) };
        rack.harm(set, |ailment| ailment.rot.insert(block, rot));
    }
    tally.rotten_blocks += count;
}

/// Bits of some pages of flash are changed; how many pages.
fn flip_cells(cells: &mut flash::NandArray, rng: &mut Rng) -> u64 {
    let geometry = cells.geometry();
    let pages = geometry.dies() * geometry.blocks_per_die() * geometry.pages_per_die_block();
    let tries = 1 + rng.below(60);
    let mut flip = |_: &u64| {
        let page = flash::PageAddress(rng.below(pages.into()) as u32);
        cells.flip_bit(page, rng.next_u64())
    };
    (0..tries).filter(|at| flip(at)).count() as u64
}
