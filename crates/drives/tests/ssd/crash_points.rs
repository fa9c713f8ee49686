//! Exhaustive crash points: power fails at every flash operation of a short run, and at every one
//! of the recovery that follows.

use std::rc::Rc;

use drives::nand::{Geometry, Timing};
use drives::ssd::specimens::shape::{Shape, most_blocks, set_blocks};
use drives::ssd::specimens::small;
use drives::ssd::{Fault, PlmRules, Precondition, SsdProfile};
use runtime::{Nanos, Rng};

use crate::harness::{Comeback, Machine, planted, set_id};
use crate::trial::{check_set, start_clients};
use crate::world::World;

/// Returns a drive with two dies, superblocks of 21 blocks, and a buffer of two programs: full
/// within a few dozen commands.
fn tiny(has_capacitors: bool) -> SsdProfile {
    let mut profile = small::profile(1);
    profile.flash.geometry = Geometry {
        channels: 1,
        dies_per_channel: 2,
        planes_per_die: 1,
        blocks_per_plane: 14,
        pages_per_block: 12,
        page_bytes: 4_096,
        one_shot: true,
        bits_per_cell: 3,
        ..profile.flash.geometry
    };
    profile.flash.timing = Timing {
        program_us: vec![300.0],
        erase_us: 900.0,
        background_deadline_us: 200.0,
        ..profile.flash.timing
    };
    profile.flash.read_disturb = None;
    profile.buffer.bytes = 6 * 4_096;
    profile.buffer.has_capacitors = has_capacitors;
    profile.background.discarded_ranges = 60;
    let windows = profile.plm.as_mut().expect("it has windows");
    windows.rules = PlmRules::Standard;
    (windows.dtwin_time_max_ms, windows.ndwin_time_min_low_ms) = (10, 0);
    windows.dtwin_writes_typical = 1;
    let most = most_blocks(&profile);
    set_blocks(&mut profile, most);
    profile
}

fn shape(has_capacitors: bool, precondition: Precondition) -> Shape {
    Shape {
        profile: tiny(has_capacitors),
        precondition,
        mixed: 2,
        readers: 0,
        hammers: 0,
        sessions: 1,
        session: Nanos::from_millis(60),
    }
}

/// Runs until the flash has received `operations` operations; `None` if the run ends earlier.
fn run_to(shape: &Shape, seed: u64, operations: u64) -> Option<(Machine, Rc<World>)> {
    let machine = Machine::format(seed, &shape.profile, shape.precondition, planted(None));
    let has_capacitors = shape.profile.buffer.has_capacitors;
    let world = World::new(1, shape.blocks(), has_capacitors);
    start_clients(&machine, &world, shape, &mut Rng::new(seed));
    let (flash, end) = (machine.ssd.flash(set_id(0)).expect("it is there").clone(), shape.session);
    machine.rt.run_until_true(|| flash.submitted() >= operations || machine.now() > end);
    (flash.submitted() >= operations).then_some((machine, world))
}

fn check(shape: &Shape, machine: &Machine, world: &Rc<World>, when: &str) {
    check_set(machine, world, 0, shape.blocks());
    world.result().unwrap_or_else(|error| panic!("{when}: {error}"));
}

/// Asserts that the run covers the mechanisms it is for.
fn assert_everything_happens(shape: &Shape) {
    let (machine, _) = run_to(shape, 11, last_point(shape, 11)).expect("it was counted");
    let report = machine.ssd.report(set_id(0)).expect("it is there");
    let firmware = report.firmware;
    assert!(firmware.collections > 2 && firmware.windows_entered > 0, "{firmware:?}");
    assert!(firmware.slots_moved > 0 && firmware.slots_flushed > 0, "{firmware:?}");
}

fn last_point(shape: &Shape, seed: u64) -> u64 {
    let mut last = 0;
    while run_to(shape, seed, last + 50).is_some() {
        last += 50;
    }
    last
}

fn cut_at_every_operation(shape: &Shape) {
    assert_everything_happens(shape);
    let mut points = 0;
    for operations in 1.. {
        let Some((machine, world)) = run_to(shape, 11, operations) else { break };
        let (image, _) = machine.power_cut(&mut Rng::new(operations));
        world.power_cut();
        let machine = Machine::recover(operations, &shape.profile, image, planted(None));
        check(shape, &machine, &world, &format!("power cut at operation {operations}"));
        points = operations;
    }
    assert!(points > 200, "the run is too short to mean anything: {points} operations");
    println!("{points} crash points");
}

#[test]
fn power_may_fail_at_any_operation() {
    cut_at_every_operation(&shape(true, Precondition::Empty));
    cut_at_every_operation(&shape(true, Precondition::Random(1.0)));
}

#[test]
fn power_may_fail_at_any_operation_without_capacitors() {
    cut_at_every_operation(&shape(false, Precondition::Empty));
    cut_at_every_operation(&shape(false, Precondition::Sequential(1.0)));
}

/// Cuts the power at every operation, and again right after the recovery.
pub(crate) fn cut_right_after_a_recovery(seed: u64, fault: Option<Fault>) -> Result<(), String> {
    let shape = shape(true, Precondition::Random(1.0));
    let points = last_point(&shape, seed);
    // Erases and programs in flight can end in many ways.
    for (operations, way) in (1..points).flat_map(|point| (0..3).map(move |way| (point, way))) {
        let (machine, world) = run_to(&shape, seed, operations).expect("it was counted");
        let (image, _) = machine.power_cut(&mut Rng::new(way * points + operations));
        world.power_cut();
        let machine = Machine::recover(1, &shape.profile, image, planted(fault));
        let (image, _) = machine.power_cut(&mut Rng::new(2));
        let machine = Machine::recover(3, &shape.profile, image, planted(fault));
        check_set(&machine, &world, 0, shape.blocks());
        world.result().map_err(|error| format!("power cuts at operation {operations}: {error}"))?;
    }
    Ok(())
}

#[test]
fn power_may_fail_right_after_a_recovery() {
    cut_right_after_a_recovery(11, None).unwrap_or_else(|error| panic!("{error}"));
}

/// Cuts the power at `first`, and then at every operation of the recovery. Returns their number.
fn cut_in_recovery(shape: &Shape, first: u64) -> u64 {
    for operations in 1.. {
        let (machine, world) = run_to(shape, 11, first).expect("the run is long enough");
        let (image, _) = machine.power_cut(&mut Rng::new(first));
        world.power_cut();
        let comeback = Comeback::begin(6, &shape.profile, image, planted(None));
        if !comeback.run_to(operations) {
            return operations;
        }
        let (image, _) = comeback.power_cut(&mut Rng::new(operations));
        let machine = Machine::recover(7, &shape.profile, image, planted(None));
        let when = format!("power cuts at operation {first} and then {operations}");
        check(shape, &machine, &world, &when);
    }
    unreachable!("a recovery ends")
}

#[test]
fn power_may_fail_again_at_any_point_of_a_recovery() {
    for (has_capacitors, precondition) in
        [(true, Precondition::Random(1.0)), (false, Precondition::Sequential(1.0))]
    {
        let shape = shape(has_capacitors, precondition);
        let last = last_point(&shape, 11);
        let points: u64 = (1..=24).map(|part| cut_in_recovery(&shape, last * part / 24)).sum();
        assert!(points > 500, "recoveries have more operations than {points}");
        println!("{points} crash points in recoveries");
    }
}
