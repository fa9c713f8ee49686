//! Checks that a simulation frees its memory: reports run hundreds of simulations in one process.

use std::cell::RefCell;
use std::rc::Rc;

use blockbench::Before;
use engine::Options;
use kvbench::configuration::Configuration;
use kvbench::platform::{HostChoice, Platform};
use kvbench::{BenchSpec, Observer};
use runtime::counted::{Counted, held_bytes};
use stacks::design::Design;
use workload::{ClientOptions, CoreWorkload, Stop, builtin};

#[global_allocator]
static ALLOCATOR: Counted = Counted;

/// Tables that grow on first use and are kept, such as a thread's list of executors and of phases.
const ALLOWED_BYTES: u64 = 4096;

struct Nobody;

impl Observer for Nobody {
    fn begin(&mut self, _: &'static str, _: u64) {}
    fn progress(&mut self, _: u64) {}
    fn end(&mut self, _: bool) {}
}

fn run(design: Design, platform: Platform) {
    let mut properties = builtin("a").expect("built in");
    properties.set("recordcount", "20000");
    properties.set("operationcount", "20000");
    let spec = BenchSpec {
        configuration: None,
        design,
        platform,
        workload_name: "a".to_owned(),
        workload: CoreWorkload::from_properties(&properties).expect("they are right"),
        clients: ClientOptions::closed(16),
        trace: None,
        seed: 1,
        precondition: Before::Random,
        ages: false,
        at_rest: false,
        sample_every: None,
    };
    let nobody: Rc<RefCell<dyn Observer>> = Rc::new(RefCell::new(Nobody));
    let outcome = kvbench::run(&spec, &nobody, &Stop::default()).expect("it runs");
    assert_eq!(outcome.result.verification.mismatches, 0);
}

/// Makes the tree small, so that it flushes and compacts all the time and the end interrupts such
/// work.
fn in_small(engine: &mut Options) {
    engine.memtable_bytes = 256 << 10;
    engine.tables.table_bytes = 256 << 10;
    engine.tables.level_base_bytes = 1 << 20;
}

/// Returns the bytes that the second of two equal runs leaves allocated.
fn left_by(run: impl Fn()) -> u64 {
    run();
    let before = held_bytes();
    run();
    held_bytes().saturating_sub(before)
}

#[test]
fn no_design_of_a_kv_drive_leaves_anything() {
    for name in ["pink", "pink-log", "lightstore", "iterkvssd", "hash"] {
        let left = left_by(|| {
            let device = Platform::load("pink-zcu102", HostChoice::default());
            run(Design::load(name).expect("built in"), device.expect("built in"));
        });
        println!("{name} leaves {left} bytes");
        assert!(left < ALLOWED_BYTES, "{name} leaves {left} bytes");
    }
}

#[test]
fn no_configuration_of_a_host_leaves_anything() {
    for name in Configuration::names() {
        let configuration = Configuration::load(name).expect("built in");
        let left = left_by(|| {
            let platform = Platform::load(&configuration.device, configuration.choice());
            let design = configuration.design().expect("built in");
            run(design.with(in_small), platform.expect("built in"));
        });
        println!("{name} leaves {left} bytes");
        assert!(left < ALLOWED_BYTES, "{name} leaves {left} bytes");
    }
}
