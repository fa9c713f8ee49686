//! Injected failures of sets, and the operator's response. With redundancy only one set fails at a
//! time: the next failure waits until all sets are whole.

use runtime::Rng;

use crate::fault::Fault;
use crate::machine::Machine;
use crate::rack::{Rack, RackImage, Rot};
use crate::shape::Shape;
use crate::tally::{Tally, narrate};

/// The state of the failing set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Victim {
    /// No set is failing.
    None,
    /// The set came back, or is a fresh replacement: it is being rebuilt.
    Filling(usize),
    /// The set answers no command. Its contents were correct when it went away.
    Away(usize),
    /// Some contents are wrong or unreadable, or the set refuses writes.
    Damaged(usize),
}

/// The injected failures of a trial.
pub(crate) struct Harm {
    victim: Victim,
}

impl Default for Harm {
    fn default() -> Self {
        Self { victim: Victim::None }
    }
}

impl Harm {
    /// Returns the failing set.
    pub(crate) fn victim(&self) -> Option<usize> {
        match self.victim {
            Victim::None => None,
            Victim::Filling(set) | Victim::Away(set) | Victim::Damaged(set) => Some(set),
        }
    }

    /// Injects a random failure into a set of a volume with redundancy, replaces the set, or does
    /// nothing.
    pub(crate) fn strike(
        &mut self,
        machine: &mut Machine,
        shape: &Shape,
        fault: Option<Fault>,
        tally: &mut Tally,
        rng: &mut Rng,
    ) {
        self.look(machine, tally);
        // The journal's own set is spared, because it has no redundancy.
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

    /// Clears the failing set once it is rebuilt.
    fn look(&mut self, machine: &Machine, tally: &mut Tally) {
        if let Victim::Filling(set) = self.victim
            && !lacking(machine).contains(&set)
        {
            self.victim = Victim::None;
            tally.filled += 1;
        }
    }

    /// Injects failures while power is off: the missing set comes back, or flash cells change.
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

    /// Brings the missing set back with the contents it had when it went away. Returns false if no
    /// set is missing.
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

/// Whether all sets except `set` are complete.
fn others_are_whole(machine: &Machine, set: usize, sets: usize) -> bool {
    let lacking = lacking(machine);
    (0..sets).all(|other| other == set || !lacking.contains(&other))
}

/// Returns the sets that are lost or lack some writes.
fn lacking(machine: &Machine) -> Vec<usize> {
    let volume = machine.store.volume().expect("there is redundancy");
    [volume.failed_members(), volume.members_behind()].concat()
}

/// Damages random blocks of a set, or makes it lose writes.
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

/// Flips bits in random flash pages. Returns the number of changed pages.
fn flip_cells(cells: &mut drives::nand::NandArray, rng: &mut Rng) -> u64 {
    let geometry = cells.geometry();
    let pages = geometry.dies() * geometry.blocks_per_die() * geometry.pages_per_die_block();
    let tries = 1 + rng.below(60);
    let mut flip = |_: &u64| {
        let page = drives::nand::PageAddress(rng.below(pages.into()) as u32);
        cells.flip_bit(page, rng.next_u64())
    };
    (0..tries).filter(|at| flip(at)).count() as u64
}
