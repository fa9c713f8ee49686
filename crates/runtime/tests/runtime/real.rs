//! Real time: timers, other threads, computing, and the end of the runtime.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Poll, Waker};
use std::time::Duration;

use runtime::{
    Cores, Gone, IoChoice, IoEngine, Mailbox, Nanos, Notify, RealOptions, Runtime, Shared,
    join_all, mailbox, oneshot,
};

/// Runs a test with both ways of sleeping: in a ring, and on a futex.
fn both(test: impl Fn(Runtime)) {
    for io in [IoChoice::Probe, IoChoice::Threads] {
        test(
            Runtime::real(RealOptions { io, ..RealOptions::default() })
                .expect("no ring is asked for"),
        );
    }
}

#[expect(clippy::disallowed_methods, reason = "another thread is what this is about")]
fn on_another_thread<T: Send + 'static>(
    run: impl FnOnce() -> T + Send + 'static,
) -> std::thread::JoinHandle<T> {
    std::thread::spawn(run)
}

#[expect(clippy::disallowed_methods, reason = "the other thread is to be late")]
fn wait(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

#[test]
fn it_says_how_io_is_done() {
    let by_threads = RealOptions { io: IoChoice::Threads, ..RealOptions::default() };
    let rt = Runtime::real(by_threads).expect("no ring is asked for");
    let engine = rt.handle().io_engine().cloned();
    assert_eq!(engine, Some(IoEngine::Threads { threads: 16, why: None }));
    assert!(Runtime::new(1).handle().io_engine().is_none());
    let why = Some("not permitted".to_owned());
    let told = IoEngine::Threads { threads: 4, why }.to_string();
    assert_eq!(told, "4 threads, because io_uring is refused: not permitted");
}

#[test]
fn sleeps_are_exact_to_tens_of_microseconds_and_end_in_order() {
    both(|rt| {
        let handle = rt.handle();
        // The delay of a single sleep depends on the load of the machine. With the system's default
        // timer slack, all would be 50 us late.
        let is_exact = (0..2000).any(|_| {
            let handle = handle.clone();
            let late = rt.block_on(async move {
                let due = handle.now() + Nanos::from_micros(200);
                handle.sleep_until(due).await;
                assert!(handle.now() >= due, "never early");
                handle.now() - due
            });
            late < Nanos::from_micros(40)
        });
        assert!(is_exact, "all of 2000 were late by more than 40 us");
        let order = rt.block_on(async move {
            let sleepers = [30, 10, 20].map(|ms| {
                let handle = handle.clone();
                handle.clone().spawn("sleeper", async move {
                    handle.sleep(Nanos::from_millis(ms)).await;
                    handle.now()
                })
            });
            join_all(sleepers).await
        });
        assert!(order[1] < order[2] && order[2] < order[0]);
    });
}

#[test]
fn run_until_comes_back_in_time_though_nothing_happens() {
    both(|rt| {
        let until = rt.handle().now() + Nanos::from_millis(3);
        rt.run_until(until);
        let now = rt.handle().now();
        assert!(now >= until && now < until + Nanos::from_millis(500));
    });
}

#[test]
fn a_task_that_yields_for_ever_holds_up_neither_timers_nor_messages() {
    both(|rt| {
        let handle = rt.handle();
        let busy = handle.clone();
        drop(handle.spawn("busy", async move {
            loop {
                busy.yield_now().await;
            }
        }));
        let remote = handle.remote();
        let sleeper = handle.clone();
        rt.block_on(async move { sleeper.sleep(Nanos::from_millis(2)).await });
        let other = on_another_thread(move || remote.call("answer", |_| async { 42 }));
        rt.run_until_true(|| other.is_finished());
        assert_eq!(other.join().expect("it does not panic"), Ok(42));
    });
}

#[test]
fn closures_from_several_threads_run_in_order_on_the_runtime() {
    both(|rt| {
        let (sum, ended) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        for _ in 0..4 {
            let (remote, sum, ended) = (rt.handle().remote(), Arc::clone(&sum), Arc::clone(&ended));
            drop(on_another_thread(move || {
                for n in 0..500 {
                    let sum = Arc::clone(&sum);
                    let posted = remote.post(move |handle| {
                        let clock = handle.clone();
                        drop(handle.spawn("adds", async move {
                            clock.sleep(Nanos::from_micros(n % 3)).await;
                            sum.fetch_add(1, Ordering::Relaxed);
                        }));
                    });
                    assert_eq!(posted, Ok(()));
                    if n % 100 == 0 {
                        wait(1);
                    }
                }
                ended.fetch_add(1, Ordering::Relaxed);
                remote.post(|_| ()).expect("the runtime is there");
            }));
        }
        rt.run_until_true(|| sum.load(Ordering::Relaxed) == 2000);
        rt.run_until_true(|| ended.load(Ordering::Relaxed) == 4);
    });
}

/// Adds the numbers received until the last sender is gone.
async fn sum(mut inbox: Mailbox<(u64, mpsc::Sender<u64>)>) -> u64 {
    let mut sum = 0;
    while let Some((number, reply)) = inbox.recv().await {
        sum += number;
        reply.send(sum).expect("whoever asked waits");
    }
    sum
}

#[test]
fn a_mailbox_takes_from_all_threads_and_ends_with_the_last_sender() {
    both(|rt| {
        let (outbox, inbox) = mailbox();
        for first in 0..4 {
            let outbox = outbox.clone();
            drop(on_another_thread(move || {
                let (reply, answers) = mpsc::channel();
                for number in (first..1000).step_by(4) {
                    assert!(outbox.send((number, reply.clone())).is_ok());
                    answers.recv().expect("it is answered");
                }
            }));
        }
        drop(outbox);
        assert_eq!(rt.block_on(sum(inbox)), 999 * 1000 / 2);
        let (outbox, inbox) = mailbox::<u8>();
        drop(inbox);
        assert_eq!(outbox.send(7), Err(7));
    });
}

#[test]
fn a_mailbox_works_in_virtual_time() {
    let rt = Runtime::new(3);
    let (outbox, mut inbox) = mailbox();
    let handle = rt.handle();
    let got = rt.block_on(async move {
        let clock = handle.clone();
        drop(handle.spawn("sender", async move {
            clock.sleep(Nanos(7)).await;
            assert_eq!(outbox.send("late"), Ok(()));
        }));
        (inbox.recv().await, inbox.recv().await, handle.now())
    });
    assert_eq!(got, (Some("late"), None, Nanos(7)));
}

#[test]
fn a_waker_works_on_another_thread_and_between_two_runs() {
    both(|rt| {
        let flag = Arc::new(AtomicU32::new(0));
        let (wakers, waiting) = mpsc::channel::<Waker>();
        let seen = Arc::clone(&flag);
        let task = rt.handle().spawn("waits", async move {
            std::future::poll_fn(|cx| {
                wakers.send(cx.waker().clone()).expect("the other thread is there");
                if seen.load(Ordering::Acquire) < 3 { Poll::Pending } else { Poll::Ready(()) }
            })
            .await;
        });
        let other = on_another_thread(move || {
            for n in 1..=3 {
                let waker = waiting.recv().expect("it waits");
                wait(2);
                flag.store(n, Ordering::Release);
                waker.wake();
            }
            waiting
        });
        rt.run_until_true(|| task.is_finished());
        drop(other.join());
        // The task is woken although no thread is running the runtime.
        let notify = Rc::new(Notify::default());
        let waits = Rc::clone(&notify);
        let task = rt.handle().spawn("notified", async move { waits.notified().await });
        rt.run_until(rt.handle().now());
        notify.notify_all();
        rt.run_until_true(|| task.is_finished());
    });
}

#[test]
fn wakers_of_a_runtime_that_is_gone_do_nothing() {
    both(|rt| {
        let (wakers, waiting) = mpsc::channel::<Waker>();
        drop(rt.handle().spawn("waits", async move {
            std::future::poll_fn::<(), _>(|cx| {
                wakers.send(cx.waker().clone()).expect("somebody listens");
                Poll::Pending
            })
            .await;
        }));
        rt.run_until(rt.handle().now());
        let remote = rt.handle().remote();
        drop(rt);
        waiting.recv().expect("it was sent").wake();
        assert_eq!(remote.post(|_| ()), Err(Gone));
        assert_eq!(remote.call("too late", |_| async {}), Err(Gone));
    });
}

#[test]
fn a_call_that_the_runtime_does_not_live_to_see_the_end_of_is_told() {
    both(|rt| {
        let remote = rt.handle().remote();
        let started = Arc::new(AtomicU32::new(0));
        let starts = Arc::clone(&started);
        let other = on_another_thread(move || {
            remote.call("never ends", move |_| {
                starts.store(1, Ordering::Release);
                std::future::pending::<()>()
            })
        });
        rt.run_until_true(|| started.load(Ordering::Acquire) == 1);
        drop(rt);
        assert_eq!(other.join().expect("it does not panic"), Err(Gone));
    });
}

#[test]
#[should_panic(expected = "`itself`: a task would wait for itself")]
fn a_task_that_calls_its_own_runtime_is_caught() {
    let rt = Runtime::real(RealOptions::default()).expect("any way will do");
    let remote = rt.handle().remote();
    let _ = rt.block_on(async move { remote.call("itself", |_| async {}) });
}

#[test]
fn what_is_computed_does_not_hold_up_tasks() {
    both(|rt| {
        let handle = rt.handle();
        let (ticks, heavy) = rt.block_on(async move {
            let (ticks, clock) = (Rc::new(Cell::new(0)), handle.clone());
            let counted = Rc::clone(&ticks);
            drop(handle.spawn("ticks", async move {
                loop {
                    clock.sleep(Nanos::from_millis(1)).await;
                    counted.set(counted.get() + 1);
                }
            }));
            let heavy = (0..4).map(|n| {
                handle.compute(move || {
                    wait(20);
                    n * 10
                })
            });
            let heavy: Vec<_> = heavy.collect();
            (join_all(heavy).await, ticks.get())
        });
        assert_eq!(ticks, [0, 10, 20, 30]);
        assert!(heavy > 5, "{heavy} ticks in 40 ms");
    });
}

#[test]
fn in_virtual_time_what_is_computed_is_there_at_once() {
    let rt = Runtime::new(1);
    let handle = rt.handle();
    let result = rt.block_on(async move { (handle.compute(|| 6 * 7).await, handle.now()) });
    assert_eq!(result, (42, Nanos::ZERO));
}

#[test]
#[should_panic(expected = "out of its depth")]
fn a_panic_of_what_is_computed_comes_to_who_awaits_it() {
    let rt = Runtime::real(RealOptions::default()).expect("any way will do");
    let handle = rt.handle();
    rt.block_on(async move { handle.compute(|| panic!("out of its depth")).await });
}

#[test]
fn work_is_charged_nothing() {
    both(|rt| {
        let handle = rt.handle();
        let (spent, busy) = rt.block_on(async move {
            let cores = Cores::new(handle.clone(), 1, Nanos(10));
            let before = handle.now();
            cores.spend(Nanos::from_millis(3_600_000)).await;
            cores.spend_in_background(Nanos::from_millis(3_600_000)).await;
            (handle.now() - before, cores.busy())
        });
        assert!(spent < Nanos::from_millis(1000) && busy == Nanos::ZERO);
    });
}

#[test]
fn an_aborted_task_is_gone_and_a_dropped_runtime_takes_all_with_it() {
    both(|rt| {
        let held = Rc::new(());
        let tasks: Vec<_> = (0..10)
            .map(|_| {
                let (held, clock) = (Rc::clone(&held), rt.handle());
                rt.handle().spawn("holds", async move {
                    clock.sleep(Nanos::from_millis(1_000_000)).await;
                    drop(held);
                })
            })
            .collect();
        rt.run_until(rt.handle().now());
        assert_eq!(Rc::strong_count(&held), 11);
        tasks.into_iter().take(5).for_each(runtime::JoinHandle::abort);
        assert_eq!(Rc::strong_count(&held), 6);
        drop(rt);
        assert_eq!(Rc::strong_count(&held), 1);
    });
}

#[test]
fn two_runtimes_on_one_thread_talk_to_each_other() {
    both(|rt| {
        both(|other| {
            let (sender, receiver) = oneshot();
            let task = rt.handle().spawn("waits", receiver);
            rt.run_until(rt.handle().now());
            let clock = other.handle();
            other.block_on(async move {
                clock.sleep(Nanos(1000)).await;
                sender.send(9);
            });
            rt.run_until_true(|| task.is_finished());
            assert_eq!(task.take().flatten(), Some(9));
        });
    });
}

/// The object in a shared runtime: not `Send`, and also used by the runtime's tasks.
struct Counter {
    handle: runtime::Handle,
    count: Rc<Cell<u32>>,
    changed: Rc<Notify>,
}

#[test]
fn threads_that_share_a_runtime_drive_their_own_futures() {
    for io in [IoChoice::Probe, IoChoice::Threads] {
        let options = RealOptions { io, ..RealOptions::default() };
        let shared = Shared::new(options, |handle| {
            let handle = handle.clone();
            async move { Counter { handle, count: Rc::default(), changed: Rc::default() } }
        });
        let shared = Arc::new(shared.expect("any way will do"));
        let driver = Arc::clone(&shared);
        let driver = on_another_thread(move || driver.drive());
        let callers: Vec<_> = (0..4_u32)
            .map(|caller| {
                let shared = Arc::clone(&shared);
                on_another_thread(move || (0..200).map(|n| count(&shared, caller + n)).max())
            })
            .collect();
        // One caller waits for the work of the others.
        shared.call(|counter| {
            let (count, changed) = (Rc::clone(&counter.count), Rc::clone(&counter.changed));
            async move { changed.wait_until(|| count.get() == 800).await }
        });
        for caller in callers {
            assert!(caller.join().expect("it does not panic") <= Some(800));
        }
        shared.stop();
        driver.join().expect("it does not panic");
    }
}

#[test]
fn a_caller_that_would_wait_polls_what_it_set_going() {
    let shared = Shared::new(RealOptions::default(), |handle| {
        let handle = handle.clone();
        async move { handle }
    });
    // No thread drives the runtime: a wake of another thread would have no effect.
    let result = shared.expect("any way will do").call(|handle| {
        let tasks: Vec<_> =
            (0..10_u32).map(|n| handle.spawn("a number", async move { n })).collect();
        async move {
            let mut sum = 0;
            for task in tasks {
                sum += task.await;
            }
            sum
        }
    });
    assert_eq!(result, 45);
}

#[test]
fn threads_that_compute_let_others_go_first() {
    let rt = Runtime::real(RealOptions::default()).expect("any way will do");
    let handle = rt.handle();
    let niceness = || rustix::process::getpriority_process(None).expect("of this thread");
    let (before, computing) = rt.block_on(async move {
        let before = niceness();
        (before, handle.compute(niceness).await)
    });
    assert_eq!((niceness(), computing), (before, 19));
}

/// Increments the counter on drop, like a handle that calls the store when dropped.
struct Counts(Arc<Shared<Counter>>);

impl Drop for Counts {
    fn drop(&mut self) {
        count(&self.0, 0);
    }
}

#[test]
fn a_thread_that_unwinds_may_call_and_breaks_nothing() {
    let shared = Shared::new(RealOptions::default(), |handle| {
        let handle = handle.clone();
        async move { Counter { handle, count: Rc::default(), changed: Rc::default() } }
    });
    let shared = Arc::new(shared.expect("any way will do"));
    let driver = Arc::clone(&shared);
    let driver = on_another_thread(move || driver.drive());
    let counts = Counts(Arc::clone(&shared));
    let unwinding = on_another_thread(move || {
        let _counts = counts;
        panic!("as the test wants");
    });
    assert!(unwinding.join().is_err());
    assert!(!shared.is_broken());
    for how in 0..3 {
        assert_eq!(count(&shared, how), how + 2);
    }
    shared.stop();
    driver.join().expect("it does not panic");
}

/// Increments the counter: at once, after a task that the driving thread runs, or after a timer.
fn count(shared: &Shared<Counter>, how: u32) -> u32 {
    shared.call(move |counter| {
        let (handle, count) = (counter.handle.clone(), Rc::clone(&counter.count));
        let changed = Rc::clone(&counter.changed);
        async move {
            match how % 3 {
                0 => {}
                1 => {
                    handle
                        .clone()
                        .spawn("gives way", async move { handle.yield_now().await })
                        .await;
                }
                _ => handle.sleep(Nanos::from_micros(50)).await,
            }
            count.set(count.get() + 1);
            changed.notify_all();
            count.get()
        }
    })
}
