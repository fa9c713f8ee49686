//! Crash points enumerated: power fails at every device operation of a short run, and at every
//! device operation of the recovery that follows.

use engine::Durability;
use flash::Flash;
use kvssd::KvDrive;
use runtime::{Nanos, Rng, Runtime};

use kvssd::DriveOptions;

use crate::harness::{Machine, small_options};
use crate::names::Names;
use crate::shape::Shape;
use crate::trial::{check_all, start_clients};
use crate::world::World;

const SESSION: Nanos = Nanos::from_millis(30);
/// Where each write waits for a program.
const LONG_SESSION: Nanos = Nanos::from_millis(90);

/// Few keys and a short run, but on a full memtable every few commands.
fn shape_of(shape: Shape) -> Shape {
    Shape { keys: 160, is_filled: false, scanners: 0, ..shape }
}

fn options_of(shape: &Shape) -> DriveOptions {
    DriveOptions { engine: shape.engine.clone(), ..small_options() }
}

/// Runs the scenario until the flash has been given `operations` operations; `None` if it never
/// is within the session.
fn run_to(shape: &Shape, operations: u64) -> Option<(Machine, std::rc::Rc<World>)> {
    let machine = Machine::format(11, &shape.device, options_of(shape));
    let world = World::new(shape.keys, Names::Usual);
    start_clients(&machine, &world, shape, &mut Rng::new(12));
    let (flash, handle) = (machine.drive.flash().clone(), machine.rt.handle());
    let end = match shape.engine.durability() {
        Durability::Capacitors => SESSION,
        Durability::Log => LONG_SESSION,
    };
    machine.rt.run_until_true(|| flash.submitted() >= operations || handle.now() > end);
    (flash.submitted() >= operations).then_some((machine, world))
}

#[test]
fn power_may_fail_at_any_device_operation() {
    cut_at_every_operation(&shape_of(Shape::of_seed(0)));
}

#[test]
fn power_may_fail_at_any_device_operation_of_the_hash_design() {
    cut_at_every_operation(&shape_of(Shape::of_hash_seed(0)));
}

#[test]
fn power_may_fail_at_any_device_operation_of_a_drive_without_capacitors() {
    cut_at_every_operation(&shape_of(Shape::of_log_seed(0)));
}

#[test]
fn power_may_fail_again_at_any_point_of_a_recovery_without_capacitors() {
    cut_in_every_recovery(&shape_of(Shape::of_log_seed(0)));
}

fn cut_at_every_operation(shape: &Shape) {
    let mut points = 0;
    for operations in 1.. {
        let Some((machine, world)) = run_to(shape, operations) else { break };
        world.lose_power(machine.rt.handle().now());
        let off = machine.power_cut(&mut Rng::new(operations));
        let machine = Machine::recover(operations, &shape.device, options_of(shape), off.array);
        check_all(&machine, &world)
            .unwrap_or_else(|error| panic!("power cut at device operation {operations}: {error}"));
        points = operations;
    }
    assert!(points > 200, "the run is too short to mean anything: {points} operations");
    println!("{points} crash points");
}

#[test]
fn power_may_fail_again_at_any_point_of_a_recovery() {
    cut_in_every_recovery(&shape_of(Shape::of_seed(0)));
}

#[test]
fn power_may_fail_again_at_any_point_of_a_recovery_of_the_hash_design() {
    cut_in_every_recovery(&shape_of(Shape::of_hash_seed(0)));
}

fn cut_in_every_recovery(shape: &Shape) {
    let mut points = 0;
    for operations in 1.. {
        let (machine, world) = run_to(shape, 150).expect("the run is long enough");
        world.lose_power(machine.rt.handle().now());
        let off = machine.power_cut(&mut Rng::new(5));
        let rt = Runtime::new(6);
        let (handle, device, options) = (rt.handle(), shape.device.clone(), options_of(shape));
        let flash = Flash::new(handle.clone(), &device.flash, off.array);
        let watched = flash.clone();
        let recovering = handle.clone().spawn("recovery", async move {
            KvDrive::recover(&handle, &device, options, flash).await.map(|_| ())
        });
        rt.run_until_true(|| recovering.is_finished() || watched.submitted() >= operations);
        if recovering.is_finished() {
            break;
        }
        let (array, _) = watched.power_cut(&mut Rng::new(operations));
        drop(rt);
        let machine = Machine::recover(7, &shape.device, options_of(shape), array);
        check_all(&machine, &world)
            .unwrap_or_else(|error| panic!("second cut at operation {operations}: {error}"));
        points = operations;
    }
    assert!(points > 20, "a recovery has more operations than {points}");
    println!("{points} crash points in recovery");
}
