//! Cores and links: plain queueing arithmetic.

use std::rc::Rc;

use runtime::{Cores, Nanos, Pipe, Runtime, join_all};

/// Returns the end times of jobs of these lengths that are submitted at the same time to `count`
/// cores.
fn ends(count: usize, jobs: &[u64]) -> Vec<u64> {
    let rt = Runtime::new(1);
    let cores = Cores::new(rt.handle(), count, Nanos(100));
    let handle = rt.handle();
    let jobs = jobs.to_vec();
    rt.block_on(async move {
        let running = jobs.iter().map(|job| {
            let (done, handle) = (cores.spend(Nanos(*job)), handle.clone());
            async move {
                done.await;
                handle.now().0
            }
        });
        join_all(running.collect::<Vec<_>>()).await
    })
}

#[test]
fn as_many_jobs_run_at_once_as_there_are_cores_and_the_rest_in_order() {
    assert_eq!(ends(1, &[30, 10, 20]), [30, 40, 60]);
    assert_eq!(ends(3, &[30, 10, 20]), [30, 10, 20]);
    assert_eq!(ends(2, &[30, 10, 20, 5, 5]), [30, 10, 30, 35, 35]);
}

#[test]
fn work_of_no_length_waits_for_no_core() {
    assert_eq!(ends(1, &[30, 0, 20]), [30, 0, 50]);
}

#[test]
fn a_core_that_was_idle_does_not_work_in_the_past() {
    let rt = Runtime::new(1);
    let (handle, cores) = (rt.handle(), Cores::new(rt.handle(), 1, Nanos(100)));
    let (first, second, busy) = rt.block_on(async move {
        let first = cores.book(Nanos(10));
        handle.sleep(Nanos(50)).await;
        (first, cores.book(Nanos(10)), cores.busy())
    });
    assert_eq!((first, second, busy), (Nanos(10), Nanos(60), Nanos(20)));
}

#[test]
fn background_work_holds_a_core_for_one_quantum_at_a_time() {
    let rt = Runtime::new(1);
    let cores = Rc::new(Cores::new(rt.handle(), 1, Nanos(100)));
    let (handle, shared) = (rt.handle(), Rc::clone(&cores));
    let background = rt.handle().spawn("background", async move {
        shared.spend_in_background(Nanos(1_050)).await;
        handle.now()
    });
    let handle = rt.handle();
    let foreground = rt.block_on(async move {
        let mut ends = Vec::new();
        for arrival in [10, 250, 777] {
            handle.sleep_until(Nanos(arrival)).await;
            cores.spend(Nanos(5)).await;
            ends.push(handle.now().0);
        }
        (ends, background.await)
    });
    // Slices end at 100, 205, 305, 410, ... because each foreground job moves them by 5.
    assert_eq!(foreground.0, [105, 310, 815]);
    assert_eq!(foreground.1, Nanos(1_050 + 3 * 5));
}

#[test]
fn background_jobs_share_a_core_in_turns() {
    let rt = Runtime::new(1);
    let cores = Rc::new(Cores::new(rt.handle(), 1, Nanos(100)));
    let run = |work: u64| {
        let (handle, cores) = (rt.handle(), Rc::clone(&cores));
        rt.handle().spawn("background", async move {
            cores.spend_in_background(Nanos(work)).await;
            handle.now().0
        })
    };
    let (long, short) = (run(1_000), run(100));
    let ends = rt.block_on(async move { (long.await, short.await) });
    assert_eq!(ends.0, 1_100);
    assert!(ends.1 <= 200, "the short job waited for {} ns", ends.1);
}

#[test]
fn a_pipe_carries_one_transfer_after_the_other() {
    let rt = Runtime::new(1);
    let (handle, pipe) = (rt.handle(), Pipe::new(rt.handle(), 1_000.0)); // One byte per ns.
    let ends = rt.block_on(async move {
        let mut ends = vec![pipe.book(4_096), pipe.book(100), pipe.book(0)];
        handle.sleep(Nanos(10_000)).await;
        ends.push(pipe.book(1));
        ends
    });
    assert_eq!(ends, [4_096, 4_196, 4_196, 10_001].map(Nanos));
}

#[test]
fn the_speed_of_a_pipe_is_in_decimal_megabytes_and_parts_of_a_nanosecond_count_as_one() {
    let rt = Runtime::new(1);
    assert_eq!(Pipe::new(rt.handle(), 3_200.0).book(4_096), Nanos(1_283)); // 313 ps per byte.
    assert_eq!(Pipe::new(rt.handle(), 800.0).book(1), Nanos(2));
    assert_eq!(Pipe::new(rt.handle(), 800.0).book(4), Nanos(5));
}
