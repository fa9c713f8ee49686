//! Conditional writes under pressure: they progress like other writes.

use std::cell::RefCell;
use std::rc::Rc;

use engine::{Options, Value};
use runtime::Nanos;
use stacks::kvssd::{DeviceProfile, DriveOptions, StoreMode};

use crate::harness::{Machine, for_hash, small_design, small_device, small_hash_options};

/// Runs clients that store, and one that stores only over existing keys. Returns the writes of
/// each.
fn writes_under_pressure(device: &DeviceProfile, options: DriveOptions) -> (u64, Vec<u64>) {
    const OTHERS: usize = 64;
    let machine = Machine::format(1, device, options);
    let counts = Rc::new(RefCell::new(vec![0; OTHERS + 1]));
    for client in 0..=OTHERS {
        let (drive, counts) = (machine.drive.clone(), Rc::clone(&counts));
        machine.rt.handle().spawn("client", async move {
            let key = |i: u64| format!("{client:03}.{:02}", i % 10).into_bytes();
            for i in 0.. {
                let is_conditional = client == OTHERS && i >= 10;
                let mode = if is_conditional { StoreMode::MustExist } else { StoreMode::Upsert };
                let value = Value::Synthetic { seed: i, len: 100 };
                drive.store(&key(i), value, mode).await.expect("there is room");
                counts.borrow_mut()[client] += 1;
            }
        });
    }
    machine.rt.run_until(Nanos::from_millis(2_000));
    let mut others = counts.borrow().clone();
    let conditional = others.pop().expect("it is the last");
    (conditional, others)
}

#[test]
fn a_conditional_write_does_not_starve() {
    let trees = [Options::pink(), Options::lightstore()]
        .map(|design| (small_device(), small_design(&design)));
    let hash = (for_hash(small_device()), small_hash_options());
    for (device, options) in trees.into_iter().chain([hash]) {
        let (conditional, others) = writes_under_pressure(&device, options);
        let least = others.iter().min().copied().unwrap_or_default();
        assert!(least > 20, "too short a run: {least}");
        // All writers that wait for room wake together. The conditional write must also search,
        // which takes some reads while the others wait for a flush: it may miss every second turn.
        assert!(conditional * 2 > least, "{conditional} against {least} of the slowest other");
    }
}
