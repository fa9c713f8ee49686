//! Random histories on a medium with minimal guarantees: many power cuts, during runs and openings,
//! each of which leaves of a page any version since the last synced one; discards may be forgotten;
//! with redundancy, writes are lost.
//!
//! `LEVELHEAD_SEED=N cargo test -p engine --test store wild_cuts` replays one history;
//! `LEVELHEAD_TRIALS` and `LEVELHEAD_FIRST` set the number of histories and the first seed.

mod batches;
mod medium;
mod model;

use std::cell::RefCell;
use std::rc::Rc;

use batches::Batches;
use engine::{
    Durability, Engine, EngineError, LogSync, OpenError, Options, Planted, Setup, Shape, StoreId,
    Surroundings, Value, WriteOptions,
};
use medium::{Cells, Discards, Wild};
use model::{Model, number_of, value};
use runtime::{Nanos, Rng, Runtime};
use testkit::fuzz::from_environment;

use crate::setup::cpu;

/// The parameters of a trial.
#[derive(Clone, Debug)]
struct Case {
    shape: Shape,
    options: Options,
    index_dram_bytes: u64,
    key_bytes: usize,
    keys: u64,
    longest_value: u64,
    clients: u64,
    cuts: u64,
    /// The latest time of a power failure in a run, in nanoseconds.
    longest_run: u64,
    /// Whether each write chooses how it is acknowledged.
    has_any_sync: bool,
}

fn pick<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize]
}

impl Case {
    fn draw(rng: &mut Rng) -> Self {
        let append_unit = pick(rng, &[1, 1, 2, 3, 4]);
        let pages_per_extent = append_unit * (6 + rng.below(28) as u32);
        let inline_up_to = pick(rng, &[0, 0, 128]);
        Self {
            shape: Shape {
                payload_bytes: 1072,
                page_bytes: 1024,
                pages_per_extent,
                extents: 60 + rng.below(120) as u32 + 2000 / pages_per_extent,
                grows_to: 0,
                append_unit,
                parallelism: 1 + rng.below(4) as u32,
            },
            options: Options {
                memtable_bytes: pick(rng, &[2 << 10, 4 << 10, 8 << 10]),
                frozen_memtables: pick(rng, &[1, 2]),
                inline_up_to,
                group_pages: if inline_up_to > 0 { pick(rng, &[0, 3, 4]) } else { 0 },
                pinned_levels: pick(rng, &[None, Some(0), Some(2)]),
                durability: Durability::Log,
                ..Options::pink()
            },
            index_dram_bytes: pick(rng, &[16 << 10, 32 << 10, 64 << 10, 128 << 10]),
            key_bytes: pick(rng, &[8, 8, 30, 200]),
            keys: 20 + rng.below(300),
            longest_value: pick(rng, &[60, 300, 1500, 4000]),
            clients: 1 + rng.below(5),
            cuts: 3 + rng.below(12),
            longest_run: pick(rng, &[8_000_000, 200_000_000]),
            has_any_sync: rng.chance(0.3),
        }
    }

    fn name(&self, key: u64) -> Vec<u8> {
        let mut name = key.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().to_vec();
        name.resize(self.key_bytes, b'k');
        name
    }

    fn setup(&self, rt: &Runtime, medium: Wild) -> Setup<Wild> {
        Setup {
            handle: rt.handle(),
            medium,
            options: self.options.clone(),
            surroundings: Surroundings {
                index_dram_bytes: self.index_dram_bytes,
                iterator_dram_bytes: 0,
                expected_key_bytes: self.key_bytes as u32,
                expected_value_bytes: 200,
            },
            cpu: cpu(rt),
            accelerator: None,
            planted: Planted::default(),
            id: StoreId(7),
        }
    }

    fn any_sync(&self, rng: &mut Rng) -> Option<LogSync> {
        let all = [LogSync::None, LogSync::Interval, LogSync::Each, LogSync::Group];
        (self.has_any_sync && rng.chance(0.8)).then(|| pick(rng, &all))
    }
}

/// A trial across power cuts.
struct Trial {
    seed: u64,
    case: Rc<Case>,
    cells: Cells,
    model: Rc<RefCell<Model>>,
    /// Another client that writes batches, if there is one.
    batches: Option<Rc<Batches>>,
    rng: Rng,
}

type Complaint = String;

impl Trial {
    fn new(seed: u64, is_redundant: bool) -> Self {
        let mut rng = Rng::derive(seed, "wild cuts");
        let mut case = Case::draw(&mut rng);
        case.options.leaves_room = !seed.is_multiple_of(2);
        let discards = pick(&mut rng, &[Discards::Kept, Discards::Forgotten, Discards::Forgotten]);
        let cells = Cells::new(case.shape, discards, rng.chance(0.4), is_redundant);
        Self { seed, case: Rc::new(case), cells, model: Rc::default(), batches: None, rng }
    }

    fn with_batches(self) -> Self {
        Self { batches: Some(Rc::default()), ..self }
    }

    /// Runs the trial. Returns the number of power cuts; `None` if the store does not fit.
    fn run(mut self) -> Result<Option<u64>, Complaint> {
        for session in 0..=self.case.cuts {
            let rt = Runtime::new(self.seed + session);
            let medium = Wild::new(&rt, &self.cells, self.seed ^ session << 40);
            let setup = self.case.setup(&rt, medium);
            let engine = if session == 0 {
                let Ok(engine) = Engine::create(setup) else { return Ok(None) };
                Some(engine)
            } else {
                let opened = self.open(&rt, setup, session < self.case.cuts);
                opened.map_err(|error| format!("opening {session}: {error}"))?
            };
            if let Some(engine) = engine {
                if session > 0 {
                    let check = self.model.borrow_mut().settle(&rt, &engine, &self.case);
                    check.map_err(|complaint| format!("behind opening {session}: {complaint}"))?;
                    if let Some(batches) = &self.batches {
                        let check = rt.block_on(Rc::clone(batches).check(engine.clone()));
                        check.map_err(|text| format!("behind opening {session}: {text}"))?;
                    }
                }
                self.live(&rt, &engine, session);
                self.model
                    .borrow_mut()
                    .result()
                    .map_err(|text| format!("run {session}: {text}"))?;
            }
            drop(rt);
            self.cells.cut(&mut self.rng);
        }
        Ok(Some(self.case.cuts))
    }

    /// Opens the store. Returns `None` if power fails during the opening.
    fn open(
        &mut self,
        rt: &Runtime,
        setup: Setup<Wild>,
        may_fail: bool,
    ) -> Result<Option<Engine<Wild>>, OpenError> {
        let opened = Rc::new(RefCell::new(None));
        let result = Rc::clone(&opened);
        rt.handle().spawn("opening", async move {
            let engine = Engine::open(setup).await;
            *result.borrow_mut() = Some(engine);
        });
        if may_fail && self.rng.chance(0.4) {
            let most = pick(&mut self.rng, &[1_500_000, 6_000_000]);
            rt.run_until(Nanos(self.rng.below(most)));
        } else {
            rt.run_until_true(|| opened.borrow().is_some());
        }
        opened.take().transpose()
    }

    /// Runs the clients until power fails.
    fn live(&mut self, rt: &Runtime, engine: &Engine<Wild>, session: u64) {
        for number in 0..self.case.clients {
            let client = Client {
                number,
                engine: engine.clone(),
                case: Rc::clone(&self.case),
                model: Rc::clone(&self.model),
                rng: Rng::derive(self.seed ^ session << 20 ^ number, "client"),
            };
            rt.handle().spawn("client", client.work());
        }
        if let Some(batches) = &self.batches {
            let (rng, case) =
                (Rng::derive(self.seed ^ session << 20, "batches"), Rc::clone(&self.case));
            let (engine, model) = (engine.clone(), Rc::clone(&self.model));
            rt.handle().spawn("batches", Rc::clone(batches).write(engine, case, model, rng));
        }
        let run = 1 + self.rng.below(self.case.longest_run);
        rt.run_until(rt.handle().now() + Nanos(run));
        if self.cells.is_redundant && self.rng.chance(0.7) {
            let share = pick(&mut self.rng, &[0.02, 0.2, 0.6]);
            self.cells.lose_writes(share, &mut self.rng);
            rt.run_until(rt.handle().now() + Nanos(1 + self.rng.below(4_000_000)));
        }
    }
}

/// A client with its own keys.
struct Client {
    number: u64,
    engine: Engine<Wild>,
    case: Rc<Case>,
    model: Rc<RefCell<Model>>,
    rng: Rng,
}

impl Client {
    /// Writes and checks until an error occurs or the store is full.
    async fn work(mut self) {
        loop {
            let own = self.rng.below(self.case.keys) / self.case.clients;
            let key = own * self.case.clients + self.number;
            let done =
                if self.rng.chance(0.2) { self.get(key).await } else { self.write(key).await };
            match done {
                Ok(()) => {}
                Err(EngineError::Full(_)) => return,
                Err(error) => {
                    self.model.borrow_mut().complain(format!("key {key}: {error}"));
                    return;
                }
            }
        }
    }

    async fn get(&self, key: u64) -> Result<(), EngineError> {
        let found = self.engine.get(&self.case.name(key), Nanos::ZERO).await?;
        self.model.borrow_mut().check_newest(key, number_of(found.value));
        Ok(())
    }

    async fn write(&mut self, key: u64) -> Result<(), EngineError> {
        let sync = self.case.any_sync(&mut self.rng);
        let options = WriteOptions { sync, ..WriteOptions::default() };
        let (name, is_put) = (self.case.name(key), self.rng.chance(0.85));
        let number = self.model.borrow_mut().ask(key, is_put);
        if is_put {
            let most = u64::from(self.engine.max_value_bytes() - 8);
            let value: Value = value(number, self.rng.below(self.case.longest_value.min(most)));
            self.engine.put(&name, value, options, Nanos::ZERO).await?;
        } else {
            self.engine.delete(&name, options, Nanos::ZERO).await?;
        }
        if !matches!(sync, Some(LogSync::None | LogSync::Interval)) {
            self.model.borrow_mut().is_durable(key, number);
        }
        Ok(())
    }
}

fn agree(test: &str, is_redundant: bool, has_batches: bool) {
    let first = from_environment("LEVELHEAD_FIRST").unwrap_or(0);
    let trials = from_environment("LEVELHEAD_TRIALS").unwrap_or(20);
    let one = from_environment("LEVELHEAD_SEED");
    let (mut cuts, mut unfit) = (0, 0);
    for seed in one.map_or(first..first + trials, |seed| seed..seed + 1) {
        let trial = Trial::new(seed, is_redundant);
        match if has_batches { trial.with_batches() } else { trial }.run() {
            Ok(Some(number)) => cuts += number,
            Ok(None) => unfit += 1,
            Err(text) => panic!(
                "seed {seed}: {text}\nreplay: LEVELHEAD_SEED={seed} cargo test -p engine --test store {test}"
            ),
        }
    }
    println!("{cuts} cuts, {unfit} stores did not fit");
    assert!(one.is_some() || cuts > trials, "hardly any power cuts");
}

#[test]
fn nothing_is_lost_in_wild_cuts() {
    agree("nothing_is_lost_in_wild_cuts", false, false);
}

#[test]
fn lost_writes_are_healed_in_wild_cuts() {
    agree("lost_writes_are_healed_in_wild_cuts", true, false);
}

#[test]
fn batches_are_whole_in_wild_cuts() {
    agree("batches_are_whole_in_wild_cuts", false, true);
}
