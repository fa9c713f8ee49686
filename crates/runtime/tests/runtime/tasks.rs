//! Tasks that end, hang, wait for ever, or are dropped with their runtime.

use std::cell::{Cell, RefCell};
use std::future::{pending, poll_fn};
use std::rc::Rc;
use std::task::{Poll, Waker};

use runtime::{Handle, Nanos, Notify, Runtime, Semaphore};

/// Runs a function when it is dropped.
struct Guard<F: FnMut()>(F);

impl<F: FnMut()> Drop for Guard<F> {
    fn drop(&mut self) {
        self.0();
    }
}

#[test]
#[should_panic(expected = "task `spinner` was polled")]
fn a_task_that_spins_at_one_instant_panics_by_name() {
    let rt = Runtime::new(1);
    let handle = rt.handle();
    rt.handle().spawn("spinner", async move {
        loop {
            handle.yield_now().await;
        }
    });
    rt.block_on(async {});
}

#[test]
#[should_panic(expected = r#"these tasks wait: ["forgotten", "main"]"#)]
fn a_deadlock_panics_and_names_the_tasks_that_wait() {
    let rt = Runtime::new(1);
    rt.handle().spawn("forgotten", pending::<()>());
    rt.handle().spawn("finished", async {});
    rt.block_on(pending::<()>());
}

#[test]
fn a_result_is_there_once_whether_awaited_or_taken() {
    let rt = Runtime::new(1);
    let handle = rt.handle();
    let taken = handle.spawn("answer", async { 42 });
    let awaited = handle.spawn("answer", async { 43 });
    assert!(!taken.is_finished() && taken.take().is_none());
    assert_eq!(rt.block_on(awaited), 43);
    assert_eq!((taken.is_finished(), taken.take(), taken.take()), (true, Some(42), None));
}

#[test]
fn a_task_goes_on_without_its_join_handle() {
    let rt = Runtime::new(1);
    let handle = rt.handle();
    let has_run = Rc::new(Cell::new(false));
    let seen = Rc::clone(&has_run);
    drop(rt.handle().spawn("detached", async move {
        handle.sleep(Nanos(5)).await;
        seen.set(true);
    }));
    rt.run_until(Nanos::MAX);
    assert!(has_run.get());
}

#[test]
fn dropping_the_runtime_drops_its_tasks() {
    let rt = Runtime::new(1);
    let drops = Rc::new(Cell::new(0));
    for _ in 0..3 {
        let (handle, drops) = (rt.handle(), Rc::clone(&drops));
        rt.handle().spawn("guarded", async move {
            let _guard = Guard(|| drops.set(drops.get() + 1));
            handle.sleep(Nanos(1_000)).await;
        });
    }
    rt.run_until(Nanos(10));
    assert_eq!(drops.get(), 0);
    drop(rt);
    assert_eq!(drops.get(), 3);
    assert_eq!(Rc::strong_count(&drops), 1, "nothing of the tasks is left");
}

#[test]
fn a_guard_may_spawn_and_wake_while_the_runtime_is_dropped() {
    let rt = Runtime::new(1);
    let drops = Rc::new(Cell::new(0));
    let notify = Rc::new(Notify::default());
    for _ in 0..3 {
        rt.handle().spawn("over before", async {}); // leaves a free slot
    }
    for _ in 0..3 {
        let (handle, drops, notify) = (rt.handle(), Rc::clone(&drops), Rc::clone(&notify));
        rt.handle().spawn("guarded", async move {
            let _guard = Guard(|| {
                notify.notify_all();
                let inner = Rc::clone(&drops);
                handle.spawn("last words", async move {
                    let _guard = Guard(|| inner.set(inner.get() + 1));
                    pending::<()>().await;
                });
                drops.set(drops.get() + 1);
            });
            notify.notified().await;
        });
    }
    rt.run_until(Nanos(10));
    rt.handle().spawn("over before", async {});
    rt.run_until(Nanos(10));
    drop(rt);
    assert_eq!(drops.get(), 3, "a task that never ran has no guard yet");
    assert_eq!(Rc::strong_count(&drops), 1, "nothing of the tasks is left");
}

#[test]
fn a_waker_outlives_its_task_and_its_runtime_harmlessly() {
    let rt = Runtime::new(1);
    let kept = Rc::new(RefCell::new(None::<Waker>));
    let keep = Rc::clone(&kept);
    rt.handle().spawn("woken", async move {
        poll_fn(|cx| {
            let is_first = keep.borrow_mut().replace(cx.waker().clone()).is_none();
            if is_first { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
    });
    rt.block_on(async {});
    let waker = kept.borrow_mut().take().expect("the task was polled");
    waker.wake_by_ref();
    rt.block_on(async {}); // its task is polled, and now another waker is kept
    waker.wake_by_ref();
    drop(rt);
    waker.wake_by_ref();
    waker.wake();
}

#[test]
fn timers_and_permits_may_outlive_the_runtime() {
    let rt = Runtime::new(1);
    let handle = rt.handle();
    let semaphore = Semaphore::new(1);
    let permit = rt.block_on(semaphore.acquire(1));
    let (waits, at) = (semaphore.clone(), handle.sleep(Nanos(5)));
    handle.spawn("waits", async move { drop(waits.acquire(1).await) });
    rt.run_until(Nanos(1));
    assert_eq!(semaphore.waiting(), 1);
    drop(rt);
    assert_eq!(semaphore.waiting(), 0);
    drop((permit, at));
    assert_eq!(semaphore.in_use(), 0);
}

#[test]
fn a_task_that_yields_lets_every_other_ready_task_go_first() {
    let rt = Runtime::with_order(1, runtime::TaskOrder::Fifo);
    let ran = Rc::new(RefCell::new(Vec::new()));
    let polite = |name: &'static str, handle: Handle| {
        let ran = Rc::clone(&ran);
        async move {
            ran.borrow_mut().push(name);
            handle.yield_now().await;
            ran.borrow_mut().push(name);
        }
    };
    rt.handle().spawn("a", polite("a", rt.handle()));
    rt.handle().spawn("b", polite("b", rt.handle()));
    rt.block_on(async {});
    assert_eq!(*ran.borrow(), ["a", "b", "a", "b"]);
}
