//! Jobs on simulated drives, compared with calculations.

use block::BLOCK_BYTES;
use drives::ssd::SsdProfile;
use workload::LatencySummary;

use crate::{
    Before, BlockSplit, DeviceResult, DeviceSpec, Direction, Distribution, Extent, Job, JobReport,
    Rw, SetChoice, StreamSpec, WindowName, WindowStep, picture, run, table,
};

fn spec(profile: &str, job: Job) -> DeviceSpec {
    DeviceSpec { profile: SsdProfile::load(profile).expect("built in"), job, seed: 1 }
}

fn report(spec: &DeviceSpec) -> JobReport {
    let report = run(spec, |_| ()).expect("it fits");
    assert_eq!((&report.first_error, report.checks.mismatches), (&None, 0));
    report
}

fn stream(rw: Rw, operations: u64) -> StreamSpec {
    StreamSpec { operations: Some(operations), ..StreamSpec::new(rw) }
}

/// Returns the latency of a read without contention, by page type, in microseconds.
fn alone_us(profile: &SsdProfile) -> Vec<f64> {
    let (controller, timing) = (&profile.controller, &profile.flash.timing);
    let (geometry, block) = (&profile.flash.geometry, f64::from(BLOCK_BYTES));
    let share = block / f64::from(geometry.page_bytes);
    let transfer = f64::from(geometry.transfer_bytes) * share / timing.channel_mb_per_s;
    let memory = block / (profile.dram.mb_per_s / f64::from(profile.sets));
    let link = (block + 64.0) / profile.host.read_mb_per_s + profile.host.latency_us;
    let around = controller.command_us + controller.pipeline_us + memory + link;
    let rest = around + timing.command_us + transfer + profile.dram.access_ns / 1e3;
    timing.read_us.iter().map(|sense| sense + rest).collect()
}

#[test]
fn one_read_at_a_time_takes_the_sum_of_its_steps() {
    let spec = spec(
        "baseline-15gb",
        Job { samples: 3_000, ..Job::new("t", vec![stream(Rw::RandRead, 3_000)]) },
    );
    let report = report(&spec);
    let reads = report.streams[0].direction(Direction::Read).expect("there were some");
    let theory = alone_us(&spec.profile);
    let retry_us = spec.profile.flash.errors.as_ref().map_or(0.0, |errors| errors.retry_us);
    for sample in &reads.samples {
        let us = sample.latency.as_micros_f64();
        let is_one = theory
            .iter()
            .any(|theory| [0.0, retry_us].iter().any(|retry| (us - theory - retry).abs() < 0.02));
        assert!(is_one, "{us} us is none of {theory:?}, and of none with a retry");
    }
    let mean = theory.iter().sum::<f64>() / theory.len() as f64;
    assert!((reads.summary().mean_us / mean - 1.0).abs() < 0.01);
    let set = &report.sets[0];
    assert_eq!(set.after.firmware.blocks_read, 3_000);
}

#[test]
fn deep_queues_get_what_the_firmware_gives_of_reads_in_order() {
    let reads = StreamSpec { depth: Some(64), ..stream(Rw::Read, 20_000) };
    let spec = spec("baseline-15gb", Job::new("t", vec![reads]));
    let report = report(&spec);
    let controller = &spec.profile.controller;
    let bound = f64::from(controller.cores) * 1e6 / controller.command_us;
    let got = 20_000.0 / report.elapsed().as_secs_f64();
    assert!((0.8..1.001).contains(&(got / bound)), "{got} reads a second of {bound}");
}

#[test]
fn everything_is_right_while_reads_writes_and_collection_go_on() {
    let mixed = StreamSpec {
        depth: Some(32),
        size: Some(Extent::Share(0.02)),
        flush_every: Some(100),
        ..stream(Rw::RandRw, 60_000)
    };
    let long = StreamSpec {
        set: SetChoice::One(2),
        block_bytes: 65_536.into(),
        depth: Some(4),
        size: Some(Extent::Share(0.01)),
        ..stream(Rw::Rw, 2_000)
    };
    let others = StreamSpec {
        set: SetChoice::One(2),
        size: Some(Extent::Share(0.01)),
        ..stream(Rw::RandRw, 5_000)
    };
    let spec = spec("vigil-15gb", Job::new("t", vec![mixed, long, others]));
    let first = report(&spec);
    assert!(first.checks.blocks > 30_000 + 14_000);
    assert!(first.sets[0].after.firmware.collections > 0);
    assert_eq!(first.streams[1].name, "rw");
    assert_eq!((&*first.streams[0].name, &*first.streams[2].name), ("randrw 1", "randrw 3"));
    let text = |report: &JobReport| {
        serde_json::to_string(&DeviceResult::new(&spec, report)).expect("numbers and strings")
    };
    let second = report(&spec);
    assert_eq!(text(&first), text(&second), "the same seed gives the same bytes");
    assert_eq!(picture::timeline_svg(&spec, &first), picture::timeline_svg(&spec, &second));
    let other = report(&DeviceSpec { seed: 2, ..spec.clone() });
    assert_ne!(text(&first), text(&other));
    let table = table::render(&DeviceResult::new(&spec, &first));
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    for words in ["| randrw 1: flush", "write amplification", "verified: all "] {
        assert!(table.contains(words), "no `{words}` in\n{table}");
    }
}

#[test]
fn trims_on_a_drive_are_right_and_make_room() {
    let mix = |trim_percent| StreamSpec {
        depth: Some(16),
        set: SetChoice::All,
        trim_percent: Some(trim_percent),
        random_distribution: Some(Distribution::Zipf(0.9)),
        bssplit: BlockSplit::parse("4k/70:64k/30").ok().map(Into::into),
        size: Some(Extent::Share(0.05)),
        ..stream(Rw::RandRw, 20_000)
    };
    let of = |trim_percent| spec("vigil-15gb", Job::new("t", vec![mix(trim_percent)]));
    let report = report(&of(30.0));
    assert!(report.checks.blocks > 10_000);
    let trims = report.streams[0].direction(Direction::Trim).expect("there were some");
    assert!(trims.operations.abs_diff(3_000) < 250, "{}", trims.operations);
    assert!(report.sets.iter().all(|set| set.after.firmware.blocks_read > 0));
    let result = DeviceResult::new(&of(30.0), &report);
    let stream = &result.streams[0];
    assert_eq!((stream.set, stream.trim_share), (SetChoice::All, Some(0.3)));
    assert_eq!(stream.block_sizes.as_deref(), Some("4k/70:64k/30"));
    assert!(stream.block_bytes.abs_diff(22_528) < 1_500, "{}", stream.block_bytes);
    let table = table::render(&result);
    assert!(table.contains("randrw 4k/70:64k/30, 50 % reads, zipf:0.9"), "{table}");
}

#[test]
fn what_one_may_have_missed_is_said_in_the_table() {
    let trims = stream(Rw::RandTrim, 300);
    let late = StreamSpec {
        operations_per_second: Some(1e6),
        depth: Some(1),
        size: Some(Extent::Share(0.1)),
        ..stream(Rw::RandWrite, 2_000)
    };
    let job = Job { precondition: Before::Empty, ..Job::new("t", vec![trims, late]) };
    let mut spec = spec("vigil-15gb", job);
    spec.profile.background.discarded_ranges = 20;
    let result = DeviceResult::new(&spec, &report(&spec));
    let table = table::render(&result);
    for words in [
        "| 1 of 4 |",
        "trims ignored, with no room for them",
        "randwrite fell behind: its last operation began ",
        "no superblock was collected: the drive had room for all that was written",
    ] {
        assert!(table.contains(words), "no `{words}` in\n{table}");
    }
    spec.job.precondition = Before::Random;
    spec.job.streams[1].operations_per_second = None;
    spec.profile.background.discarded_ranges = 1_000;
    let table = table::render(&DeviceResult::new(&spec, &report(&spec)));
    for words in ["trims ignored", "fell behind"] {
        assert!(!table.contains(words), "`{words}` in\n{table}");
    }
}

#[test]
fn a_drive_that_is_all_but_full_is_told_as_such() {
    let spec = spec("vigil-15gb", Job::new("t", vec![stream(Rw::RandWrite, 100)]));
    let mut result = DeviceResult::new(&spec, &report(&spec));
    let words = "set 1 is all but full: collection moved 40.0 blocks for each that";
    let mut told = |moved, reclaims| {
        let set = &mut result.sets[0];
        (set.slots_flushed, set.slots_moved) = (1_000, moved);
        (set.collections, set.wear_moves, set.reclaims) = (3, 0, reclaims);
        table::render(&result).contains(words)
    };
    assert!(told(40_000, 0));
    assert!(!told(4_000, 0), "that is usual");
    assert!(!told(40_000, 30_000), "that was for the reads");
}

#[test]
fn reads_in_a_deterministic_window_meet_nothing() {
    let step = |at_s, to| WindowStep { at_s, set: 1, to };
    let reads = StreamSpec {
        name: "reads".to_owned(),
        operations_per_second: Some(2_000.0),
        duration_s: Some(6.5),
        ..StreamSpec::new(Rw::RandRead)
    };
    let writes = StreamSpec {
        operations_per_second: Some(4_000.0),
        duration_s: Some(4.9),
        ..StreamSpec::new(Rw::RandWrite)
    };
    let job = Job {
        windows: vec![step(5.0, WindowName::Dtwin), step(6.0, WindowName::Ndwin)],
        samples: 100_000,
        ..Job::new("t", vec![reads, writes])
    };
    let spec = spec("vigil-15gb", job);
    let report = report(&spec);
    let firmware = &report.sets[0].after.firmware;
    assert_eq!((firmware.windows_entered, firmware.windows_broken), (1, 0));
    let [entered, left] = &report.windows[..] else { panic!("two commands") };
    let reads = report.stream("reads").and_then(|s| s.direction(Direction::Read)).expect("reads");
    let longest = |from, to| {
        let among = reads.samples.iter().filter(|s| s.at >= from && s.at < to);
        among.map(|s| s.latency.as_micros_f64()).fold(0.0, f64::max)
    };
    let alone = alone_us(&spec.profile).into_iter().fold(0.0, f64::max);
    assert!(longest(entered.reached, left.asked) < alone * 2.0);
    assert!(longest(runtime::Nanos::ZERO, entered.asked) > alone * 5.0, "NDWIN disturbs");
    let svg = picture::timeline_svg(&spec, &report);
    assert_eq!(svg.matches("set 1: DTWIN").count(), 1);
    assert!(table::render(&DeviceResult::new(&spec, &report)).contains("set 1 to DTWIN"));
}

#[test]
fn reads_after_the_drive_has_left_its_window_stand_apart() {
    let step = |at_s, to| WindowStep { at_s, set: 1, to };
    let reads = StreamSpec {
        name: "reads".to_owned(),
        operations_per_second: Some(1_000.0),
        duration_s: Some(7.0),
        ..StreamSpec::new(Rw::RandRead)
    };
    // The first write ends the window, in the middle of its time.
    let writes = StreamSpec {
        operations_per_second: Some(1_000.0),
        start_s: 5.5,
        duration_s: Some(0.3),
        ..StreamSpec::new(Rw::RandWrite)
    };
    let windows = vec![step(5.0, WindowName::Dtwin), step(6.0, WindowName::Ndwin)];
    let spec = spec("vigil-15gb", Job { windows, ..Job::new("t", vec![reads, writes]) });
    let report = report(&spec);
    let firmware = &report.sets[0].after.firmware;
    assert_eq!((firmware.windows_entered, firmware.windows_broken), (1, 1));
    let result = DeviceResult::new(&spec, &report);
    let reads = &result.streams[0].directions["read"];
    let count = |part: &Option<LatencySummary>| part.as_ref().map_or(0, |part| part.count);
    let (inside, left) = (count(&reads.latency_in_dtwin), count(&reads.latency_after_drive_left));
    assert!((450..=501).contains(&inside) && (495..=501).contains(&left), "{inside}, {left}");
    assert_eq!(inside + left + count(&reads.latency_outside_dtwin), reads.operations);
    let table = table::render(&result);
    for words in
        ["  in DTWIN, ", "  left by the drive, ", "in DTWIN: after the host's DTWIN command"]
    {
        assert!(table.contains(words), "no `{words}` in\n{table}");
    }
    assert!(!table.contains("all but full"), "room was made for the window: {table}");
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
}

#[test]
fn pictures_have_their_numbers_beside_them() {
    let name = "reads, mostly".to_owned();
    let mixed =
        StreamSpec { name, depth: Some(4), read_percent: Some(90.0), ..stream(Rw::RandRw, 2_000) };
    let spec = spec("baseline-15gb", Job { samples: 10, ..Job::new("t", vec![mixed]) });
    let report = report(&spec);
    let rows = |csv: &str, start: &str| csv.lines().filter(|line| line.starts_with(start)).count();
    let samples = picture::samples_csv(&report).expect("ten of each");
    assert_eq!(rows(&samples, "\"reads, mostly\",read,"), 10);
    assert_eq!(rows(&samples, "\"reads, mostly\",write,"), 10);
    assert!(rows(&picture::latency_csv(&report), "\"reads, mostly\",read,") > 100);
    let timeline = picture::timeline_csv(&report);
    let points = report.timeline.of(0, Direction::Read);
    assert_eq!(rows(&timeline, "\"reads, mostly\",read,"), points.len());
    assert_eq!(
        points.iter().map(|point| point.count).sum::<u64>(),
        report.streams[0].direction(Direction::Read).expect("reads").operations
    );
    assert!(picture::latency_svg(&spec, &report).contains("reads, mostly write"));
}
