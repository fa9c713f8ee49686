//! One trial: clients write and read at random, power fails at random instants, and sets fail.
//! After each recovery and at each read the store must agree with the model.
//!
//! Without redundancy, damage cannot be repaired and is therefore the last event: afterwards errors
//! are correct, wrong bytes are not. A power cut after the damage may lose acknowledged writes,
//! because a damaged end of the journal looks like a torn one. The values found then must be values
//! that the keys had at some time.

use std::cell::Cell;
use std::rc::Rc;

use engine::{MediumError, OpenError};
use runtime::{Nanos, Rng};
use stacks::host::JournalPlace;
use testkit::trial::{Answer, Complaint, Kind, World};
use volume::windows::Overflow;

use crate::client::Clients;
use crate::fault::Fault;
use crate::harm::{Harm, damage};
use crate::machine::{Machine, Opening};
use crate::rack::RackImage;
use crate::shape::Shape;
use crate::store::of_error;
use crate::tally::{Tally, narrate};

/// Length of the last session.
const LAST: Nanos = Nanos::from_millis(150);
/// Maximum time of a write. On a full store a write may wait long, but not forever.
const GRACE: Nanos = Nanos::from_millis(30_000);

/// Runs the trial of a seed.
///
/// # Errors
/// Returns the store's error.
pub fn run_trial(seed: u64, shape: Shape, fault: Option<Fault>) -> Result<Tally, Complaint> {
    let mut rng = Rng::derive(seed, "trial");
    let world = World::new(shape.load.keys, shape.load.names);
    world.expect_log_behind(shape.log_may_be_behind(), shape.log_behind_per_kib());
    let mut trial = Trial {
        seed,
        shape: Rc::new(shape),
        fault,
        world,
        harm: Harm::default(),
        may_fail: Rc::default(),
        tally: Tally::default(),
    };
    narrate(format_args!("{:?}\n{:?}", trial.shape.index, trial.shape.windows));
    let mut machine = Machine::format(seed, &trial.shape, fault);
    for session in 0..trial.shape.sessions {
        trial.run_session(&mut machine, session, &mut rng)?;
        let Some(opened) = trial.lose_power(machine, session, &mut rng)? else { break };
        machine = opened;
        trial.check(&machine)?;
    }
    let Trial { world, mut tally, .. } = trial;
    tally.commands = world.commands();
    tally.refused = world.refused();
    tally.expired = world.expired();
    Ok(tally)
}

struct Trial {
    seed: u64,
    shape: Rc<Shape>,
    fault: Option<Fault>,
    world: Rc<World>,
    harm: Harm,
    may_fail: Rc<Cell<bool>>,
    tally: Tally,
}

impl Trial {
    fn clients(&self, machine: &Machine) -> Clients {
        Clients {
            store: machine.store.clone(),
            handle: machine.rt.handle(),
            world: Rc::clone(&self.world),
            load: Rc::new(self.shape.load.clone()),
            usual_sync: self.shape.usual_sync(),
            may_fail: Rc::clone(&self.may_fail),
        }
    }

    /// Runs the clients for a while. They are still running when this function returns.
    fn run_session(
        &mut self,
        machine: &mut Machine,
        session: u32,
        rng: &mut Rng,
    ) -> Result<(), Complaint> {
        self.clients(machine).start(rng);
        // Stripes torn by a power cut are not completed, so only the first session begins with
        // whole sets.
        let mut is_whole = session == 0;
        let is_last = session + 1 == self.shape.sessions;
        let span = if is_last { LAST } else { Nanos(1 + rng.below(self.shape.session.0)) };
        let parts = 1 + rng.below(4);
        let mut half_way = Vec::new();
        for part in 0..parts {
            if part == parts / 2 {
                half_way = self.world.by_client();
            }
            let now = machine.rt.handle().now();
            machine.rt.run_until(now + Nanos(span.0 / parts));
            self.world.result()?;
            self.check_windows(machine, is_whole)?;
            if self.shape.has_windows_of_drives() && rng.chance(0.5) {
                let set = rng.below(self.shape.data_sets().into()) as usize;
                machine.rack.leave_window(&machine.rt.handle(), set);
                self.tally.left_windows += 1;
            }
            if rng.chance(0.5) {
                self.strike(machine, is_last, rng);
                is_whole &= self.harm.victim().is_none();
            }
        }
        if is_last {
            self.check_progress(machine, &half_way)?;
            self.read_on(machine)?;
        }
        self.tally.count(machine);
        let volume = machine.store.volume().map(|volume| (volume.stats(), volume.failed_members()));
        narrate(format_args!("session {session}, {}: {volume:?}", machine.rt.handle().now()));
        Ok(())
    }

    /// Checks the window rules: no write ended in a deterministic window, unless the overflow
    /// policy allows it. If all sets are whole, no client read a set outside its deterministic
    /// window.
    fn check_windows(&self, machine: &Machine, is_whole: bool) -> Result<(), Complaint> {
        let windows = self.shape.windows.zip(machine.store.volume());
        let Some((options, volume)) = windows else { return Ok(()) };
        let stats = volume.window_stats().expect("windows last as long as the store");
        let waits = options.overflow == Overflow::Wait;
        let broken = if waits && stats.writes_in_dtwin > 0 {
            format!("{} writes ended in DTWIN", stats.writes_in_dtwin)
        } else if is_whole && stats.busy_reads > 0 {
            format!("{} reads went to busy sets", stats.busy_reads)
        } else {
            return Ok(());
        };
        Err(Complaint::new(Kind::Window, broken))
    }

    /// Checks that each client makes progress.
    fn check_progress(&self, machine: &Machine, before: &[u64]) -> Result<(), Complaint> {
        let has_hung = || {
            let now = self.world.by_client();
            before.iter().zip(&now).position(|(before, now)| before == now)
        };
        let handle = machine.rt.handle();
        let end = handle.now() + GRACE;
        machine.rt.run_until_true(|| has_hung().is_none() || handle.now() > end);
        self.world.result()?;
        has_hung().map_or(Ok(()), |client| {
            let text = format!("client {client} hung: {}", machine.store.background());
            Err(Complaint::new(Kind::Hung, text))
        })
    }

    /// Reads all keys while clients run.
    fn read_on(&self, machine: &Machine) -> Result<(), Complaint> {
        let (clients, world) = (self.clients(machine), Rc::clone(&self.world));
        let may_fail = self.may_fail.get();
        machine.rt.block_on(async move {
            for key in 0..world.keys() {
                let from = world.acknowledged(key);
                match clients.store.get(&world.names.of(key)).await {
                    Ok(found) => world.check(key, from, found.as_ref(), "at the end"),
                    Err(error) if !may_fail => world.complain_of(of_error(&error, "at the end")),
                    Err(_) => {}
                }
            }
        });
        self.world.result()
    }

    fn strike(&mut self, machine: &mut Machine, is_last: bool, rng: &mut Rng) {
        if self.shape.is_redundant() {
            self.harm.strike(machine, &self.shape, self.fault, &mut self.tally, rng);
        } else if is_last {
            let set = rng.below(self.shape.storage.drive.sets.into()) as usize;
            damage(&machine.rack, set, &self.shape, &mut self.tally, rng);
            self.may_fail.set(true);
        }
    }

    /// Cuts power, also during some recoveries, and opens the store. Returns `None` if the store
    /// cannot be opened and damage explains that.
    fn lose_power(
        &mut self,
        machine: Machine,
        session: u32,
        rng: &mut Rng,
    ) -> Result<Option<Machine>, Complaint> {
        self.world.lose_power(machine.rt.handle().now());
        let mut image = machine.power_cut(rng);
        self.harm.strike_unpowered(&mut image, &mut self.tally, rng);
        let mut seed = self.seed ^ ((u64::from(session) + 1) << 32);
        while rng.chance(0.4) {
            seed ^= rng.next_u64();
            let opening = Opening::begin(seed, &self.shape, image, self.fault);
            let most = 1 << rng.below(12);
            self.tally.cuts_of_openings += u64::from(opening.run_to(rng.below(most)));
            narrate(format_args!("power fails while the store is being opened"));
            image = opening.power_cut(rng);
        }
        self.open(image, seed, rng)
    }

    fn open(
        &mut self,
        image: RackImage,
        seed: u64,
        rng: &mut Rng,
    ) -> Result<Option<Machine>, Complaint> {
        let opening = Opening::begin(seed, &self.shape, image, self.fault);
        let (error, mut image) = match opening.finish(rng) {
            Ok(machine) => return Ok(Some(machine)),
            Err(failed) => failed,
        };
        if self.may_fail.get() {
            self.tally.unopened_damaged += 1;
            return Ok(None);
        }
        // A store with its journal beside its data may need information that only the missing set
        // has, and then cannot open (docs/todo.md).
        let is_beside = self.shape.storage.journal == JournalPlace::Beside;
        let is_gone = error == OpenError::Medium(MediumError::Gone);
        if is_beside && is_gone && self.harm.victim().is_some() {
            self.tally.unopened_gone += 1;
            let is_back = self.harm.come_back(&mut image, &mut self.tally);
            return if is_back { self.open(image, seed + 1, rng) } else { Ok(None) };
        }
        Err(Complaint::new(Kind::Unopened, format!("{error}")))
    }

    /// Reads all keys after a recovery and fixes their values in the model.
    fn check(&self, machine: &Machine) -> Result<(), Complaint> {
        let (clients, world) = (self.clients(machine), Rc::clone(&self.world));
        let may_fail = self.may_fail.get();
        machine.rt.block_on(async move {
            let mut answers: Vec<(usize, Answer)> = Vec::with_capacity(world.keys());
            for key in 0..world.keys() {
                let found = clients.store.get(&world.names.of(key)).await;
                answers.push((key, found.map_err(|error| of_error(&error, "read"))));
            }
            if may_fail {
                for (key, answer) in answers {
                    if let Ok(found) = answer {
                        world.check(key, 0, found.as_ref(), "after recovery and damage");
                    }
                }
            } else {
                world.settle(answers);
                clients.check_order("in order, after recovery").await;
            }
        });
        self.world.result()
    }
}
