//! Tests of loaded drives that are saved and opened again, under the workloads of the experiments.

use runtime::Nanos;

use super::size::Size;
use super::system::{Change, Variant, sized, stand_spec};
use super::{measure, measure_in, report, system};
use crate::doubles::{Forgetful, InMemory, Notes, assert_goes_on};
use crate::plan::{Paper, Plan, Scale};
use crate::stand::{Stand, StandSpec};

const SIZE: Size =
    Size { divisor: 64, records: 68_000, operations: 30_000, scans: 0, requests: 68_000 };

/// A drive of an eighth of the small one, so that the workloads cause garbage collection.
fn spec(design: &str) -> StandSpec {
    let mut spec = stand_spec(7, &SIZE, design, Change::None, 1024).expect("it is possible");
    spec.device.flash.geometry.pages_per_block /= 4;
    spec.device.flash.geometry.blocks_per_plane /= 2;
    spec.device.dram.index_bytes /= 8;
    spec
}

/// Runs workloads. Returns all their observable results, with all digits.
fn seen(mut stand: Stand) -> Vec<String> {
    let mut seen = Vec::new();
    for workload in ["a", "d", "f"] {
        let run = sized(workload, &SIZE, SIZE.operations, 1024).expect("it is built in");
        let phase = stand.run(run).expect("it comes to its end");
        seen.push(format!("{workload}: {phase:?}"));
    }
    let drive = &stand.drive;
    seen.push(format!("{:?}", drive.engine_stats()));
    seen.push(format!("{:?}", drive.engine().hash_stats()));
    seen.push(format!("{:?}", drive.engine().levels()));
    seen.push(format!("{:?}", drive.flash_stats()));
    seen.push(format!("{:?}", drive.memory()));
    seen.push(format!("{:?}", drive.firmware_busy()));
    seen.push(drive.engine().background());
    seen
}

fn assert_same(name: &str, found: &[String], expected: &[String]) {
    for (found, expected) in found.iter().zip(expected) {
        let differs = found.bytes().zip(expected.bytes()).position(|(a, b)| a != b);
        let at = differs.unwrap_or(0).saturating_sub(80);
        let around = |text: &str| text.chars().skip(at).take(200).collect::<String>();
        assert!(found == expected, "{name}: {} is not {}", around(found), around(expected));
    }
}

#[test]
fn what_runs_on_a_saved_drive_is_what_runs_behind_its_load() {
    for design in ["pink", "hash", "lightstore", "pink-hw", "pink-compact"] {
        let spec = spec(design);
        let (stand, _) = Stand::load(&spec).expect("it fits");
        stand.run_dry();
        let behind_the_load = seen(stand);
        let keeper = InMemory::default();
        let open = || Stand::loaded(&keeper, design, &spec, &spec.device).expect("it fits");
        let first = open();
        assert_eq!(keeper.drives(), 1, "{design} was kept");
        assert_same(&format!("{design} that was saved"), &seen(first), &behind_the_load);
        assert_same(&format!("{design} opened again"), &seen(open()), &behind_the_load);
        assert_eq!(keeper.complaints.lock().unwrap().as_slice(), [""; 0]);
        let is_idle = behind_the_load[2].contains("collected: 0,");
        assert!(!is_idle, "{design}: nothing was collected in F");
    }
}

#[test]
fn slower_firmware_goes_on_from_the_same_drive() {
    let spec = spec("pink");
    let keeper = InMemory::default();
    let mut slower = spec.device.clone();
    slower.controller.command_us *= 10.0;
    let of = |device| seen(Stand::loaded(&keeper, "pink", &spec, device).expect("it fits"));
    let (first, slow) = (of(&slower), of(&slower));
    assert_same("opened again", &slow, &first);
    assert_ne!(of(&spec.device)[0], slow[0]);
    assert_eq!(keeper.drives(), 1);
}

type Damage = fn(&mut Vec<u8>);

#[test]
fn a_saved_drive_that_is_damaged_is_loaded_again() {
    let spec = spec("pink");
    let keeper = InMemory::default();
    let open = || Stand::loaded(&keeper, "pink", &spec, &spec.device).expect("it fits");
    let now = |stand: &Stand| stand.now();
    let whole = now(&open());
    assert!(whole > Nanos::ZERO);
    let damages: [(Damage, &str); 3] = [
        (|bytes| bytes[1_000_000] ^= 1, "is damaged"),
        (|bytes| bytes.truncate(1_000_000), "ends too soon"),
        (|bytes| bytes[0] = 0, "no file of a saved drive"),
    ];
    for (damage, words) in damages {
        keeper.damage(damage);
        assert_eq!(now(&open()), whole);
        let said = keeper.complaints.lock().unwrap().pop().expect("somebody complained");
        assert!(said.contains(words), "{said}");
    }
}

/// A few pairs on the small drive.
const TINY: Size = Size { divisor: 64, records: 4_000, operations: 400, scans: 10, requests: 600 };

#[test]
fn a_run_that_was_stopped_goes_on() {
    assert_goes_on(Paper::Pink, "Hash", |plan| {
        let measured = measure_in(plan, TINY)?;
        Ok(measured.map(|measured| report::report(plan, &measured)))
    });
}

#[test]
fn with_fresh_loads_a_workload_does_not_depend_on_those_before_it() {
    let keeper = InMemory::default();
    let plan = Plan {
        paper: Paper::Pink,
        scale: Scale::Quick,
        threads: 1,
        seed: 1,
        watcher: &Notes::default(),
        keeper: &keeper,
        only: None,
        fresh_loads: true,
    };
    let ran = |is_fresh, workloads: &'static [&'static str]| {
        let plan = Plan { fresh_loads: is_fresh, ..plan };
        let variant = Variant { design: "pink", name: "PinK".to_owned(), change: Change::None };
        let job = system::job(&plan, SIZE, variant, workloads).expect("it is possible");
        let system = (job.run)().expect("it comes to its end");
        system.ran("c").get
    };
    let alone = ran(true, &["c"]);
    assert_eq!(ran(true, &["a", "c"]), alone, "A was run on another drive");
    assert_ne!(ran(false, &["a", "c"]), alone, "A leaves its traces");
    assert_eq!(keeper.drives(), 1, "it was loaded once for all");
}

#[test]
fn every_simulation_can_be_set_up_at_either_scale() {
    for scale in [Scale::Quick, Scale::Paper] {
        let plan = Plan {
            paper: Paper::Pink,
            scale,
            threads: 1,
            seed: 1,
            watcher: &Notes::default(),
            keeper: &Forgetful,
            only: Some("no such simulation"),
            fresh_loads: false,
        };
        let words = measure(&plan).err().expect("none is asked for");
        assert!(words.starts_with("no simulation has"), "{words}");
    }
}
