//! One trial: clients write and read at random, power fails at random instants, and after each
//! recovery and at every read the drive must agree with the model in `world`.

use std::cell::RefCell;
use std::rc::Rc;

use engine::Fault;
use runtime::{Nanos, Rng};
use stacks::kvssd::DriveOptions;
use testkit::trial::{Complaint, Kind, World};

use crate::answers::answer;
use crate::client::Client;
use crate::harness::{Comeback, Machine};
use crate::scanner::Scanner;
use crate::shape::{Cuts, Shape};
use crate::tally::Tally;

/// On a full drive a write may wait long, but not forever.
const GRACE: Nanos = Nanos::from_millis(3_000);
/// In a session of at least this length every client must progress.
const LONG: Nanos = Nanos::from_millis(200);

/// Runs a trial. Returns an error that describes the deviation of the drive from the model.
pub(crate) fn run_trial(
    seed: u64,
    shape: &Shape,
    fault: Option<Fault>,
) -> Result<Tally, Complaint> {
    let mut rng = Rng::derive(seed, "trial");
    let planted = fault.into();
    let options = DriveOptions { planted, ..shape.options() };
    let world = World::new(shape.keys, shape.names);
    world.expect_log_behind(shape.log_may_be_behind(), Nanos::ZERO);
    let mut trial = Trial { seed, shape, options, world, tally: Tally::default() };
    let mut machine = Machine::format(seed, &shape.device, trial.options.clone());
    for session in 0..shape.sessions {
        trial.run_session(&machine, session, &mut rng)?;
        machine = trial.lose_power(machine, session, &mut rng)?;
        trial.check(&machine, &mut rng)?;
    }
    check_all(&machine, &trial.world)?;
    trial.tally.commands = trial.world.commands();
    trial.tally.refused = trial.world.refused();
    trial.tally.expired = trial.world.expired();
    Ok(trial.tally)
}

struct Trial<'a> {
    seed: u64,
    shape: &'a Shape,
    options: DriveOptions,
    world: Rc<World>,
    tally: Tally,
}

impl Trial<'_> {
    /// Runs the clients for a while. They are still running when this returns.
    fn run_session(
        &mut self,
        machine: &Machine,
        session: usize,
        rng: &mut Rng,
    ) -> Result<(), Complaint> {
        let world = &self.world;
        start_clients(machine, world, self.shape, rng);
        let is_last = session + 1 == self.shape.sessions;
        let span = self.shape.cuts.span(is_last, rng);
        let start = machine.rt.handle().now();
        machine.rt.run_until(start + Nanos(span.0 / 2));
        let half_way = world.by_client();
        machine.rt.run_until(start + span);
        let has_hung = || {
            let now = world.by_client();
            half_way.iter().zip(&now).position(|(before, now)| before == now)
        };
        if span >= LONG {
            let end = start + span + Nanos(GRACE.0 * self.shape.slowness);
            machine.rt.run_until_true(|| has_hung().is_none() || machine.rt.handle().now() > end);
        }
        world.result()?;
        if span >= LONG
            && let Some(client) = has_hung()
        {
            let state = machine.drive.engine().background();
            let (now, steps) = (machine.rt.handle().now(), machine.rt.handle().steps());
            let text = format!(
                "client {client} hung in session {session}, from {start} to {now}, after {steps} steps: {state}"
            );
            return Err(Complaint::new(Kind::Hung, text));
        }
        self.tally.count(&machine.drive, machine.rt.handle().trace_hash());
        Ok(())
    }

    /// Cuts the power, and again during recovery if the drive is restless.
    fn lose_power(
        &mut self,
        machine: Machine,
        session: usize,
        rng: &mut Rng,
    ) -> Result<Machine, Complaint> {
        self.world.lose_power(machine.rt.handle().now());
        let off = machine.power_cut(rng);
        self.tally.count_cut(off.cut);
        let mut array = off.array;
        let mut seed = self.seed ^ ((session as u64 + 1) << 32);
        while self.shape.cuts == Cuts::Restless && rng.chance(0.3) {
            seed ^= rng.next_u64();
            let comeback = Comeback::begin(seed, &self.shape.device, self.options.clone(), array);
            let most = if rng.chance(0.5) { 20 } else { 400 };
            comeback.run_to(rng.below(most));
            let (again, cut) = comeback.power_cut(rng)?;
            self.tally.count_cut(cut);
            self.tally.cuts_of_recoveries += 1;
            array = again;
        }
        Machine::recover(seed, &self.shape.device, self.options.clone(), array)
    }

    /// Reads every key, or, if power fails again soon, sometimes only the keys whose state is open.
    fn check(&self, machine: &Machine, rng: &mut Rng) -> Result<(), Complaint> {
        match self.shape.cuts {
            Cuts::Seldom { .. } => check_all(machine, &self.world),
            Cuts::Restless if rng.chance(0.3) => {
                settle(machine, &self.world, self.world.unsettled())
            }
            Cuts::Restless => Ok(()),
        }
    }
}

/// Reads every key after a recovery, and notes the state found.
pub(crate) fn check_all(machine: &Machine, world: &Rc<World>) -> Result<(), Complaint> {
    settle(machine, world, (0..world.keys()).collect())?;
    let slots = machine.drive.engine().hash_stats().map_or(0, |stats| stats.keys);
    if slots > world.keys() as u64 {
        let text = format!("after recovery: {slots} slots for {} keys", world.keys());
        return Err(Complaint::new(Kind::Leak, text));
    }
    Ok(())
}

/// Reads keys after a recovery, and notes the states found.
fn settle(machine: &Machine, world: &Rc<World>, keys: Vec<usize>) -> Result<(), Complaint> {
    let (drive, reader) = (machine.drive.clone(), Rc::clone(world));
    machine.rt.block_on(async move {
        let mut answers = Vec::with_capacity(keys.len());
        for key in keys {
            let found = drive.retrieve(&reader.names.of(key), u32::MAX).await;
            answers.push((key, answer(found.map(|found| found.value))));
        }
        reader.settle(answers);
    });
    world.result()
}

pub(crate) fn start_clients(machine: &Machine, world: &Rc<World>, shape: &Shape, rng: &mut Rng) {
    let is_first = world.begin_session(shape.clients + shape.scanners);
    let longest_value = shape.longest_value.min(machine.drive.max_value_bytes());
    for client in 0..shape.clients {
        let context = Client {
            drive: machine.drive.clone(),
            handle: machine.rt.handle(),
            world: Rc::clone(world),
            rng: RefCell::new(Rng::new(rng.next_u64())),
            number: client,
            clients: shape.clients,
            usual_value: shape.usual_value,
            longest_value,
            is_filling: shape.is_filled && is_first,
            usual_sync: shape.engine.log_sync(),
            draws_sync: shape.draws_sync,
        };
        machine.rt.handle().spawn("client", async move { context.run().await });
    }
    for scanner in 0..shape.scanners {
        let scanner = Scanner {
            drive: machine.drive.clone(),
            handle: machine.rt.handle(),
            world: Rc::clone(world),
            rng: RefCell::new(Rng::new(rng.next_u64())),
            number: shape.clients + scanner,
        };
        machine.rt.handle().spawn("scanner", async move { scanner.run().await });
    }
}
