//! The built-in jobs, and the checks of a job that do not depend on the drive.

use block::BLOCK_BYTES;
use catalogue::bounds::Number;
use catalogue::{Entry, bounds, unprintable};
use report::units::printable;

use crate::block_sizes::MAX_BLOCK_BYTES;
use crate::job::{Before, Job};
use crate::per_direction::PerDirection;
use crate::sets::SetChoice;
use crate::size::{Extent, default_block_bytes};
use crate::stream::{Rates, Rw, StreamSpec};

/// The maximum number of outstanding operations of a stream.
const MAX_DEPTH: u32 = 65_536;
/// The maximum number of individual latencies to keep.
const MAX_SAMPLES: usize = 100_000_000;
/// The maximum number of I/O submission queues of an NVMe controller: each job of each stream has
/// one.
const MAX_STREAMS: u64 = 65_535;
/// The longest open loop without `duration_s`, in seconds: thirty years, of the 584 years of the
/// clock.
const LONGEST_SECONDS: f64 = 30.0 * 365.0 * 86_400.0;
/// The longest time in a job, in seconds: ten days.
const MAX_SECONDS: f64 = 864_000.0;

impl Entry for Job {
    const KIND: &'static str = "job";
    const BUILT_IN: &'static [(&'static str, &'static str)] = &[
        ("randread-qd1", include_str!("../jobs/randread-qd1.toml")),
        ("randread-qd64", include_str!("../jobs/randread-qd64.toml")),
        ("randwrite-qd32", include_str!("../jobs/randwrite-qd32.toml")),
        ("mixed-70-30", include_str!("../jobs/mixed-70-30.toml")),
        ("seqread", include_str!("../jobs/seqread.toml")),
        ("seqwrite", include_str!("../jobs/seqwrite.toml")),
        ("windows", include_str!("../jobs/windows.toml")),
        ("isolation", include_str!("../jobs/isolation.toml")),
        ("probe-30k", include_str!("../jobs/probe-30k.toml")),
    ];

    const ALIASES: &'static [(&'static str, &'static str)] = &[
        ("bs", "block_bytes"),
        ("read_iolog", "replay"),
        ("fsync", "flush_every"),
        ("iodepth", "depth"),
        ("io_size", "bytes"),
        ("number_ios", "operations"),
        ("rate_process", "arrivals"),
        ("runtime", "duration_s"),
        ("rwmixread", "read_percent"),
        ("startdelay", "start_s"),
        ("thinktime", "thinktime_us"),
        ("trim_percentage", "trim_percent"),
    ];

    fn problems(&self) -> Vec<String> {
        problems(self)
    }
}

/// Returns all problems of a job.
pub(super) fn problems(job: &Job) -> Vec<String> {
    let texts = [("name", &job.name), ("description", &job.description)];
    let mut problems: Vec<_> =
        texts.into_iter().filter_map(|(key, text)| unprintable(key, text)).collect();
    if job.streams.is_empty() {
        problems.push("it has no [[stream]]: give at least one".to_owned());
    }
    let all: u64 = job.streams.iter().map(|stream| u64::from(stream.jobs())).sum();
    if all > MAX_STREAMS {
        problems.push(format!(
            "it has {all} streams: allowed are {MAX_STREAMS}, one for each submission queue of NVMe"
        ));
    }
    problems.extend(bounds::range("samples", job.samples, 0..=MAX_SAMPLES));
    match (job.fill, job.precondition) {
        (Some(_), Before::Empty) => {
            problems.push("fill is of no use with precondition = \"empty\": leave it out".into());
        }
        (Some(fill), _) if !(0.0..=1.0).contains(&fill) => {
            problems.push(format!("fill = {fill}: allowed is a share of the set, 0 to 1"));
        }
        _ => {}
    }
    if !(1e-3..=1e6).contains(&job.bucket_ms) {
        problems.push(format!("bucket_ms = {}: allowed is 0.001 to 1000000", job.bucket_ms));
    }
    for (i, stream) in job.streams.iter().enumerate() {
        let place = place(i, stream);
        let of_stream = of_stream(stream).into_iter().chain(of_order(&job.streams, i));
        problems.extend(of_stream.map(|problem| format!("{place}: {problem}")));
    }
    for (i, step) in job.windows.iter().enumerate() {
        if !is_time(step.at_s) {
            problems.push(format!("window {}: at_s = {}: {TIME}", i + 1, step.at_s));
        }
        if step.set == 0 {
            problems.push(format!("window {}: {SET}", i + 1));
        }
    }
    problems
}

const TIME: &str = "allowed are seconds from 0 to 864000";
const NAME: &str = "name has control characters: leave them out";
const SET: &str = "set = 0: sets are numbered from 1 on";

/// Returns the name of a stream for messages.
pub(super) fn place(index: usize, stream: &StreamSpec) -> String {
    let number = index + 1;
    if stream.name.is_empty() {
        format!("stream {number}")
    } else {
        format!("stream {number} ({})", printable(&stream.name))
    }
}

fn is_time(seconds: f64) -> bool {
    (0.0..=MAX_SECONDS).contains(&seconds)
}

fn of_stream(stream: &StreamSpec) -> Vec<String> {
    let mut problems = Vec::new();
    let mut unless = |is_right: bool, problem: String| {
        if !is_right {
            problems.push(problem);
        }
    };
    let whole = u64::from(BLOCK_BYTES);
    let is_right =
        |block: u64| block > 0 && block.is_multiple_of(whole) && block <= MAX_BLOCK_BYTES;
    let PerDirection { read, write, trim } = stream.block_bytes.map(|block| is_right(*block));
    unless(unprintable("the name", &stream.name).is_none(), NAME.to_owned());
    unless(stream.set != SetChoice::One(0), SET.to_owned());
    unless(
        read && write && trim,
        format!("block_bytes = {}: allowed are multiples of 4096 up to 16 MiB", stream.block_bytes),
    );
    if let Some(percent) = stream.read_percent {
        unless(
            stream.rw.is_mixed(),
            format!("read_percent is for rw = \"rw\" and \"randrw\", not {}", stream.rw.name()),
        );
        let is_percent = (0.0..=100.0).contains(&percent);
        unless(is_percent, format!("read_percent = {percent}: allowed is 0 to 100"));
    }
    let depth = stream.outstanding();
    unless((1..=MAX_DEPTH).contains(&depth), format!("depth = {depth}: allowed is 1 to 65536"));
    let start = stream.start_s;
    unless(is_time(start), format!("start_s = {start}: {TIME}"));
    let every = stream.flush_every;
    unless(every != Some(0), "flush_every = 0: allowed is 1 or more".to_owned());
    problems.extend(of_rates(stream));
    problems.extend(of_jobs(stream));
    problems.extend(of_pattern(stream));
    problems.extend(of_replay(stream));
    problems.extend(of_end(stream));
    problems.extend(of_part(stream));
    problems
}

/// Checks the rates of an open loop.
fn of_rates(stream: &StreamSpec) -> Vec<String> {
    let mut problems = Vec::new();
    let given = [
        ("rate", stream.rate.is_some()),
        ("rate_iops", stream.rate_iops.is_some()),
        ("operations_per_second", stream.operations_per_second.is_some()),
    ];
    let given: Vec<&str> = given.iter().filter(|(_, is)| *is).map(|(name, _)| *name).collect();
    if let [first, second, ..] = given[..] {
        problems.push(format!("{first} and {second} both say how fast it goes: give one of them"));
    }
    let (Some(rates), Some(total)) = (stream.rates(), stream.total_rate()) else {
        if stream.arrivals.is_some() {
            let words = "arrivals are those of an open loop: give rate_iops, or leave it out";
            problems.push(words.to_owned());
        }
        return problems;
    };
    problems.extend(of_rate(stream, rates));
    // Without a number of operations, another check reports the missing end.
    let has_number = stream.operations.is_some() || stream.bytes.is_some();
    let is_long = total > 0.0 && stream.operation_limit() as f64 / total > LONGEST_SECONDS;
    if stream.duration_s.is_none() && has_number && is_long {
        let name = given[0];
        problems.push(format!("{name}: so many operations take more than 30 years at it"));
    }
    if stream.thinktime_us.is_some_and(|us| us > 0.0) {
        problems.push(format!("thinktime_us is for a closed loop: leave it or {} out", given[0]));
    }
    problems
}

/// Returns the problem of the rates, if there is one.
fn of_rate(stream: &StreamSpec, rates: Rates) -> Option<String> {
    let (name, unit, most, rates) = match rates {
        Rates::Total(rate) => ("operations_per_second", "operations", 1e9, rate.into()),
        Rates::Operations(rates) => ("rate_iops", "operations", 1e9, rates),
        Rates::Bytes(rates) => ("rate", "bytes", 1e13, rates),
    };
    let directions = stream.directions();
    let missing = directions.iter().find(|direction| *rates.of(**direction) == 0.0);
    if let (Some(missing), true) = (missing, directions.iter().any(|d| *rates.of(*d) > 0.0)) {
        return Some(format!(
            "{name} has none for {}s: give each direction one, or make two streams of it",
            missing.name()
        ));
    }
    let wrong = directions.iter().map(|d| *rates.of(*d)).find(|r| !(1e-6..=most).contains(r))?;
    Some(format!(
        "{name} = {}: allowed are {unit} per second from 0.000001 to {most:e}",
        wrong.text()
    ))
}

/// Checks the number of jobs of a stream, and their pauses.
fn of_jobs(stream: &StreamSpec) -> Vec<String> {
    let mut problems = Vec::new();
    if stream.numjobs == Some(0) {
        problems.push("numjobs = 0: allowed is 1 or more".to_owned());
    }
    if stream.offset_increment.is_some_and(|by| !by.is_multiple_of(u64::from(BLOCK_BYTES))) {
        problems.push("offset_increment: allowed are multiples of 4096 bytes".to_owned());
    }
    if let Some(us) = stream.thinktime_us
        && !is_time(us / 1e6)
    {
        problems.push(format!("thinktime_us = {us}: allowed are 0 to 864000000000 microseconds"));
    }
    match (stream.thinktime_blocks, stream.thinktime_us) {
        (Some(0), _) => problems.push("thinktime_blocks = 0: allowed is 1 or more".to_owned()),
        (Some(_), None) => problems.push("thinktime_blocks: give thinktime_us as well".to_owned()),
        _ => {}
    }
    problems
}

/// Checks trims, sizes and the distribution.
fn of_pattern(stream: &StreamSpec) -> Vec<String> {
    let mut problems = Vec::new();
    let name = stream.rw.name();
    if let Some(percent) = stream.trim_percent {
        if !stream.rw.may_trim() {
            let words = "trim_percent is for rw = \"write\", \"randwrite\", \"rw\" and \"randrw\"";
            problems.push(format!("{words}, not {name}"));
        }
        if !(0.0..=100.0).contains(&percent) {
            problems.push(format!("trim_percent = {percent}: allowed is 0 to 100"));
        }
    }
    if stream.random_distribution.is_some() && !stream.rw.is_random() {
        problems.push(format!("random_distribution is for operations at random, not {name}"));
    }
    if stream.bssplit.is_some() && stream.bsrange.is_some() {
        problems
            .push("bsrange and bssplit both say sizes of operations: give one of them".to_owned());
    }
    problems
}

/// Checks the options of a replay, and those that are not allowed with it.
fn of_replay(stream: &StreamSpec) -> Vec<String> {
    let mut problems = Vec::new();
    if stream.replay.is_none() {
        if stream.rw == Rw::Replay {
            problems.push(
                "it has no rw, which says what it does: give one, or a trace to replay".to_owned(),
            );
        }
        let of_traces = [
            ("trace_format", stream.trace_format.is_some()),
            ("replay_action", stream.replay_action.is_some()),
            ("replay_no_stall", stream.replay_no_stall),
            ("replay_time_scale", stream.replay_time_scale.is_some()),
            ("replay_scale", stream.replay_scale.is_some()),
            ("replay_align", stream.replay_align.is_some()),
        ];
        let given = of_traces.into_iter().filter(|(_, is_given)| *is_given);
        problems
            .extend(given.map(|(key, _)| {
                format!("{key} is for a stream that replays a trace: give replay")
            }));
        return problems;
    }
    let by_itself = [
        ("rw", stream.rw != Rw::Replay),
        ("read_percent", stream.read_percent.is_some()),
        ("trim_percent", stream.trim_percent.is_some()),
        ("random_distribution", stream.random_distribution.is_some()),
        ("block_bytes", stream.block_bytes != default_block_bytes().into()),
        ("bssplit", stream.bssplit.is_some()),
        ("bsrange", stream.bsrange.is_some()),
        ("norandommap", stream.norandommap),
        ("bytes", stream.bytes.is_some()),
        ("loops", stream.loops.is_some()),
        ("numjobs", stream.jobs() > 1),
        ("rate", stream.rate.is_some()),
        ("rate_iops", stream.rate_iops.is_some()),
        ("operations_per_second", stream.operations_per_second.is_some()),
        ("arrivals", stream.arrivals.is_some()),
        ("thinktime_us", stream.thinktime_us.is_some()),
        ("flush_every", stream.flush_every.is_some()),
    ];
    let given = by_itself.into_iter().filter(|(_, is_given)| *is_given);
    problems.extend(given.map(|(key, _)| {
        format!("{key} is of no use with replay, which says it all: leave it out")
    }));
    if let Some(percent) = stream.replay_time_scale
        && !(0.001..=1e6).contains(&percent)
    {
        problems.push(format!(
            "replay_time_scale = {}: allowed is 0.001 to 1000000 percent of the recorded speed",
            percent.text()
        ));
    }
    if stream.replay_time_scale.is_some() && stream.replay_no_stall {
        problems.push(
            "replay_time_scale is of no use with replay_no_stall: leave one of them out".to_owned(),
        );
    }
    if stream.replay_scale == Some(0) {
        problems.push("replay_scale = 0: allowed is 1 or more".to_owned());
    }
    if let Some(align) = stream.replay_align
        && !(align.is_power_of_two() && align <= MAX_BLOCK_BYTES)
    {
        problems.push(format!("replay_align = {align}: allowed are powers of two up to 16 MiB"));
    }
    problems
}

/// Checks the end of a stream.
fn of_end(stream: &StreamSpec) -> Vec<String> {
    let mut problems = Vec::new();
    match stream.duration_s {
        Some(seconds) if !is_time(seconds) || seconds <= 0.0 => {
            problems.push(format!("duration_s = {seconds}: allowed is more than 0 to 864000"));
        }
        None if stream.operations.is_none()
            && stream.bytes.is_none()
            && stream.loops.is_none()
            && stream.replay.is_none() =>
        {
            problems.push(
                "it never ends: give duration_s (--runtime), operations, bytes or loops".to_owned(),
            );
        }
        _ => {}
    }
    if stream.loops == Some(0) {
        problems.push("loops = 0: allowed is 1 or more".to_owned());
    }
    if stream.operations == Some(0) {
        problems.push("operations = 0: allowed is 1 or more".to_owned());
    }
    let largest = stream.sizes().most() * u64::from(BLOCK_BYTES);
    if let Some(bytes) = stream.bytes
        && bytes < largest
    {
        problems.push(format!("bytes = {bytes} are less than one operation of {largest} bytes"));
    }
    problems
}

/// Checks the stream's part of the set.
fn of_part(stream: &StreamSpec) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, extent) in [("offset", stream.offset), ("size", stream.size)] {
        match extent {
            Some(Extent::Bytes(bytes)) if !bytes.is_multiple_of(u64::from(BLOCK_BYTES)) => {
                problems.push(format!(
                    "{name} = {bytes}: allowed are multiples of 4096 bytes, or a share of the set \
                     with a point in it (0.25)"
                ));
            }
            Some(Extent::Share(share)) if !(0.0..=1.0).contains(&share) => {
                problems.push(format!("{name} = {share}: allowed is a share from 0 to 1"));
            }
            _ => {}
        }
    }
    problems
}

/// Checks the relation of a stream to earlier ones.
fn of_order(streams: &[StreamSpec], index: usize) -> Vec<String> {
    let mut problems = Vec::new();
    let (before, stream) = (&streams[..index], &streams[index]);
    let is_there = |name: &str| before.iter().any(|other| other.name == name);
    if !stream.name.is_empty() && is_there(&stream.name) {
        problems.push("an earlier stream has the same name".to_owned());
    }
    if let Some(after) = &stream.after
        && (after.is_empty() || !is_there(after))
    {
        problems.push(format!("after = \"{after}\": allowed are names of earlier streams"));
    }
    problems
}
