//! The order of tasks depends on the seed alone.

use std::cell::RefCell;
use std::rc::Rc;

use runtime::{Nanos, Runtime, Semaphore, TaskOrder, bounded};

/// Uses tasks, timers, a semaphore and a channel together. Returns the trace hash and the order in
/// which the tasks completed.
fn scenario(seed: u64) -> (u64, Vec<u64>) {
    let rt = Runtime::new(seed);
    let handle = rt.handle();
    let main = handle.clone();
    let order = rt.block_on(async move {
        let (sender, mut receiver) = bounded(2);
        let semaphore = Semaphore::new(3);
        for task in 0..20_u64 {
            let (handle, sender, semaphore) = (main.clone(), sender.clone(), semaphore.clone());
            main.spawn("worker", async move {
                let _permit = semaphore.acquire(1).await;
                let jitter = handle.rng("jitter").below(100);
                handle.sleep(Nanos(task % 4 * 10 + jitter)).await;
                assert_eq!(sender.send(task).await, Ok(()));
            });
        }
        drop(sender);
        let mut order = Vec::new();
        while let Some(task) = receiver.recv().await {
            order.push(task);
        }
        order
    });
    (handle.trace_hash(), order)
}

/// Returns the order in which ten tasks run that are ready at the same instant.
fn order_of_ten(seed: u64, order: TaskOrder) -> Vec<u32> {
    let rt = Runtime::with_order(seed, order);
    let ran = Rc::new(RefCell::new(Vec::new()));
    for task in 0..10 {
        let ran = Rc::clone(&ran);
        rt.handle().spawn("one of ten", async move { ran.borrow_mut().push(task) });
    }
    rt.block_on(async {});
    let ran = ran.borrow();
    ran.clone()
}

#[test]
fn the_same_seed_gives_the_same_run() {
    assert_eq!(scenario(1), scenario(1));
    assert_eq!(scenario(2), scenario(2));
}

#[test]
fn another_seed_gives_another_run() {
    let (hash, order) = scenario(1);
    let (other_hash, other_order) = scenario(2);
    assert_ne!(hash, other_hash);
    assert_ne!(order, other_order);
}

#[test]
fn a_second_runtime_beside_the_first_changes_nothing() {
    let _neighbour = Runtime::new(9);
    let alone = scenario(1);
    let _another = Runtime::new(10);
    assert_eq!(scenario(1), alone);
}

#[test]
fn seeded_order_varies_with_the_seed() {
    let mut orders: Vec<_> = (0..20).map(|seed| order_of_ten(seed, TaskOrder::Seeded)).collect();
    assert!(orders.iter().all(|order| {
        let mut sorted = order.clone();
        sorted.sort_unstable();
        sorted == (0..10).collect::<Vec<_>>()
    }));
    orders.sort();
    orders.dedup();
    assert_eq!(orders.len(), 20, "ten tasks have 3.6 million orders; no two seeds may agree");
}

#[test]
fn fifo_order_is_the_order_of_becoming_ready() {
    for seed in 0..5 {
        assert_eq!(order_of_ten(seed, TaskOrder::Fifo), (0..10).collect::<Vec<_>>());
    }
}
