//! Tasks that end, hang, wait forever, or are dropped with their runtime.

use std::cell::{Cell, RefCell};
use std::future::{pending, poll_fn};
use std::rc::Rc;
use std::task::{Poll, Waker};

use runtime::{Handle, JoinHandle, Nanos, Notify, Runtime, Semaphore};

/// Runs a function on drop.
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
        rt.handle().spawn("over before", async {}); // Leaves a free slot.
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
    rt.block_on(async {}); // The task is polled, and another waker is kept.
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

#[test]
fn an_aborted_task_lets_go_of_what_it_holds_and_never_runs_again() {
    let rt = Runtime::new(1);
    let (dropped, ran) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(0)));
    let (guard_dropped, ran_in, handle) = (Rc::clone(&dropped), Rc::clone(&ran), rt.handle());
    let task = rt.handle().spawn("ticker", async move {
        let _guard = Guard(move || guard_dropped.set(true));
        loop {
            ran_in.set(ran_in.get() + 1);
            handle.sleep(Nanos(10)).await;
        }
    });
    rt.run_until(Nanos(25));
    assert_eq!((ran.get(), dropped.get()), (3, false));
    task.abort();
    assert!(dropped.get());
    // Its number is reused by a task that the old one's wakers do not disturb.
    assert_eq!(rt.block_on(async { 42 }), 42);
    rt.run_until(Nanos(100));
    assert_eq!((ran.get(), rt.handle().now()), (3, Nanos(20)), "nothing is left to happen");
}

#[test]
fn a_task_that_aborts_itself_ends_at_its_next_await_and_an_ended_one_stays_so() {
    let rt = Runtime::new(1);
    let mine: Rc<RefCell<Option<JoinHandle<()>>>> = Rc::default();
    let (in_task, reached) = (Rc::clone(&mine), Rc::new(Cell::new(0)));
    let reached_in = Rc::clone(&reached);
    let task = rt.handle().spawn("short lived", async move {
        in_task.borrow_mut().take().expect("put there before the task ran").abort();
        reached_in.set(1);
        pending::<()>().await;
        reached_in.set(2);
    });
    *mine.borrow_mut() = Some(task);
    assert!(!rt.run_until_true(|| false));
    assert_eq!((reached.get(), Rc::strong_count(&reached)), (1, 1), "the future is gone");
    let ended = rt.handle().spawn("ended", async {});
    rt.block_on(async {});
    assert!(!rt.run_until_true(|| false) && ended.is_finished());
    ended.abort();
    assert_eq!(rt.block_on(async { 43 }), 43);
}
