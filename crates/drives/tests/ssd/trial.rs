//! One trial: clients write and read at random, power fails at random instants, and after each
//! recovery and at every read the drive must agree with the model in `world`.

use std::cell::RefCell;
use std::rc::Rc;

use drives::ssd::specimens::shape::Shape;
use drives::ssd::{Fault, SsdImage};
use runtime::{Nanos, Rng};

use crate::client::{Client, Kind};
use crate::harness::{ClientIo, Comeback, Machine, planted, set_id};
use crate::tally::Tally;
use crate::world::{UnderWay, World};

/// A command that takes longer has hung. The limit is long because a window may wait for many
/// operations of one die, each of which is delayed by up to 5 ms.
const GRACE: Nanos = Nanos::from_millis(8_000);
/// An unused drive comes to rest within this span: a large buffer of a drive with one die is
/// emptied by one program every 100 ms.
const REST: Nanos = Nanos::from_millis(60_000);
/// A drive without activity for this long has come to rest.
const STILL: Nanos = Nanos::from_millis(250);

/// Runs a trial. Returns an error that describes the deviation of the drive from the model.
pub(crate) fn run_trial(seed: u64, shape: &Shape, fault: Option<Fault>) -> Result<Tally, String> {
    let mut rng = Rng::derive(seed, "trial");
    let has_capacitors = shape.profile.buffer.has_capacitors;
    let world = World::new(shape.sets(), shape.blocks(), has_capacitors);
    let mut trial = Trial { shape, fault, world, tally: Tally::default(), seed, rng: rng.clone() };
    let mut machine = Machine::format(seed, &shape.profile, shape.precondition, planted(fault));
    for _ in 0..shape.sessions {
        trial.run_session(&machine, &mut rng)?;
        if rng.chance(0.3) {
            trial.end_cleanly(&machine)?;
            if rng.chance(0.3) {
                // No power cut.
                continue;
            }
        }
        trial.count(&machine);
        let (image, cut) = machine.power_cut(&mut rng);
        trial.tally.count_cut(cut);
        trial.world.power_cut();
        machine = trial.power_up(image, &mut rng);
        if rng.chance(0.7) {
            trial.check_all(&machine)?;
        }
    }
    trial.check_all(&machine)?;
    trial.count(&machine);
    trial.tally.commands = trial.world.commands.get();
    Ok(trial.tally)
}

struct Trial<'a> {
    shape: &'a Shape,
    fault: Option<Fault>,
    world: Rc<World>,
    tally: Tally,
    seed: u64,
    rng: Rng,
}

impl Trial<'_> {
    /// Runs the clients for a while. They are still running when this returns.
    fn run_session(&mut self, machine: &Machine, rng: &mut Rng) -> Result<(), String> {
        start_clients(machine, &self.world, self.shape, rng);
        let longest = if rng.chance(0.2) { Nanos::from_millis(6) } else { self.shape.session };
        let span = Nanos(rng.below(longest.0));
        let end = machine.now() + span;
        machine.rt.run_until(end);
        self.world.result()?;
        // Commands in flight since the first half of the session get the grace period now.
        let half_way = Nanos(end.0 - span.0 / 2);
        let is_late = |world: &World| world.longest().filter(|(_, one)| one.since < half_way);
        let world = &self.world;
        machine.rt.run_until_true(|| is_late(world).is_none() || machine.now() > end + GRACE);
        world.result()?;
        is_late(world).map_or(Ok(()), |late| Err(self.hung(machine, late)))
    }

    fn hung(&self, machine: &Machine, (client, one): (usize, UnderWay)) -> String {
        let now = machine.now();
        let UnderWay { command, since, .. } = one;
        let state: Vec<_> = (0..self.shape.sets())
            .map(|set| machine.ssd.report(set_id(set)).expect("it is there"))
            .map(|report| (report.free_superblocks, report.superblocks, report.firmware))
            .collect();
        format!("client {client} hangs in {command:?} since {since}, now {now}: {state:?}")
    }

    /// Stops the clients, and waits until the drive comes to rest.
    fn end_cleanly(&mut self, machine: &Machine) -> Result<(), String> {
        self.tally.clean_ends += 1;
        let (world, end) = (&self.world, machine.now() + GRACE);
        world.is_over.set(true);
        world.is_quiet.iter().for_each(|quiet| quiet.set(false));
        machine.rt.run_until_true(|| world.longest().is_none() || machine.now() > end);
        if let Some(late) = world.longest() {
            return Err(self.hung(machine, late));
        }
        let operations = || -> u64 {
            let of_set = |set| machine.ssd.flash(set_id(set)).expect("it is there").submitted();
            (0..self.shape.sets()).map(of_set).sum()
        };
        let end = machine.now() + REST;
        loop {
            let before = operations();
            machine.rt.run_until(machine.now() + STILL);
            if operations() == before {
                break;
            }
            if machine.now() > end {
                return Err(format!("the drive does not come to rest: {:?}", self.tally));
            }
        }
        world.result()
    }

    /// Powers up, possibly with further power cuts during recovery.
    fn power_up(&mut self, mut image: SsdImage, rng: &mut Rng) -> Machine {
        let profile = &self.shape.profile;
        while rng.chance(0.3) {
            let seed = self.rng.next_u64();
            let comeback = Comeback::begin(seed, profile, image, planted(self.fault));
            let most = if rng.chance(0.5) { 20 } else { 2_000 };
            comeback.run_to(rng.below(most));
            let (again, cut) = comeback.power_cut(rng);
            self.tally.count_cut(cut);
            self.tally.cuts_of_recoveries += 1;
            image = again;
        }
        let seed = self.seed ^ self.rng.next_u64();
        Machine::recover(seed, profile, image, planted(self.fault))
    }

    /// Reads every block.
    fn check_all(&self, machine: &Machine) -> Result<(), String> {
        for set in 0..self.shape.sets() {
            check_set(machine, &self.world, set, self.shape.blocks());
        }
        self.world.result()
    }

    /// Adds the work of the drive since power-up.
    fn count(&mut self, machine: &Machine) {
        for set in 0..self.shape.sets() {
            let report = machine.ssd.report(set_id(set)).expect("it is there");
            assert_eq!(report.firmware.blocks_lost, 0, "nothing was damaged");
            self.tally.count(&report);
        }
        self.tally.trace ^= machine.rt.handle().trace_hash();
    }
}

/// Reads every block of a set.
pub(crate) fn check_set(machine: &Machine, world: &Rc<World>, set: u16, blocks: u64) {
    let (ssd, reader) = (machine.ssd.clone(), Rc::clone(world));
    machine.rt.block_on(async move {
        for first in (0..blocks).step_by(32) {
            let count = 32.min(blocks - first) as u32;
            let began = reader.now();
            match ssd.client_read(set_id(set), first, count).await {
                Ok(found) => reader.check(set, first, began, &found, "after recovery"),
                Err(error) => reader.complain(format!("after recovery: {error}")),
            }
        }
    });
}

/// Starts the clients of a session.
pub(crate) fn start_clients(machine: &Machine, world: &Rc<World>, shape: &Shape, rng: &mut Rng) {
    let kinds: Vec<Kind> =
        [(Kind::Mixed, shape.mixed), (Kind::Reader, shape.readers), (Kind::Hammer, shape.hammers)]
            .into_iter()
            .flat_map(|(kind, count)| std::iter::repeat_n(kind, count))
            .collect();
    world.begin_session(usize::from(shape.sets()) * (kinds.len() + 1), rng.next_u64());
    let mut number = 0;
    for set in 0..shape.sets() {
        let mut client = || {
            number += 1;
            Client {
                ssd: machine.ssd.submission_queue((number % 3) as u16),
                handle: machine.rt.handle(),
                world: Rc::clone(world),
                rng: RefCell::new(Rng::new(rng.next_u64())),
                number: number - 1,
                set,
                blocks: shape.blocks(),
            }
        };
        for kind in &kinds {
            machine.rt.handle().spawn("client", client().run(*kind));
        }
        let has_windows = shape.profile.plm.is_some();
        machine.rt.handle().spawn("window client", client().run_windows(has_windows));
    }
}
