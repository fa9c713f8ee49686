//! Crash point enumeration: power fails at each command that a host submits to its drives in a
//! short run, and at each command of the subsequent recovery. The store uses tables, and is on a
//! drive of one set or on a volume with parity, each also with the journal on a set of its own.
//!
//! With windows ([`cut_in_slots`]), power also fails while a member is in each part of its slot. In
//! some of these cuts a data set is lost: the set whose slot it was, or another.
//!
//! By default every 40th point is tested. `LEVELHEAD_EVERY=1` tests all points; `LEVELHEAD_OFFSET`
//! shifts the first point.

use std::rc::Rc;

use drives::ssd::{PlmProfile, PlmRules};
use engine::{Durability, Filters, Granularity, IteratorOptions, LogSync, Options, TableOptions};
use runtime::{Nanos, Rng};
use stacks::host::{Arrangement, JournalPlace, Storage};
use testkit::fuzz::from_environment;
use testkit::trial::{Answer, Names, World};
use volume::windows::slot::{Rules, SlotPolicy};
use volume::windows::{Keeper, Overflow, State, WindowOptions};

use crate::client::Clients;
use crate::machine::{Machine, Opening};
use crate::rack::RackImage;
use crate::shape::{Load, Shape};
use crate::store::of_error;

/// Commands of the run before the recovery that is cut.
const BEFORE_OPENING: u64 = 900;
/// Commands of a run within which power fails.
const COMMANDS: u64 = 2_000;

/// Maximum time until each member has had a slot.
const LONGEST_ROTATION: Nanos = Nanos::from_millis(2_000);

/// Windows that the host keeps by itself.
const RULES: Rules = Rules {
    max_dtwin: Nanos::from_millis(60),
    min_ndwin: Nanos::from_millis(1),
    lockdown: Nanos::from_micros(20),
};

/// Returns drive windows with a thousandth of Vigil-KV's times.
fn windows_of_drives() -> PlmProfile {
    PlmProfile {
        rules: PlmRules::Vigil,
        dtwin_time_max_ms: 200,
        ndwin_time_min_low_ms: 4,
        ndwin_time_min_high_ms: 4,
        dtwin_reads_typical: 0,
        dtwin_writes_typical: 0,
    }
}

/// The component that keeps windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeptBy {
    /// The host, on drives without windows.
    Host,
    /// The drives.
    Drive,
}

/// A short run that is cut off.
pub struct Scenario {
    name: String,
    shape: Rc<Shape>,
}

impl Scenario {
    /// Creates the scenario of a store on an arrangement of sets, on drives with or without
    /// capacitors.
    pub fn new(arrangement: Arrangement, journal: JournalPlace, has_capacitors: bool) -> Self {
        let mut shape = Shape::of(1, arrangement, journal);
        shape.index = Options {
            levels: 3,
            memtable_bytes: 16 << 10,
            inline_up_to: 240,
            filters: Filters::Bits(10),
            compaction: Granularity::Leveled,
            durability: Durability::Log,
            log_sync: LogSync::Group,
            tables: TableOptions {
                table_bytes: 64 << 10,
                level_base_bytes: 128 << 10,
                level_multiplier: 3.0,
                l0_compaction_trigger: 2,
                l0_slowdown_trigger: 6,
                l0_stop_trigger: 9,
                max_compaction_bytes: 1 << 20,
                ..TableOptions::default()
            },
            page_cache_bytes: 64 << 10,
            iterators: IteratorOptions {
                buffer_bytes: 64 << 10,
                readahead_bytes: 32 << 10,
                ..IteratorOptions::default()
            },
            ..Options::rocksdb()
        }
        .into();
        let Storage { drive, host, .. } = &mut shape.storage;
        drive.buffer.has_capacitors = has_capacitors;
        host.files.page_bytes = 4_096;
        host.files.extent_bytes = 64 << 10;
        host.memory.index_bytes = 1 << 20;
        shape.load = Load {
            keys: 160,
            names: Names::Usual,
            usual_value: 400,
            longest_value: 4_000,
            clients: 8,
            scanners: 0,
            draws_sync: true,
        };
        shape.usual_sizes(30, 400);
        let (layout, place) = (arrangement.name(), journal.name());
        let name = format!("{layout}, journal {place}, capacitors: {has_capacitors}");
        Self { name, shape: Rc::new(shape) }
    }

    /// Creates the scenario of a store with parity, and with windows on the data sets.
    pub fn with_windows(keeper: KeptBy, slots: SlotPolicy, has_capacitors: bool) -> Self {
        let scenario = Self::new(Arrangement::Parity, JournalPlace::OwnSet, has_capacitors);
        let mut shape = Rc::into_inner(scenario.shape).expect("nobody else has it");
        shape.storage.drive.plm = (keeper == KeptBy::Drive).then(windows_of_drives);
        let is_constant = matches!(slots, SlotPolicy::Constant(_));
        shape.windows = Some(WindowOptions {
            keeper: match keeper {
                KeptBy::Host => Keeper::Host(RULES),
                KeptBy::Drive => Keeper::Device,
            },
            slots,
            cache_bytes: 100 * u64::from(shape.storage.host.files.page_bytes),
            overflow: if is_constant { Overflow::Write } else { Overflow::Wait },
            pauses: !is_constant,
            ..WindowOptions::O_VIGIL
        });
        let name = format!("{}, windows kept by the {keeper:?}, slots {slots:?}", scenario.name);
        Self { name, shape: Rc::new(shape) }
    }

    /// Runs until the drives have received `commands` commands, then cuts power.
    fn run_to(&self, commands: u64) -> (RackImage, Rc<World>) {
        let (machine, world) = self.running_to(commands);
        world.lose_power(machine.rt.handle().now());
        (machine.power_cut(&mut Rng::new(commands)), world)
    }

    /// Does the same, and continues until a member is in the given part of its slot. Also returns
    /// that member.
    fn run_to_state(&self, commands: u64, state: State) -> Option<(RackImage, Rc<World>, usize)> {
        let (machine, world) = self.running_to(commands);
        let volume = machine.store.volume().expect("windows are a volume's").clone();
        let of_slot = || volume.window_states().iter().position(|of_member| *of_member == state);
        let handle = machine.rt.handle();
        let end = handle.now() + LONGEST_ROTATION;
        machine.rt.run_until_true(|| of_slot().is_some() || handle.now() > end);
        let member = of_slot()?;
        world.lose_power(handle.now());
        Some((machine.power_cut(&mut Rng::new(commands)), world, member))
    }

    fn running_to(&self, commands: u64) -> (Machine, Rc<World>) {
        let shape = &self.shape;
        let machine = Machine::format(11, shape, None);
        let world = World::new(shape.load.keys, shape.load.names);
        world.expect_log_behind(shape.log_may_be_behind(), shape.log_behind_per_kib());
        self.clients(&machine, &world).start(&mut Rng::new(12));
        let handle = machine.rt.handle();
        let is_there = || machine.rack.submitted() >= commands;
        machine.rt.run_until_true(|| is_there() || handle.now() > Nanos::from_millis(10_000));
        assert!(is_there(), "{}: the run is too short", self.name);
        (machine, world)
    }

    fn clients(&self, machine: &Machine, world: &Rc<World>) -> Clients {
        Clients {
            store: machine.store.clone(),
            handle: machine.rt.handle(),
            world: Rc::clone(world),
            load: Rc::new(self.shape.load.clone()),
            usual_sync: self.shape.usual_sync(),
            may_fail: Rc::default(),
        }
    }

    /// Opens the store after the cut and reads all pairs.
    fn check(&self, image: RackImage, world: &Rc<World>, command: u64, where_: &str) {
        let when = format!("{}: power cut at command {command} of the {where_}", self.name);
        let opening = Opening::begin(command, &self.shape, image, None);
        let machine = opening.finish(&mut Rng::new(1));
        let machine = machine.unwrap_or_else(|(error, _)| panic!("{when}: {error}"));
        let (clients, reader) = (self.clients(&machine, world), Rc::clone(world));
        machine.rt.block_on(async move {
            let mut answers: Vec<(usize, Answer)> = Vec::with_capacity(reader.keys());
            for key in 0..reader.keys() {
                let found = clients.store.get(&reader.names.of(key)).await;
                answers.push((key, found.map_err(|error| of_error(&error, "read"))));
            }
            reader.settle(answers);
            clients.check_order("in order").await;
        });
        world.result().unwrap_or_else(|complaint| panic!("{when}: {complaint}"));
    }
}

/// Returns the numbers of the commands to cut at.
fn points() -> impl Iterator<Item = u64> {
    let every = from_environment("LEVELHEAD_EVERY").unwrap_or(40).max(1);
    let offset = from_environment("LEVELHEAD_OFFSET").unwrap_or(0) % every;
    (1 + offset..).step_by(every as usize)
}

/// Cuts power at points of the run, and of the recovery that follows.
///
/// # Panics
/// Panics if the store then disagrees with the model.
pub fn cut_everywhere(scenario: &Scenario) {
    for command in points().take_while(|command| *command <= COMMANDS) {
        let (image, world) = scenario.run_to(command);
        scenario.check(image, &world, command, "run");
    }
    let mut last = 0;
    for command in points() {
        let (image, world) = scenario.run_to(BEFORE_OPENING);
        let opening = Opening::begin(6, &scenario.shape, image, None);
        if !opening.run_to(command) {
            break;
        }
        scenario.check(opening.power_cut(&mut Rng::new(command)), &world, command, "opening");
        last = command;
    }
    assert!(last > 16, "{}: an opening has more commands than {last}", scenario.name);
    println!("{}: crash points to {COMMANDS} in the run, to {last} in the opening", scenario.name);
}

/// Cuts power while a member is in each part of its slot, at points of the run. Repeats each cut
/// with a set lost at the cut: the member itself, and another member.
///
/// # Panics
/// Panics if the store then disagrees with the model, or if no member was ever in a part of a slot
/// that takes time.
pub fn cut_in_slots(scenario: &Scenario) {
    let sets = scenario.shape.data_sets() as usize;
    for state in [State::Udt, State::And, State::Und, State::Lockdown] {
        let mut cuts = 0;
        for command in points().step_by(4).take_while(|command| *command <= COMMANDS) {
            let cut = || scenario.run_to_state(command, state);
            let Some((image, world, member)) = cut() else { continue };
            scenario.check(image, &world, command, &format!("run and on to {state:?}"));
            for set in [member, (member + 1) % sets] {
                let (mut image, world, _) = cut().expect("it goes the same way");
                image.harm(set, |ailment| ailment.is_away = true);
                let where_ = format!("run and on to {state:?}, set {set} lost");
                scenario.check(image, &world, command, &where_);
            }
            cuts += 1;
        }
        let name = &scenario.name;
        println!("{name}: {cuts} cuts in {state:?}, and twice as many with a set lost");
        // In these states, a host that keeps windows by itself waits only for reads in progress, of
        // which there may be none.
        let is_moment = matches!(state, State::Udt | State::Lockdown);
        let lasts = scenario.shape.has_windows_of_drives() || !is_moment;
        assert!(cuts > 0 || !lasts, "{name}: no member was ever in {state:?}");
    }
}
