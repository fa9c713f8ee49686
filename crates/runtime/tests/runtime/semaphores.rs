//! Semaphores: first come, first served, within a limit that may change.

use std::cell::RefCell;
use std::rc::Rc;

use runtime::{Nanos, Permit, Runtime, Semaphore};

type Log = Rc<RefCell<Vec<(u32, u64)>>>;

/// Starts task `name`, which arrives at `at` and holds `wants` units for `holds`. Logs the time of
/// the grant.
fn user(rt: &Runtime, semaphore: &Semaphore, log: &Log, name: u32, [at, wants, holds]: [u64; 3]) {
    let (handle, semaphore, log) = (rt.handle(), semaphore.clone(), Rc::clone(log));
    rt.handle().spawn("user", async move {
        handle.sleep(Nanos(at)).await;
        let _permit = semaphore.acquire(wants as usize).await;
        log.borrow_mut().push((name, handle.now().0));
        handle.sleep(Nanos(holds)).await;
    });
}

#[test]
fn waiters_are_served_in_order_of_arrival_even_if_a_later_one_would_fit() {
    for seed in 0..10 {
        let (rt, semaphore, log) = (Runtime::new(seed), Semaphore::new(4), Log::default());
        user(&rt, &semaphore, &log, 1, [0, 3, 100]);
        user(&rt, &semaphore, &log, 2, [1, 2, 100]); // Must wait for 1.
        user(&rt, &semaphore, &log, 3, [2, 1, 100]); // Would fit, but is queued after 2.
        user(&rt, &semaphore, &log, 4, [3, 4, 100]); // Needs all units.
        rt.run_until(Nanos::MAX);
        log.borrow_mut().sort_unstable(); // Tasks 2 and 3 run at the same instant, in either order.
        assert_eq!(*log.borrow(), [(1, 0), (2, 100), (3, 100), (4, 200)]);
        assert_eq!((semaphore.in_use(), semaphore.waiting()), (0, 0));
    }
}

#[test]
fn never_more_in_use_than_the_limit() {
    let rt = Runtime::new(1);
    let semaphore = Semaphore::new(5);
    for task in 0..50 {
        let (handle, semaphore) = (rt.handle(), semaphore.clone());
        rt.handle().spawn("user", async move {
            let _permit = semaphore.acquire(1 + task % 3).await;
            assert!(semaphore.in_use() <= 5);
            handle.sleep(Nanos(10)).await;
        });
    }
    rt.run_until(Nanos::MAX);
    assert_eq!((semaphore.in_use(), semaphore.waiting()), (0, 0));
}

#[test]
fn a_request_above_the_limit_is_granted_when_nothing_is_in_use() {
    let (rt, semaphore, log) = (Runtime::new(1), Semaphore::new(2), Log::default());
    user(&rt, &semaphore, &log, 1, [0, 1, 100]);
    user(&rt, &semaphore, &log, 2, [1, 9, 100]);
    user(&rt, &semaphore, &log, 3, [2, 1, 100]);
    rt.run_until(Nanos::MAX);
    assert_eq!(*log.borrow(), [(1, 0), (2, 100), (3, 200)]);
}

#[test]
fn a_raised_limit_lets_waiters_go_on_and_a_lowered_one_takes_nothing_away() {
    let (rt, semaphore, log) = (Runtime::new(1), Semaphore::new(1), Log::default());
    for name in 1..=4 {
        user(&rt, &semaphore, &log, name, [u64::from(name), 1, 100]);
    }
    rt.run_until(Nanos(10));
    assert_eq!((semaphore.in_use(), semaphore.waiting()), (1, 3));
    semaphore.set_limit(3);
    assert_eq!((semaphore.in_use(), semaphore.waiting(), semaphore.limit()), (3, 1, 3));
    semaphore.set_limit(1);
    assert_eq!(semaphore.in_use(), 3);
    rt.run_until(Nanos::MAX);
    // Tasks 2 and 3 run at 4 ns, the last instant before the limit was raised; 4 waits for all
    // three.
    log.borrow_mut().sort_unstable();
    assert_eq!(*log.borrow(), [(1, 1), (2, 4), (3, 4), (4, 104)]);
}

/// Returns a semaphore of two units, of which one is in use, and its permit. A task waits for
/// `wants` units and gives up after 50 ns.
fn with_impatient(rt: &Runtime, wants: usize) -> (Semaphore, Rc<RefCell<Option<Permit>>>) {
    let semaphore = Semaphore::new(2);
    let first = Rc::new(RefCell::new(Some(rt.block_on(semaphore.acquire(1)))));
    let (handle, waits) = (rt.handle(), semaphore.clone());
    rt.handle().spawn("impatient", async move {
        let mut acquire = Box::pin(waits.acquire(wants));
        std::future::poll_fn(|cx| {
            assert!(acquire.as_mut().poll(cx).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
        handle.sleep(Nanos(50)).await;
        drop(acquire);
    });
    (semaphore, first)
}

#[test]
fn a_waiter_that_gives_up_does_not_block_those_behind_it() {
    let (rt, log) = (Runtime::new(1), Log::default());
    let (semaphore, first) = with_impatient(&rt, 2);
    user(&rt, &semaphore, &log, 1, [10, 1, 100]);
    rt.run_until(Nanos(20));
    assert_eq!((semaphore.in_use(), semaphore.waiting()), (1, 2));
    rt.run_until(Nanos::MAX);
    assert_eq!(*log.borrow(), [(1, 50)], "there was room for it all the time");
    drop(first.take());
    assert_eq!((semaphore.in_use(), semaphore.waiting()), (0, 0));
}

#[test]
fn a_waiter_dropped_between_its_grant_and_its_poll_leaks_nothing() {
    let (rt, log) = (Runtime::new(1), Log::default());
    let (semaphore, first) = with_impatient(&rt, 2);
    user(&rt, &semaphore, &log, 1, [10, 2, 100]);
    rt.run_until(Nanos(20));
    drop(first.take()); // Grants the units to the impatient task, which no longer polls.
    assert_eq!((semaphore.in_use(), semaphore.waiting()), (2, 1));
    rt.run_until(Nanos::MAX);
    assert_eq!(*log.borrow(), [(1, 50)]);
    assert_eq!((semaphore.in_use(), semaphore.waiting()), (0, 0));
}
