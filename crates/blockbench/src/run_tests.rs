//! Jobs on a device with simple timing: the results can be calculated.

use std::cell::RefCell;
use std::rc::Rc;

use block::BlockDevice;
use runtime::{IoClass, Nanos, Runtime};
use workload::Stop;

use crate::fake::{BLOCKS, Fake, SERVICE, set};
use crate::operation::Direction;
use crate::run::{Ran, run, watched};
use crate::watch::Watch;
use crate::{Extent, Job, PerDirection, Rw, SetChoice, StreamSpec, WindowName, WindowStep, plan};

fn us(us: u64) -> Nanos {
    Nanos::from_micros(us)
}

/// Returns the same device for each submission queue.
fn own(fake: &Fake, _: u16) -> Fake {
    fake.clone()
}

fn stream(rw: Rw, operations: u64) -> StreamSpec {
    StreamSpec { operations: Some(operations), ..StreamSpec::new(rw) }
}

/// Executes a job on a device with `servers` operations at a time, after `prepare`.
fn ran(job: Job, servers: usize, prepare: impl FnOnce(&Fake)) -> (Ran, Vec<&'static str>) {
    let rt = Runtime::new(1);
    let handle = rt.handle();
    let fake = Fake::new(&handle, servers);
    prepare(&fake);
    let asked = fake.asked.clone();
    let ran = rt.block_on(async move {
        let plan = plan::plan(&job, &fake.sets()).expect("it fits");
        run(&handle, fake, own, plan, Stop::default(), Box::new(|_| ())).await
    });
    let asked = asked.take();
    (ran, asked)
}

fn done(job: Job, servers: usize) -> Ran {
    ran(job, servers, |_| ()).0
}

fn job(streams: Vec<StreamSpec>) -> Job {
    Job { samples: 1_000, bucket_ms: 0.1, ..Job::new("test", streams) }
}

/// Returns start and latency of the operations of a stream, in microseconds.
fn samples(ran: &Ran, stream: usize, direction: Direction) -> Vec<(u64, u64)> {
    let part = ran.streams[stream].direction(direction).expect("it did some");
    part.samples.iter().map(|sample| (sample.at.0 / 1_000, sample.latency.0 / 1_000)).collect()
}

#[test]
fn each_stream_has_a_submission_queue_of_its_own() {
    let rt = Runtime::new(1);
    let handle = rt.handle();
    let (fake, queues) = (Fake::new(&handle, 1), Rc::new(RefCell::new(Vec::new())));
    let streams = job(vec![stream(Rw::RandRead, 1), stream(Rw::RandRead, 1)]);
    let plan = plan::plan(&streams, &fake.sets()).expect("it fits");
    let seen = Rc::clone(&queues);
    let queue = move |fake: &Fake, number: u16| {
        seen.borrow_mut().push(number);
        fake.clone()
    };
    rt.block_on(
        async move { run(&handle, fake, queue, plan, Stop::default(), Box::new(|_| ())).await },
    );
    assert_eq!(queues.take(), [1, 2]);
}

#[test]
fn a_closed_loop_has_its_depth_under_way_and_latency_grows_with_it() {
    for (depth, servers, latency_us, elapsed_us) in
        [(1, 1, 10, 1_000), (4, 1, 40, 1_000), (4, 2, 20, 500), (4, 8, 10, 250)]
    {
        let stream = StreamSpec { depth: Some(depth), ..stream(Rw::RandRead, 100) };
        let ran = done(job(vec![stream]), servers);
        let part = ran.streams[0].direction(Direction::Read).expect("there were reads");
        assert_eq!((part.operations, part.blocks, part.histogram.len()), (100, 100, 100));
        assert_eq!(ran.streams[0].elapsed(), us(elapsed_us), "depth {depth}, {servers} servers");
        let settled =
            samples(&ran, 0, Direction::Read)[depth as usize..].iter().all(|s| s.1 == latency_us);
        assert!(settled, "depth {depth}, {servers} servers");
        assert!((part.summary().p99_us / latency_us as f64 - 1.0).abs() < 0.001);
        assert_eq!((ran.checks.blocks, ran.checks.mismatches), (100, 0));
        let points = ran.timeline.of(0, Direction::Read);
        assert_eq!(points.iter().map(|point| point.count).sum::<u64>(), 100);
        assert_eq!(ran.timeline.bucket, us(100));
    }
}

#[test]
fn an_open_loop_counts_from_the_intended_start() {
    // Half the throughput of the device, then twice its throughput: each operation waits for all
    // earlier ones.
    let slow = StreamSpec { operations_per_second: Some(50_000.0), ..stream(Rw::RandRead, 5) };
    assert_eq!(
        samples(&done(job(vec![slow]), 1), 0, Direction::Read),
        [(0, 10), (20, 10), (40, 10), (60, 10), (80, 10)]
    );
    for depth in [1, 3, 256] {
        let fast = StreamSpec {
            operations_per_second: Some(200_000.0),
            depth: Some(depth),
            duration_s: Some(20e-6),
            operations: None,
            ..stream(Rw::RandRead, 0)
        };
        assert_eq!(
            samples(&done(job(vec![fast]), 1), 0, Direction::Read),
            [(0, 10), (5, 15), (10, 20), (15, 25)],
            "at most {depth} under way"
        );
    }
}

#[test]
fn each_direction_of_a_mix_has_its_rate() {
    let rates = PerDirection { read: 50_000.0, write: 25_000.0, trim: 0.0 };
    let mix = StreamSpec { rate_iops: Some(rates), ..stream(Rw::RandRw, 9) };
    let ran = done(job(vec![mix]), 4);
    let of = |direction| samples(&ran, 0, direction).iter().map(|s| s.0).collect::<Vec<_>>();
    assert_eq!(of(Direction::Read), [0, 20, 40, 60, 80, 100]);
    assert_eq!(of(Direction::Write), [0, 40, 80]);
    let bytes = rates.map(|rate| rate * 8_192.0);
    let mix = StreamSpec {
        rate: Some(bytes),
        block_bytes: PerDirection { read: 8_192, write: 16_384, trim: 4_096 },
        ..stream(Rw::RandRw, 8)
    };
    let ran = done(job(vec![mix]), 4);
    let of = |direction| samples(&ran, 0, direction).iter().map(|s| s.0).collect::<Vec<_>>();
    assert_eq!(of(Direction::Read), [0, 20, 40, 60, 80, 100]);
    assert_eq!(of(Direction::Write), [0, 80], "twice as long, half as often");
}

#[test]
fn an_open_loop_that_falls_behind_says_how_far() {
    let late = |rate| {
        let stream = StreamSpec { operations_per_second: Some(rate), ..stream(Rw::Read, 101) };
        done(job(vec![stream]), 1).streams[0].late
    };
    assert_eq!((late(50_000.0), late(200_000.0)), (Nanos::ZERO, Nanos::ZERO), "it queues");
    let deep = StreamSpec {
        operations_per_second: Some(200_000.0),
        depth: Some(1),
        ..stream(Rw::Read, 101)
    };
    assert_eq!(done(job(vec![deep]), 1).streams[0].late, us(500));
}

#[test]
fn jobs_of_a_stream_have_their_own_depth_end_and_order_and_one_report() {
    let three = StreamSpec {
        numjobs: Some(3),
        depth: Some(2),
        size: Some(Extent::Bytes(10 * 4_096)),
        offset_increment: Some(100 * 4_096),
        ..stream(Rw::RandWrite, 10)
    };
    let rt = Runtime::new(1);
    let handle = rt.handle();
    let fake = Fake::new(&handle, 6);
    let ran = rt.block_on(async move {
        let plan = plan::plan(&job(vec![three]), &fake.sets()).expect("it fits");
        let ran = run(&handle, fake.clone(), own, plan, Stop::default(), Box::new(|_| ())).await;
        for block in 0..BLOCKS {
            let read = fake.read(set(1), block, 1, IoClass::ClientRead).await.expect("it is there");
            let is_written = block < 300 && block % 100 < 10;
            assert_eq!(!read[0].bytes().is_empty(), is_written, "block {block}");
        }
        ran
    });
    let writes = ran.streams[0].direction(Direction::Write).expect("there were some");
    assert_eq!(writes.operations, 30, "each place once, of each job");
    assert_eq!(ran.streams[0].elapsed(), us(50), "six at a time");
}

#[test]
fn a_stonewall_waits_for_all_before_it_and_keeps_those_behind_it_waiting() {
    let (first, second) = (stream(Rw::Read, 5), stream(Rw::Read, 10));
    let wall = StreamSpec { stonewall: true, start_s: 50e-6, ..stream(Rw::Read, 1) };
    let late = StreamSpec { start_s: 150e-6, ..stream(Rw::Read, 1) };
    let ran = done(job(vec![first, second, wall, stream(Rw::Read, 1), late]), 8);
    let starts: Vec<_> = ran.streams.iter().map(|stream| stream.started).collect();
    assert_eq!(starts, [us(0), us(0), us(100), us(100), us(150)]);
}

#[test]
fn a_stream_that_thinks_rests_when_all_under_way_have_ended() {
    let thinks = |depth, every| {
        let stream = StreamSpec {
            depth: Some(depth),
            thinktime_us: Some(100.0),
            thinktime_blocks: Some(every),
            ..stream(Rw::Read, 6)
        };
        samples(&done(job(vec![stream]), 8), 0, Direction::Read)
            .iter()
            .map(|sample| sample.0)
            .collect::<Vec<_>>()
    };
    assert_eq!(thinks(1, 1), [0, 110, 220, 330, 440, 550]);
    assert_eq!(thinks(1, 3), [0, 10, 20, 130, 140, 150]);
    assert_eq!(thinks(2, 1), [0, 0, 110, 110, 220, 220]);
}

#[test]
fn loops_go_over_the_part_so_often() {
    let loops = StreamSpec {
        loops: Some(3),
        operations: None,
        size: Some(Extent::Bytes(10 * 4_096)),
        ..stream(Rw::RandWrite, 0)
    };
    let writes = |stream: &StreamSpec| {
        let ran = done(job(vec![stream.clone()]), 1);
        ran.streams[0].direction(Direction::Write).map(|part| part.operations)
    };
    assert_eq!(writes(&loops), Some(30));
    assert_eq!(writes(&StreamSpec { bytes: Some(4 * 4_096), ..loops }), Some(12));
}

#[test]
fn streams_begin_and_end_when_they_are_to() {
    let first = StreamSpec {
        name: "first".to_owned(),
        start_s: 100e-6,
        bytes: Some(5 * 8_192 + 1),
        block_bytes: 8_192.into(),
        operations: None,
        ..stream(Rw::Write, 0)
    };
    let then = StreamSpec {
        after: Some("first".to_owned()),
        start_s: 7e-6,
        duration_s: Some(25e-6),
        operations: None,
        ..stream(Rw::Read, 0)
    };
    let ran = done(job(vec![first, then]), 1);
    let writes = samples(&ran, 0, Direction::Write);
    assert_eq!(writes, [(100, 10), (110, 10), (120, 10), (130, 10), (140, 10)]);
    assert_eq!(ran.streams[0].direction(Direction::Write).map(|part| part.blocks), Some(10));
    assert_eq!(samples(&ran, 1, Direction::Read), [(157, 10), (167, 10), (177, 10)]);
    assert_eq!((ran.streams[1].started, ran.streams[1].ended), (us(157), us(187)));
}

#[test]
fn operations_stay_in_their_part_of_their_set() {
    let part = StreamSpec {
        set: SetChoice::One(2),
        block_bytes: 16_384.into(),
        offset: Some(Extent::Share(0.5)),
        size: Some(Extent::Bytes(10 * 16_384 + 4_096)),
        ..stream(Rw::RandWrite, 400)
    };
    let rt = Runtime::new(1);
    let handle = rt.handle();
    let fake = Fake::new(&handle, 1);
    rt.block_on(async move {
        let plan = plan::plan(&job(vec![part]), &fake.sets()).expect("it fits");
        run(&handle, fake.clone(), own, plan, Stop::default(), Box::new(|_| ())).await;
        for block in 0..BLOCKS {
            for number in [1, 2] {
                let read = fake
                    .read(set(number), block, 1, IoClass::ClientRead)
                    .await
                    .expect("it is there");
                let is_written = number == 2 && (500..540).contains(&block);
                assert_eq!(!read[0].bytes().is_empty(), is_written, "block {block} of {number}");
            }
        }
    });
}

#[test]
fn flushes_follow_writes_and_are_counted_by_themselves() {
    let stream = StreamSpec { flush_every: Some(3), ..stream(Rw::RandWrite, 7) };
    let (ran, asked) = ran(job(vec![stream]), 1, |_| ());
    assert_eq!(
        asked,
        ["write", "write", "write", "flush", "write", "write", "write", "flush", "write"]
    );
    let flushes = ran.streams[0].direction(Direction::Flush).expect("there were some");
    assert_eq!((flushes.operations, flushes.blocks), (2, 0));
    assert_eq!(ran.timeline.of(0, Direction::Flush), []);
    assert_eq!(samples(&ran, 0, Direction::Write).len(), 7);
}

#[test]
fn trims_are_counted_and_what_trimwrite_trims_is_written_behind_it() {
    let trims = StreamSpec { block_bytes: 8_192.into(), ..stream(Rw::RandTrim, 5) };
    let (ran, asked) = ran(job(vec![trims]), 1, |_| ());
    assert_eq!(asked, ["discard"; 5]);
    let part = ran.streams[0].direction(Direction::Trim).expect("there were some");
    assert_eq!((part.operations, part.blocks), (5, 10));
    assert_eq!(ran.timeline.of(0, Direction::Trim).iter().map(|point| point.count).sum::<u64>(), 5);
    let both = StreamSpec { depth: Some(2), flush_every: Some(2), ..stream(Rw::TrimWrite, 3) };
    let (ran, asked) = crate::run_tests::ran(job(vec![both]), 1, |_| ());
    assert_eq!(asked.iter().filter(|what| **what == "flush").count(), 1);
    for direction in [Direction::Trim, Direction::Write] {
        assert_eq!(ran.streams[0].direction(direction).map(|part| part.operations), Some(3));
    }
    assert_eq!(asked[..3], ["discard", "discard", "write"]);
}

#[test]
fn what_is_trimmed_reads_as_zeros_and_is_no_mismatch() {
    let mix = StreamSpec {
        depth: Some(4),
        trim_percent: Some(40.0),
        size: Some(Extent::Bytes(40_960)),
        set: SetChoice::All,
        ..stream(Rw::RandRw, 2_000)
    };
    let right = done(job(vec![mix.clone()]), 3);
    assert_eq!(right.checks.mismatches, 0, "{:?}", right.checks.first_mismatch);
    let trims = right.streams[0].direction(Direction::Trim).expect("there were some");
    assert!(trims.operations.abs_diff(400) < 80, "{}", trims.operations);
    let (lost, _) = ran(job(vec![mix]), 3, |fake| fake.loses_after.set(100));
    assert!(lost.checks.mismatches > 0);
}

#[test]
fn a_stream_over_all_sets_reads_writes_and_flushes_each() {
    let both = StreamSpec { set: SetChoice::All, flush_every: Some(2), ..stream(Rw::Write, 4) };
    let rt = Runtime::new(1);
    let handle = rt.handle();
    let fake = Fake::new(&handle, 1);
    let asked = fake.asked.clone();
    rt.block_on(async move {
        let plan = plan::plan(&job(vec![both]), &fake.sets()).expect("it fits");
        let ran = run(&handle, fake.clone(), own, plan, Stop::default(), Box::new(|_| ())).await;
        assert_eq!(ran.streams[0].set, None);
        for (number, block, is_written) in
            [(1, 1, true), (2, 1, true), (1, 2, false), (2, 2, false)]
        {
            let read = fake.read(set(number), block, 1, IoClass::ClientRead).await;
            assert_eq!(!read.expect("it is there")[0].bytes().is_empty(), is_written);
        }
    });
    let flushes = asked.borrow().iter().filter(|what| **what == "flush").count();
    assert_eq!(flushes, 4, "twice, of two sets");
}

#[test]
fn window_commands_are_given_in_time_and_in_turn() {
    let step = |at_us: f64, to| WindowStep { at_s: at_us / 1e6, set: 1, to };
    let job = Job {
        windows: vec![step(500.0, WindowName::Ndwin), step(100.0, WindowName::Dtwin)],
        ..job(vec![stream(Rw::RandRead, 1)])
    };
    let (ran, asked) = ran(job, 1, |_| ());
    assert_eq!(asked, ["plm on", "read", "log", "to DTWIN", "log", "to NDWIN"]);
    assert_eq!(ran.started, SERVICE, "the job begins when the mode is on");
    let times = |window: usize| {
        let window = &ran.windows[window];
        (window.to, window.asked.0 / 1_000, window.reached.0 / 1_000, window.lockdown_estimate)
    };
    assert_eq!(times(0), (WindowName::Dtwin, 110, 120, Some(us(7))));
    assert_eq!(times(1), (WindowName::Ndwin, 510, 520, Some(us(7))));
    assert_eq!(ran.ended, us(530), "the job ends with its last command");
}

#[test]
fn lost_writes_are_found_unless_nobody_looks() {
    let mix =
        StreamSpec { depth: Some(4), size: Some(Extent::Bytes(40_960)), ..stream(Rw::RandRw, 400) };
    let loses = |verify| {
        let job = Job { verify, ..job(vec![mix.clone()]) };
        ran(job, 2, |fake| fake.loses_after.set(100)).0
    };
    let found = loses(true);
    assert!(found.checks.mismatches > 0);
    let first = found.checks.first_mismatch.expect("there were some").to_string();
    assert!(first.contains("of set 1 may have version"), "{first}");
    let unseen = loses(false);
    assert_eq!((unseen.checks.blocks, unseen.checks.mismatches), (0, 0));
    let right = done(job(vec![mix]), 2);
    assert_eq!(right.checks.mismatches, 0);
    assert!(right.checks.blocks > 150);
}

#[test]
fn the_first_error_ends_the_job_and_is_told() {
    let reads = StreamSpec { name: "reads".to_owned(), ..stream(Rw::Read, 1_000) };
    let writes = StreamSpec { set: SetChoice::One(2), ..stream(Rw::Write, 1_000) };
    let (ran, _) = ran(job(vec![reads, writes]), 2, |fake| fake.fails_at.set(us(95)));
    let error = ran.first_error.expect("a read failed");
    assert_eq!(
        error,
        "0.000100 s into the job, a read of stream reads: block 9 of NVM set 1 cannot be read back \
         as it was written"
    );
    assert!(ran.ended <= us(110), "{}", ran.ended);
    assert_eq!(ran.streams[0].direction(Direction::Read).map(|part| part.operations), Some(9));
}

#[test]
fn a_job_that_is_asked_to_stop_ends_what_is_under_way_and_reports_it() {
    let rate = StreamSpec { operations_per_second: Some(1.0), ..stream(Rw::RandRead, 100) };
    let job = job(vec![stream(Rw::RandRead, 100_000), rate]);
    let rt = Runtime::new(1);
    let handle = rt.handle();
    let fake = Fake::new(&handle, 1);
    let stop = Stop::default();
    let asks = {
        let stop = stop.clone();
        let told = std::cell::Cell::new(0);
        move |_| {
            told.set(told.get() + 1);
            if told.get() == 2 {
                stop.ask();
            }
        }
    };
    let ran = rt.block_on(async move {
        let plan = plan::plan(&job, &fake.sets()).expect("it fits");
        run(&handle, fake, own, plan, stop, Box::new(asks)).await
    });
    let part = ran.streams[0].direction(Direction::Read).expect("it did some");
    assert!(ran.is_interrupted && (4_095..4_100).contains(&part.operations), "{}", part.operations);
    assert!(ran.ended - ran.started < us(50_000), "no waiting for what does not begin any more");
    assert!(!done(crate::run_tests::job(vec![stream(Rw::RandRead, 100)]), 1).is_interrupted);
}

/// The drive is busy with background work and completes no operation.
#[test]
fn a_job_whose_drive_is_busy_with_itself_tells_how_far_it_is_and_ends_when_asked() {
    let rt = Runtime::new(1);
    let handle = rt.handle();
    let fake = Fake::new(&handle, 1);
    let (own_work, server) = (handle.clone(), fake.servers.acquire(1));
    drop(handle.spawn("work of the drive's own", async move {
        let _server = server.await;
        loop {
            own_work.sleep(us(1)).await;
        }
    }));
    rt.run_ready();
    let (stop, told) = (Stop::default(), Rc::new(std::cell::Cell::new(0)));
    let watch = Rc::new(Watch::new(stop.clone()));
    let asks = {
        let (stop, told) = (stop.clone(), Rc::clone(&told));
        move |_| {
            told.set(told.get() + 1);
            if told.get() == 4 {
                stop.ask();
            }
        }
    };
    let (job, watched_by) = (job(vec![stream(Rw::RandRead, 100)]), Rc::clone(&watch));
    let ran = rt.block_on_watched(
        async move {
            let plan = plan::plan(&job, &fake.sets()).expect("it fits");
            let device = (fake, Box::new(|_| 0_u64) as _);
            watched(&handle, device, own, plan, (stop, watched_by), Box::new(asks)).await
        },
        &|| watch.look(),
    );
    assert!(ran.is_interrupted && told.get() > 4, "told {} times", told.get());
    assert!(ran.streams[0].direction(Direction::Read).is_none(), "nothing was read");
}
