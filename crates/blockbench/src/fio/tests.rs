//! Job files of fio: the streams and the notes that result from them.

use super::parse_with;
use crate::{Arrivals, Distribution, Extent, Job, PerDirection, Rw, StreamSpec};

fn read(text: &str) -> (Job, Vec<String>) {
    let loaded = parse_with("dir/jobs.fio", text, &[]).unwrap_or_else(|error| panic!("{error}"));
    (loaded.job.entry, loaded.notes)
}

fn stream(options: &str) -> StreamSpec {
    read(&format!("[job]\n{options}\n")).0.streams.remove(0)
}

/// Returns the error for a job with these options; the first option is in line 2.
fn error(options: &str) -> String {
    let text = format!("[job]\n{options}\n");
    parse_with("jobs.fio", &text, &[]).expect_err(options).to_string()
}

#[test]
fn sections_are_streams_that_begin_as_fio_begins_them() {
    let text = "; four jobs\n[global]\nioengine=libaio\ndirect=1\nsize=64m\nbs=16k\n\n\
                [fill]\nrw=write\niodepth=4\n\n[readers]\nstonewall\nrw=randread\nnumjobs=3\n\
                iodepth=8\nruntime=1m\ntime_based\nstartdelay=500ms\n[readers]\nrw=randread\n\
                [last]\nwait_for=fill\nrw=readwrite\nrwmixwrite=30\nnumber_ios=10\n";
    let (job, notes) = read(text);
    assert_eq!(job.name, "jobs");
    let [fill, readers, twin, last] = &job.streams[..] else { panic!("{:?}", job.streams) };
    let size = Some(Extent::Bytes(64 << 20));
    let common = |rw| StreamSpec {
        block_bytes: 16_384.into(),
        size,
        ends_with_set: true,
        depth: Some(1),
        loops: Some(1),
        ..StreamSpec::new(rw)
    };
    let name = |name: &str| name.to_owned();
    assert_eq!(*fill, StreamSpec { name: name("fill"), depth: Some(4), ..common(Rw::Write) });
    let expected = StreamSpec {
        name: name("readers"),
        stonewall: true,
        numjobs: Some(3),
        depth: Some(8),
        duration_s: Some(60.0),
        start_s: 0.5,
        loops: None,
        ..common(Rw::RandRead)
    };
    assert_eq!(*readers, expected);
    assert_eq!(*twin, StreamSpec { name: name("readers (line 20)"), ..common(Rw::RandRead) });
    let expected = StreamSpec {
        name: name("last"),
        after: Some(name("fill")),
        read_percent: Some(70.0),
        operations: Some(10),
        ..common(Rw::Rw)
    };
    assert_eq!(*last, expected);
    assert_eq!(
        notes,
        [
            "dir/jobs.fio:3: ioengine=libaio is passed over: operations go to the simulated drive",
            "dir/jobs.fio:4: direct=1 is passed over: there is no page cache: operations go to the \
             drive"
        ]
    );
}

#[test]
fn options_mean_what_they_do_with_fio() {
    let rates = |read, write, trim| Some(PerDirection { read, write, trim });
    let of = |options: &str| stream(&format!("ioengine=libaio\n{options}"));
    assert_eq!(of("rw=randrw\nrate_iops=500").rate_iops, rates(500.0, 500.0, 500.0));
    assert_eq!(of("rw=randrw\nrate=1m,512k").rate, rates(1_048_576.0, 524_288.0, 524_288.0));
    assert_eq!(of("rate=1250").rate, rates(1_250.0, 1_250.0, 1_250.0));
    assert_eq!(of("rate_iops=5\nrate_process=poisson").arrivals, Some(Arrivals::Poisson));
    assert_eq!(of("rate_iops=5\nrate_process=linear").arrivals, Some(Arrivals::Fixed));
    let bytes = of("rw=randrw\nbs=8k,4k").block_bytes;
    assert_eq!(bytes, PerDirection { read: 8_192, write: 4_096, trim: 4_096 });
    let split = of("rw=randrw\nbssplit=64k/40:1m/60,1m/100");
    assert_eq!(split.several_sizes().as_deref(), Some("64k/40:1m/60,1m/100"));
    assert_eq!(of("bsrange=4k-4k").several_sizes().as_deref(), Some("4k-4k"));
    assert_eq!(of("thinktime=2ms\nthinktime_blocks=8\nthinktime_spin=5").thinktime_us, Some(2e3));
    assert_eq!((of("io_size=8m\nloops=3").bytes, of("loops=3").loops), (Some(8 << 20), Some(3)));
    let file = of("filesize=1g\nsize=128m");
    assert_eq!((file.size, file.bytes), (Some(Extent::Bytes(1 << 30)), Some(128 << 20)));
    let part = of("size=25%\noffset=1m\noffset_increment=4m");
    assert_eq!((part.size, part.offset), (Some(Extent::Share(0.25)), Some(Extent::Bytes(1 << 20))));
    assert_eq!(part.offset_increment, Some(4 << 20));
    let zones = of("rw=randread\nnorandommap\nrandom_distribution=zoned:50/5:30/15:20/");
    assert_eq!(
        zones.random_distribution,
        Some(Distribution::Zoned(vec![(50.0, 5.0), (30.0, 15.0), (20.0, 80.0)]))
    );
    assert!(zones.norandommap && !of("rw=randread").norandommap);
    assert_eq!(of("fsync=32\nrw=write").flush_every, Some(32));
    assert_eq!(stream("iodepth=32").depth, Some(1), "fio's default engine does one at a time");
    assert_eq!(stream("").rw, Rw::Read, "fio's default");
}

#[test]
fn what_nothing_depends_on_is_passed_over_once_and_told() {
    let (_, notes) = read(
        "[a]\niodepth=4\nioengine=sync\nverify=0\ndirectory=${DIR}\n[b]\ndirectory=/x\n\
         time_based\nthread\n",
    );
    let notes: Vec<&str> =
        notes.iter().map(|note| note.trim_start_matches("dir/jobs.fio:")).collect();
    assert_eq!(
        notes,
        [
            "2: iodepth=4 is passed over: the engine sync does one operation at a time, as with fio",
            "3: ioengine=sync is passed over: operations go to the simulated drive",
            "5: directory=${DIR} is passed over: all jobs go to the one drive, each from its \
             offset on",
            "8: time_based is passed over: it has no runtime to go by",
            "9: thread is passed over: operations take no time of the host's",
        ]
    );
}

#[test]
fn loops_that_fio_goes_over_in_one_order_are_told() {
    let (_, notes) = read("[a]\nrw=randwrite\nloops=3\n[b]\nloops=1\n");
    let words = ": random operations have a new order each time; fio repeats the first";
    assert_eq!(notes, [format!("dir/jobs.fio:3: loops=3{words}")]);
}

#[test]
fn what_is_not_read_is_told_with_its_line_and_what_to_do() {
    for (options, words) in [
        ("rw=read\nverify=crc32c", "jobs.fio:3: verify=crc32c: verify is not read: every block"),
        ("ioengine=rbd", "jobs.fio:2: ioengine=rbd: it reads and writes no drive: give libaio"),
        ("rw=read:-8k", "jobs.fio:2: rw=read:-8k: a number behind what it does is not read"),
        ("bs=512", "jobs.fio:2: bs=512: `512` is 512 bytes, and the drive has blocks of 4096"),
        ("bs=4KiB", "`4KiB` is 4000 bytes"),
        ("bs=${BS}", "bs=${BS}: variables are not expanded: write the value"),
        ("bs", "jobs.fio:2: bs: it needs a value"),
        ("zonemode=zbd", "zonemode is not read: the drive has no zones"),
        ("iodpeth=3", "iodpeth is no option that is read here (did you mean iodepth?)"),
        ("blockalign=8k", "operations begin at multiples of bs"),
        ("ramp_time=5", "ramp_time is not read"),
        ("rw=reed", "unknown variant `reed`"),
        ("startdelay=5-10", "`5-10` is no time"),
        ("rate_iops=5\nrate=4k", "stream 1 (job): rate and rate_iops both say"),
        ("rw=randrw\nrate_iops=500,", "rate_iops has none for writes"),
    ] {
        let error = error(options);
        assert!(error.starts_with("job jobs.fio") && error.contains(words), "{options}: {error}");
    }
    let none = parse_with("jobs.fio", "[global]\nrw=read\n", &[]).expect_err("no job").to_string();
    assert!(none.contains("it has no job: give a section"), "{none}");
}
