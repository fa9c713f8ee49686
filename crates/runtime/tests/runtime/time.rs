//! The clock: it advances from timer to timer, exact to the nanosecond, and only when no task is
//! ready.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use runtime::{Event, Handle, Nanos, Runtime, Sleep, TaskOrder, join_all};

#[test]
fn sleeps_end_in_order_of_deadline_at_the_nanosecond() {
    let rt = Runtime::new(1);
    let handle = rt.handle();
    let spans = [1_000_000_007, 3, 1, 2, 1_000_000_006, 500];
    let ended = Rc::new(RefCell::new(Vec::new()));
    for span in spans {
        let (handle, ended) = (handle.clone(), Rc::clone(&ended));
        rt.handle().spawn("sleeper", async move {
            handle.sleep(Nanos(span)).await;
            ended.borrow_mut().push((handle.now(), Nanos(span)));
        });
    }
    rt.run_until(Nanos::MAX);
    let in_order = [1, 2, 3, 500, 1_000_000_006, 1_000_000_007].map(|n| (Nanos(n), Nanos(n)));
    assert_eq!(*ended.borrow(), in_order);
}

#[test]
fn an_instant_that_has_passed_costs_nothing() {
    let rt = Runtime::new(1);
    let handle = rt.handle();
    let now = rt.block_on(async move {
        handle.sleep(Nanos(10)).await;
        handle.sleep_until(Nanos(4)).await;
        handle.sleep(Nanos::ZERO).await;
        handle.now()
    });
    assert_eq!(now, Nanos(10));
}

#[test]
fn run_until_includes_its_deadline_and_nothing_later() {
    let rt = Runtime::new(1);
    let ended = Rc::new(RefCell::new(Vec::new()));
    for span in [10, 20, 21] {
        let (handle, ended) = (rt.handle(), Rc::clone(&ended));
        rt.handle().spawn("sleeper", async move {
            handle.sleep(Nanos(span)).await;
            handle.yield_now().await;
            ended.borrow_mut().push(span);
        });
    }
    rt.run_until(Nanos(20));
    assert_eq!(*ended.borrow(), [10, 20]);
    assert_eq!(rt.handle().now(), Nanos(20));
}

#[test]
fn run_until_true_stops_at_the_instant_or_reports_that_it_ran_dry() {
    let rt = Runtime::new(1);
    let handle = rt.handle();
    for span in [10, 20, 30] {
        drop(handle.spawn("sleeper", handle.sleep(Nanos(span))));
    }
    assert!(rt.run_until_true(|| handle.now() >= Nanos(15)));
    assert_eq!(handle.now(), Nanos(20));
    assert!(!rt.run_until_true(|| handle.now() > Nanos(30)));
    assert_eq!(handle.now(), Nanos(30));
}

struct Recorder {
    handle: Handle,
    fired: RefCell<Vec<(Nanos, u64)>>,
}

impl Event for Recorder {
    fn fire(&self, token: u64) {
        self.fired.borrow_mut().push((self.handle.now(), token));
    }
}

#[test]
fn events_of_one_instant_fire_in_order_of_arming_under_every_seed() {
    for seed in 0..5 {
        let rt = Runtime::new(seed);
        let handle = rt.handle();
        let recorder = Rc::new(Recorder { handle: handle.clone(), fired: RefCell::default() });
        for (at, token) in [(7, 1), (5, 2), (7, 3), (5, 4)] {
            handle.fire_at(Nanos(at), Rc::clone(&recorder) as Rc<dyn Event>, token);
        }
        rt.run_until(Nanos::MAX);
        let fired = [(5, 2), (5, 4), (7, 1), (7, 3)].map(|(at, token)| (Nanos(at), token));
        assert_eq!(*recorder.fired.borrow(), fired);
    }
}

#[test]
#[should_panic(expected = "an event was armed for 4 ns, but it is 5 ns already")]
fn an_event_in_the_past_is_refused() {
    let rt = Runtime::new(1);
    let handle = rt.handle();
    rt.block_on(async move {
        handle.sleep(Nanos(5)).await;
        let recorder = Recorder { handle: handle.clone(), fired: RefCell::default() };
        handle.fire_at(Nanos(4), Rc::new(recorder), 0);
    });
}

#[test]
fn join_all_drives_at_once_and_keeps_order() {
    let rt = Runtime::with_order(1, TaskOrder::Fifo);
    let handle = rt.handle();
    let results = rt.block_on(async move {
        let sleepers = [30, 10, 20].map(|span| {
            let handle = handle.clone();
            async move {
                handle.sleep(Nanos(span)).await;
                (span, handle.now())
            }
        });
        join_all(sleepers).await
    });
    assert_eq!(results, [30, 10, 20].map(|span| (span, Nanos(span))));
}

#[test]
fn join_all_of_nothing_ends_at_once() {
    let rt = Runtime::new(1);
    assert!(rt.block_on(join_all(Vec::<std::future::Ready<()>>::new())).is_empty());
}

#[test]
fn microseconds_of_a_profile_round_to_nanoseconds() {
    assert_eq!(Nanos::from_micros_f64(0.000_4), Nanos::ZERO);
    assert_eq!(Nanos::from_micros_f64(0.000_6), Nanos(1));
    assert_eq!(Nanos::from_micros_f64(75.25), Nanos(75_250));
    assert_eq!(Nanos::from_micros_f64(-1.0), Nanos::ZERO);
    assert_eq!(Nanos::from_micros_f64(f64::NAN), Nanos::ZERO);
    assert_eq!(Nanos::from_micros_f64(f64::INFINITY), Nanos::MAX);
}

/// Returns the number of instants until no event is left, and the last instant.
fn instants(rt: &Runtime) -> (u32, Nanos) {
    let count = Cell::new(0);
    rt.run_until_true(|| {
        count.set(count.get() + 1);
        false
    });
    (count.get() - 1, rt.handle().now())
}

#[test]
fn a_sleep_that_is_dropped_takes_its_timer_back() {
    let rt = Runtime::new(1);
    let handle = rt.handle();
    rt.handle().spawn("impatient", async move {
        let mut late: Vec<_> = (0..1000).map(|n| Box::pin(handle.sleep(Nanos(50 + n)))).collect();
        late.push(Box::pin(handle.sleep(Nanos(20))));
        poll_fn(|cx| {
            let is_over = |sleep: &mut Pin<Box<Sleep>>| sleep.as_mut().poll(cx).is_ready();
            if late.iter_mut().any(is_over) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        drop(late);
        handle.sleep(Nanos(5)).await;
    });
    assert_eq!(instants(&rt), (2, Nanos(25)), "at 20 and at 25, and never again");
}

#[test]
fn timers_that_stay_fire_in_order_among_cancelled_ones() {
    let rt = Runtime::new(1);
    let handle = rt.handle();
    let fired = rt.block_on(async move {
        let mut rng = handle.rng("which");
        let mut sleeps: Vec<_> = (0..2000).map(|_| rng.below(5000) + 1).collect();
        let mut fired = Vec::new();
        let mut running = Vec::new();
        while let Some(span) = sleeps.pop() {
            let mut sleep = Box::pin(handle.sleep_until(Nanos(span)));
            let polled = poll_fn(|cx| Poll::Ready(sleep.as_mut().poll(cx))).await;
            assert!(polled.is_pending());
            running.push((span, sleep));
            if rng.chance(0.7) {
                let at = rng.below(running.len() as u64) as usize;
                drop(running.swap_remove(at));
            }
        }
        let mut expected: Vec<u64> = running.iter().map(|(span, _)| *span).collect();
        expected.sort_unstable();
        while !running.is_empty() {
            poll_fn(|cx| {
                let before = running.len();
                running.retain_mut(|(span, sleep)| {
                    let is_over = sleep.as_mut().poll(cx).is_ready();
                    if is_over {
                        assert_eq!(handle.now(), Nanos(*span));
                        fired.push(*span);
                    }
                    !is_over
                });
                if running.len() < before { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        }
        assert_eq!(fired, expected);
        fired.len()
    });
    assert!((500..700).contains(&fired), "{fired} of 2000 stayed");
}
