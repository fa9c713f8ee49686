//! Job files: their meaning, and the errors for invalid ones.

use block::BlockDevice;
use drives::ssd::{Precondition, Ssd, SsdProfile};

use crate::{
    Arrivals, Before, BlockRange, BlockSplit, Distribution, Extent, Job, Rw, SetChoice, StreamSpec,
    WindowName, WindowStep, plan,
};

const STREAM: &str = "name = \"t\"\n[[stream]]\nrw = \"randread\"\noperations = 1\n";

/// Returns a job of one stream of reads, with these lines added to the stream.
fn with(lines: &str) -> Result<Job, String> {
    Job::parse("t.toml", &format!("{STREAM}{lines}")).map_err(|error| error.to_string())
}

#[test]
fn a_file_says_what_a_value_says() {
    let text = r#"
        name = "all of it"
        description = "what there is"
        precondition = "sequential"
        fill = 0.5
        verify = false
        samples = 100
        bucket_ms = 2.5

        [[stream]]
        name = "a"
        set = 2
        rw = "randrw"
        rwmixread = 70.0
        bs = "128k"
        iodepth = 8
        runtime = 3.0
        bytes = "1MiB"
        offset = "25%"
        size = 0.5
        fsync = 10

        [[stream]]
        rw = "write"
        operations_per_second = 100.0
        arrivals = "poisson"
        after = "a"
        start_s = 1.0
        operations = 5
        offset = 8192
        size = "1GiB"

        [[window]]
        at_s = 4.0
        to = "dtwin"
    "#;
    let mixed = StreamSpec {
        name: "a".to_owned(),
        set: SetChoice::One(2),
        read_percent: Some(70.0),
        block_bytes: 131_072.into(),
        depth: Some(8),
        duration_s: Some(3.0),
        bytes: Some(1 << 20),
        offset: Some(Extent::Share(0.25)),
        size: Some(Extent::Share(0.5)),
        flush_every: Some(10),
        ..StreamSpec::new(Rw::RandRw)
    };
    let writes = StreamSpec {
        operations_per_second: Some(100.0),
        arrivals: Some(Arrivals::Poisson),
        after: Some("a".to_owned()),
        start_s: 1.0,
        operations: Some(5),
        offset: Some(Extent::Bytes(8_192)),
        size: Some(Extent::Bytes(1 << 30)),
        ..StreamSpec::new(Rw::Write)
    };
    let job = Job {
        description: "what there is".to_owned(),
        precondition: Before::Sequential,
        fill: Some(0.5),
        verify: false,
        samples: 100,
        bucket_ms: 2.5,
        windows: vec![WindowStep { at_s: 4.0, set: 1, to: WindowName::Dtwin }],
        ..Job::new("all of it", vec![mixed, writes])
    };
    assert_eq!(Job::parse("t.toml", text), Ok(job.clone()));
    assert_eq!(job.precondition(), Precondition::Sequential(0.5));
}

#[test]
fn patterns_sizes_trims_and_sets_are_read() {
    let lines = "set = \"all\"\nbssplit = \"4k/60:64k/40\"\nrandom_distribution = \"zipf:1.1\"";
    let stream = &with(lines).expect("it is right").streams[0];
    assert_eq!((stream.set, &stream.bsrange), (SetChoice::All, &None));
    assert_eq!(stream.bssplit, BlockSplit::parse("4k/60:64k/40").ok().map(Into::into));
    assert_eq!(stream.random_distribution, Some(Distribution::Zipf(1.1)));
    let stream = &with("bsrange = \"4k-64k\"").expect("it is right").streams[0];
    assert_eq!(stream.bsrange, BlockRange::parse("4k-64k").ok().map(Into::into));
    assert_eq!(stream.several_sizes().as_deref(), Some("4k-64k"));
    let text =
        "name = \"t\"\n[[stream]]\nrw = \"randrw\"\noperations = 1\ntrim_percentage = 20.0\n";
    let stream = &Job::parse("t.toml", text).expect("it is right").streams[0];
    assert_eq!((stream.read_share(), stream.trim_share(), stream.writes()), (0.5, 0.2, true));
    for (rw, trims, writes) in [
        (Rw::Trim, 1.0, false),
        (Rw::RandTrimWrite, 1.0, true),
        (Rw::Write, 0.0, true),
        (Rw::Read, 0.0, false),
    ] {
        let stream = StreamSpec::new(rw);
        assert_eq!((stream.trim_share(), stream.writes()), (trims, writes), "{rw:?}");
    }
}

#[test]
fn what_is_left_out_has_its_default() {
    let job = with("").expect("it is right");
    let reads = StreamSpec { operations: Some(1), ..StreamSpec::new(Rw::RandRead) };
    assert_eq!(job, Job::new("t", vec![reads.clone()]));
    assert_eq!(job.precondition(), Precondition::Random(1.0));
    assert_eq!((reads.outstanding(), reads.block_bytes), (1, 4_096.into()));
    assert_eq!(with("rate_iops = 5").expect("it is right").streams[0].outstanding(), 256);
}

#[test]
fn wrong_files_are_told_what_is_wrong_where_and_what_is_allowed() {
    let stream = [
        ("rw = 1", "duplicate key"),
        ("block_bytes = 1000", "stream 1: block_bytes = 1000: allowed are multiples of 4096"),
        ("block_bytes = \"lots\"", "`lots` is no size"),
        ("bs = 4.5", "a whole number such as 4096"),
        ("block_bytes = 4096\nbs = 4096", "duplicate field `block_bytes`"),
        ("iodeph = 3", "unknown field `iodeph`, expected one of"),
        ("depth = 0", "stream 1: depth = 0: allowed is 1 to 65536"),
        ("depth = -1", "invalid value: integer `-1`"),
        ("rate_iops = 0", "stream 1: rate_iops = 0: allowed are operations per second"),
        ("rate = 500.0", "rate = 500: rate is bytes per second, as in fio, and takes a unit"),
        ("rate = \"500\"", "for operations per second give rate_iops = 500"),
        ("rate_iops = 5\nrate = \"5k\"", "rate and rate_iops both say how fast it goes"),
        ("rate_iops = \"often\"", "`often` is no rate: write operations per second"),
        ("thinktime = 5.0\nrate_iops = 5", "thinktime_us is for a closed loop"),
        ("thinktime_blocks = 2", "give thinktime_us as well"),
        ("numjobs = 0", "numjobs = 0: allowed is 1 or more"),
        ("offset_increment = 100", "offset_increment: allowed are multiples of 4096"),
        ("arrivals = \"poisson\"", "give rate_iops, or leave it out"),
        ("arrivals = \"often\"", "expected one of `fixed`, `linear`, `poisson`"),
        ("read_percent = 5.0", "read_percent is for rw = \"rw\" and \"randrw\", not randread"),
        ("set = 0", "stream 1: set = 0: sets are numbered from 1 on"),
        ("start_s = -1.0", "start_s = -1: allowed are seconds from 0"),
        ("start_s = nan", "start_s = NaN: allowed are seconds from 0"),
        ("duration_s = 0.0", "duration_s = 0: allowed is more than 0"),
        ("bytes = 100", "bytes = 100 are less than one operation of 4096 bytes"),
        ("flush_every = 0", "flush_every = 0: allowed is 1 or more"),
        ("offset = 1", "offset = 1: allowed are multiples of 4096 bytes, or a share"),
        ("size = 1.5", "size = 1.5: allowed is a share from 0 to 1"),
        ("size = \"half%\"", "`half%` is no share: write it as \"25%\""),
        ("size = -4096", "a size is not negative"),
        ("size = true", "bytes (4096 or \"64MiB\") or a share of the set"),
        ("after = \"a\"", "after = \"a\": allowed are names of earlier streams"),
        ("[[window]]\nat_s = -1.0\nto = \"dtwin\"", "window 1: at_s = -1: allowed are seconds"),
        ("[[window]]\nat_s = 1.0\nto = \"open\"", "expected `dtwin` or `ndwin`"),
        ("[[window]]\nat_s = 1.0\nset = 0\nto = \"dtwin\"", "window 1: set = 0: sets are"),
    ];
    for (lines, words) in stream {
        let error = with(lines).expect_err(lines);
        assert!(error.starts_with("job t.toml:"), "{error}");
        assert!(error.contains(words), "{lines}: {error}");
    }
    let whole = [
        ("", "missing field `name`"),
        ("name = \"t\"", "it has no [[stream]]: give at least one"),
        ("name = \"t\"\nfill = 2.0\n", "fill = 2: allowed is a share of the set, 0 to 1"),
        ("name = \"t\"\nprecondition = \"empty\"\nfill = 0.5\n", "fill is of no use"),
        (
            "name = \"t\"\nprecondition = \"old\"\n",
            "expected one of `empty`, `sequential`, `random`",
        ),
        ("name = \"t\"\nbucket_ms = 0.0\n", "bucket_ms = 0: allowed is 0.001"),
        ("name = \"t\"\n[[stream]]\nrw = \"read\"\n", "stream 1: it never ends: give duration_s"),
        ("name = \"t\"\n[[stream]]\nrw = \"readwrite\"\n", "unknown variant `readwrite`, expected"),
        ("name = \"t\"\n[[stream]]\nrw = \"rw\"\noperations = 0\n", "operations = 0: allowed is 1"),
        (
            "name = \"t\"\n[[stream]]\nrw = \"rw\"\noperations = 1\nread_percent = 101.0\n",
            "read_percent = 101: allowed is 0 to 100",
        ),
    ];
    for (text, words) in whole {
        let error = Job::parse("t.toml", text).expect_err(text).to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
    let twins = "[[stream]]\nname = \"a\"\nrw = \"read\"\noperations = 1\n".repeat(2);
    let error = Job::parse("t.toml", &format!("name = \"t\"\n{twins}")).expect_err("twins");
    assert!(error.to_string().ends_with("stream 2 (a): an earlier stream has the same name"));
}

#[test]
fn wrong_patterns_sizes_and_traces_are_told() {
    let stream = [
        ("trim_percent = 5.0", "trim_percent is for rw = \"write\", \"randwrite\", \"rw\" and"),
        ("bssplit = \"4k/50\"", "come to 50 %, and have to come to 100"),
        ("bsrange = \"64k\"", "`64k` is no range of sizes"),
        ("bssplit = \"4k\"\nbsrange = \"4k-8k\"", "both say sizes of operations"),
        ("random_distribution = \"zipf\"", "allowed are random, zipf:THETA"),
        ("set = \"each\"", "expected the number of a set, from 1 to 65535, or \"all\""),
        ("set = 70000", "invalid value: integer `70000`, expected the number of a set"),
        (
            "bytes = 8192\nbssplit = \"4k/50:64k/50\"",
            "bytes = 8192 are less than one operation of 65536",
        ),
        ("replay = \"x\"", "rw is of no use with replay, which says it all"),
        ("replay_scale = 2", "replay_scale is for a stream that replays a trace: give replay"),
        ("trace_format = \"csv\"", "expected one of `iolog`, `blkparse`, `msr`"),
    ];
    for (lines, words) in stream {
        let error = with(lines).expect_err(lines);
        assert!(error.contains(words), "{lines}: {error}");
    }
    let whole = [
        (
            "name = \"t\"\n[[stream]]\nrw = \"rw\"\noperations = 1\ntrim_percent = -1.0\n",
            "trim_percent = -1: allowed is 0 to 100",
        ),
        (
            "name = \"t\"\n[[stream]]\nrw = \"trim\"\noperations = 1\nrandom_distribution = \"random\"\n",
            "random_distribution is for operations at random, not trim",
        ),
        ("name = \"t\"\n[[stream]]\noperations = 1\n", "it has no rw, which says what it does"),
        (
            "name = \"t\"\n[[stream]]\nreplay = \"x\"\nrate_iops = 5.0\nreplay_time_scale = 0.0\n",
            "stream 1: replay_time_scale = 0: allowed is 0.001 to 1000000 percent",
        ),
    ];
    for (text, words) in whole {
        let error = Job::parse("t.toml", text).expect_err(text).to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}

fn plan_error(lines: &str, profile: &str) -> String {
    let rt = runtime::Runtime::new(1);
    let profile = SsdProfile::load(profile).expect("built in");
    let ssd = Ssd::new(&rt.handle(), &profile, Precondition::Empty);
    let job = with(lines).expect("it is right by itself");
    plan::plan(&job, &ssd.sets()).map(drop).expect_err(lines).to_string()
}

#[test]
fn a_job_that_does_not_fit_the_drive_is_told_why() {
    for (lines, profile, words) in [
        ("set = 2", "baseline-15gb", "stream 1 is for set 2; the drive has set 1 only"),
        (
            "name = \"a\"\nset = 5",
            "vigil-15gb",
            "stream 1 (a) is for set 5; the drive has sets 1 to 4",
        ),
        (
            "offset = \"3GiB\"\nsize = \"1GiB\"",
            "vigil-15gb",
            "stream 1 is for blocks 786432 to 1048575 of 4 KiB, 1 at a time; its set has 915710: \
             change offset, size or block_bytes",
        ),
        ("size = 4096\nbs = \"64k\"", "vigil-15gb", "is for blocks 0 to 0 of 4 KiB, 16 at a time"),
        ("[[window]]\nat_s = 1.0\nset = 9\nto = \"dtwin\"", "vigil-15gb", "window 1 is for set 9"),
        (
            "[[window]]\nat_s = 1.0\nto = \"dtwin\"",
            "baseline-15gb",
            "the job takes set 1 to windows, and the drive has none",
        ),
    ] {
        let error = plan_error(lines, profile);
        assert!(error.contains(words), "{lines}: {error}");
    }
}

#[test]
fn built_in_jobs_are_right_and_fit_the_drive_with_sets() {
    let rt = runtime::Runtime::new(1);
    let profile = SsdProfile::load("vigil-15gb").expect("built in");
    let ssd = Ssd::new(&rt.handle(), &profile, Precondition::Empty);
    for name in Job::names() {
        let job = Job::load(name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(job.name, name);
        assert!(!job.description.is_empty(), "{name}");
        plan::plan(&job, &ssd.sets()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(plan::warnings(&job, &profile), [] as [String; 0]);
    }
    let error = Job::load("randraed").expect_err("a slip of the pen").to_string();
    assert!(error.starts_with("there is no job `randraed`: give one of randread-qd1,"), "{error}");
}

#[test]
fn who_reads_what_nobody_wrote_is_warned() {
    let profile = SsdProfile::load("vigil-15gb").expect("built in");
    let warnings = |job: &Job| plan::warnings(job, &profile);
    let mut job = with("").expect("it is right");
    assert_eq!(warnings(&job), [] as [String; 0]);
    job.fill = Some(0.5);
    assert!(warnings(&job)[0].starts_with("stream 1 reads blocks that were never written"));
    job.streams[0].size = Some(Extent::Share(0.5));
    assert_eq!(warnings(&job), [] as [String; 0]);
    job.streams[0].set = SetChoice::All;
    assert_eq!(warnings(&job), [] as [String; 0]);
    (job.precondition, job.fill) = (Before::Empty, None);
    assert_eq!(warnings(&job).len(), 1);
    job.streams.push(StreamSpec { operations: Some(1), ..StreamSpec::new(Rw::Write) });
    assert_eq!(warnings(&job).len(), 1, "only set 1 is written");
    job.streams[1].set = SetChoice::All;
    assert_eq!(warnings(&job), [] as [String; 0]);
    job.streams[1].rw = Rw::Trim;
    assert_eq!(warnings(&job).len(), 1);
}
