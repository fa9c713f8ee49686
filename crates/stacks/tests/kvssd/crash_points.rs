//! Exhaustive crash points: power fails at every device operation of a short run, and at every
//! device operation of the recovery that follows; for every design, with each journal, on each kind
//! of flash.
//!
//! By default every 16th point is tried. `LEVELHEAD_EVERY=1` tries all, `LEVELHEAD_OFFSET` shifts
//! the start.

use std::rc::Rc;

use drives::nand::Flash;
use engine::{ColumnOptions, Durability, Filters, LogSync, Options};
use runtime::{IoClass, Nanos, Rng, Runtime};
use stacks::design::IndexOptions;
use stacks::kvssd::{DriveOptions, KvDrive};
use testkit::trial::{Names, World};

use crate::harness::{
    Comeback, Machine, for_hash, small_design, small_device, small_hash, small_options,
    small_tables, small_tlc_device,
};
use crate::model::number;
use crate::shape::Shape;
use crate::trial::{check_all, start_clients};

/// Device operations of a run before the power cut whose recovery is cut short.
const BEFORE_RECOVERY: u64 = 150;

/// A design with a journal, on a drive.
struct Scenario {
    name: String,
    shape: Shape,
    session: Nanos,
}

impl Scenario {
    fn new(name: &str, engine: IndexOptions, durability: Durability, is_tlc: bool) -> Self {
        let device = if is_tlc { small_tlc_device() } else { small_device() };
        let device = match &engine {
            IndexOptions::Lsm(_) => device,
            IndexOptions::Hash(_) => for_hash(device),
        };
        let (has_log, flash) = (durability == Durability::Log, if is_tlc { "TLC" } else { "MLC" });
        // Few keys and a short run, but a full memtable every few commands.
        let shape = Shape {
            device,
            engine: engine.with_journal(durability, LogSync::Group),
            keys: 160,
            is_filled: false,
            scanners: 0,
            draws_sync: is_tlc,
            ..Shape::of_seed(0)
        };
        // With a log each write waits for a program, and programs of TLC are slow.
        let session =
            Nanos::from_millis(30 * if has_log { 3 } else { 1 } * if is_tlc { 3 } else { 1 });
        Self { name: format!("{name}, {durability:?}, {flash}"), shape, session }
    }

    /// Returns a design with each journal on each kind of flash.
    fn all_of(name: &str, engine: &IndexOptions) -> Vec<Self> {
        let new = |durability, is_tlc| Self::new(name, engine.clone(), durability, is_tlc);
        let journals = match engine {
            IndexOptions::Lsm(_) => &[Durability::Capacitors, Durability::Log][..],
            IndexOptions::Hash(_) => &[Durability::Capacitors],
        };
        journals
            .iter()
            .flat_map(|journal| [false, true].map(|is_tlc| new(*journal, is_tlc)))
            .collect()
    }

    fn options(&self) -> DriveOptions {
        DriveOptions { engine: self.shape.engine.clone(), ..small_options() }
    }

    /// Runs until the flash has received `operations` operations; `None` if the session ends
    /// before.
    fn run_to(&self, operations: u64) -> Option<(Machine, Rc<World>)> {
        let machine = Machine::format(11, &self.shape.device, self.options());
        let world = World::new(self.shape.keys, Names::Usual);
        start_clients(&machine, &world, &self.shape, &mut Rng::new(12));
        let (flash, handle) = (machine.drive.flash().clone(), machine.rt.handle());
        let is_there = || flash.submitted() >= operations;
        machine.rt.run_until_true(|| is_there() || handle.now() > self.session);
        is_there().then_some((machine, world))
    }

    /// Powers up with the given cells and reads everything.
    fn check(
        &self,
        array: drives::nand::NandArray,
        world: &Rc<World>,
        operation: u64,
        where_: &str,
    ) {
        let Self { name, shape, .. } = self;
        Machine::recover(operation, &shape.device, self.options(), array)
            .and_then(|machine| check_all(&machine, world))
            .unwrap_or_else(|error| {
                panic!("{name}: power cut at operation {operation} of the {where_}: {error}")
            });
    }
}

/// Returns the crash points to try.
fn points() -> impl Iterator<Item = u64> {
    let every = number("LEVELHEAD_EVERY").unwrap_or(16).max(1);
    let offset = number("LEVELHEAD_OFFSET").unwrap_or(0) % every;
    (1 + offset..).step_by(every as usize)
}

/// Cuts the power at each crash point of a run, and checks that the drive recovers.
fn cut_at_operations(scenario: &Scenario) {
    let (mut tried, mut last) = (0, 0);
    for operation in points() {
        let Some((machine, world)) = scenario.run_to(operation) else { break };
        world.lose_power(machine.rt.handle().now());
        let off = machine.power_cut(&mut Rng::new(operation));
        scenario.check(off.array, &world, operation, "run");
        (tried, last) = (tried + 1, operation);
    }
    assert!(last > 200, "{}: the run is too short to mean anything: {last}", scenario.name);
    println!("{}: {tried} crash points to {last} in the run", scenario.name);
}

fn cut_in_recoveries(scenario: &Scenario) {
    let (mut tried, mut last) = (0, 0);
    for operation in points() {
        let (machine, world) = scenario.run_to(BEFORE_RECOVERY).expect("the run is long enough");
        world.lose_power(machine.rt.handle().now());
        let off = machine.power_cut(&mut Rng::new(5));
        let rt = Runtime::new(6);
        let (handle, device) = (rt.handle(), scenario.shape.device.clone());
        let flash = Flash::new(handle.clone(), &device.flash, off.array);
        let (watched, options) = (flash.clone(), scenario.options());
        let recovering = handle.clone().spawn("recovery", async move {
            KvDrive::recover(&handle, &device, options, flash).await.map(|_| ())
        });
        rt.run_until_true(|| recovering.is_finished() || watched.submitted() >= operation);
        if recovering.is_finished() {
            break;
        }
        let (array, _) = watched.power_cut(&mut Rng::new(operation));
        drop(rt);
        scenario.check(array, &world, operation, "recovery");
        (tried, last) = (tried + 1, operation);
    }
    assert!(last >= 16, "{}: a recovery has more operations than {last}", scenario.name);
    println!("{}: {tried} crash points to {last} in the recovery", scenario.name);
}

fn cut_everywhere(name: &str, engine: impl Into<IndexOptions>) {
    for scenario in Scenario::all_of(name, &engine.into()) {
        cut_at_operations(&scenario);
        cut_in_recoveries(&scenario);
    }
}

/// Regression: a checkpoint that power cuts interrupted again and again used up one extent after
/// another.
#[test]
fn power_may_fail_in_one_recovery_after_another() {
    for engine in [small_design(&Options::pink()).engine, small_hash().into()] {
        let scenario = Scenario::new("again and again", engine, Durability::Log, false);
        let (machine, world) = scenario.run_to(BEFORE_RECOVERY).expect("the run is long enough");
        world.lose_power(machine.rt.handle().now());
        let mut array = machine.power_cut(&mut Rng::new(5)).array;
        let programmed = |flash: &Flash| flash.stats().of(IoClass::Journal).pages_programmed;
        for again in 0..100 {
            let rng = &mut Rng::new(again);
            let (device, options) = (&scenario.shape.device, scenario.options());
            let comeback = Comeback::begin(again, device, options, array);
            let most = 1 + rng.below(3);
            comeback.run_until(|flash| programmed(flash) >= most);
            (array, _) = comeback.power_cut(rng).unwrap_or_else(|error| panic!("{again}: {error}"));
        }
        scenario.check(array, &world, 100, "recovery");
    }
}

#[test]
fn power_may_fail_at_any_device_operation_of_pink() {
    cut_everywhere("pink", small_design(&Options::pink()).engine);
}

#[test]
fn power_may_fail_at_any_device_operation_of_pink_hw() {
    cut_everywhere("pink-hw", small_design(&Options::pink_hw()).engine);
}

#[test]
fn power_may_fail_at_any_device_operation_of_lightstore() {
    cut_everywhere("lightstore", small_design(&Options::lightstore()).engine);
}

#[test]
fn power_may_fail_at_any_device_operation_of_columns() {
    let columns = ColumnOptions {
        entries: 40,
        growth: 2,
        address_bytes: 8,
        filter_bits: 10,
        iterators_read_filters: true,
    };
    let options =
        Options { columns: Some(columns), filters: Filters::None, ..Options::lightstore() };
    for mut scenario in Scenario::all_of("columns", &small_design(&options).engine) {
        // Merges reserve the space that each table may leave empty.
        scenario.shape.device.flash.geometry.blocks_per_plane *= 2;
        cut_at_operations(&scenario);
        cut_in_recoveries(&scenario);
    }
}

#[test]
fn power_may_fail_at_any_device_operation_of_tables() {
    let tables = small_design(&small_tables()).engine;
    for is_tlc in [false, true] {
        let mut scenario = Scenario::new("tables", tables.clone(), Durability::Log, is_tlc);
        // Tables use extents of their own.
        scenario.shape.device.flash.geometry.blocks_per_plane *= 2;
        cut_at_operations(&scenario);
        cut_in_recoveries(&scenario);
    }
}

#[test]
fn power_may_fail_at_any_device_operation_of_the_hash_table() {
    cut_everywhere("hash", small_hash());
}
