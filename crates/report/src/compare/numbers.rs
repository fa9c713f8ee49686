//! The numbers of a result, by name.

use serde_json::Value;

use crate::resolution::{MARK, too_few_samples};
use crate::units::{count_text, span_text, three_digits};

/// A number of a result.
#[derive(Clone, Debug)]
pub(super) struct Number {
    /// The quantity and its unit.
    pub name: String,
    pub value: f64,
    /// Whether the summary includes the number.
    pub is_key: bool,
    /// Whether the number is a percentile of too few samples.
    pub is_thin: bool,
    /// Whether the number counts events, of which there may be none.
    pub is_count: bool,
}

impl Number {
    pub(super) fn text(&self) -> String {
        let mark = if self.is_thin { MARK } else { "" };
        format!("{}{mark}", number_text(self.value))
    }
}

const LATENCIES: [(&str, &str, bool); 7] = [
    ("mean", "mean_us", false),
    ("p50", "p50_us", false),
    ("p90", "p90_us", false),
    ("p99", "p99_us", true),
    ("p99.9", "p999_us", true),
    ("p99.99", "p9999_us", false),
    ("max", "max_us", true),
];

/// The name of the number of operations per second.
pub(super) const THROUGHPUT: &str = "operations/s";
/// The name of the write amplification of a run, or of a set.
pub(super) const AMPLIFICATION: &str = "write amplification";

#[derive(Default)]
struct Numbers(Vec<Number>);

impl Numbers {
    fn add(&mut self, name: impl Into<String>, value: Option<f64>, is_key: bool) {
        let name = name.into();
        let number =
            value.map(|value| Number { name, value, is_key, is_thin: false, is_count: false });
        self.0.extend(number);
    }

    fn count(&mut self, name: String, value: Option<f64>) {
        let before = self.0.len();
        self.add(name, value, false);
        self.0[before..].iter_mut().for_each(|number| number.is_count = true);
    }

    fn latencies(&mut self, of: &str, latency: &Value) {
        let count = latency["count"].as_u64();
        let thin: Vec<&str> = count.into_iter().flat_map(too_few_samples).collect();
        for (name, field, is_key) in LATENCIES {
            let before = self.0.len();
            self.add(format!("{of} {name}, us"), latency[field].as_f64(), is_key);
            self.0[before..].iter_mut().for_each(|number| number.is_thin = thin.contains(&field));
        }
    }
}

/// Returns the numbers of a result of `levelhead bench`.
pub(super) fn of_bench(json: &Value) -> Vec<Number> {
    let mut numbers = Numbers::default();
    numbers.add(THROUGHPUT, json["throughput_ops_per_second"].as_f64(), true);
    for (kind, latency) in json["operations"].as_object().into_iter().flatten() {
        if latency["count"].as_u64() > Some(0) {
            numbers.latencies(kind, latency);
        }
    }
    let all = json["write_amplification"].as_f64();
    numbers.add(AMPLIFICATION, json["run_write_amplification"].as_f64(), true);
    numbers.add("write amplification, load included", all, false);
    numbers.add("flash reads per get", reads_per_get(json), false);
    let load = &json["load"];
    numbers.add("load: puts/s", load["throughput_ops_per_second"].as_f64(), false);
    numbers.latencies("load: put", &load["put"]);
    let flash = &json["flash"];
    let sum = |list: &Value| -> Option<f64> {
        // The `sum` of no numbers would be -0.
        Some(list.as_array()?.iter().filter_map(Value::as_f64).fold(0.0, |sum, one| sum + one))
    };
    for (name, value) in [
        ("flushes", flash["flushes"].as_f64()),
        ("compactions", sum(&flash["compactions"])),
        ("extents collected", flash["extents_collected"].as_f64()),
        ("objects moved", flash["objects_moved"].as_f64()),
        ("blocks erased", flash["blocks_erased"].as_f64()),
        ("writes that waited for room", flash["write_stalls"].as_f64()),
        ("  how long, s", flash["write_stall_seconds"].as_f64()),
        (
            "share of time that dies were busy, %",
            flash["die_utilisation"].as_f64().map(|n| n * 100.0),
        ),
        ("most memory of the index, bytes", json["memory_bytes"]["index_peak"].as_f64()),
        (time_of_run(json), json["virtual_seconds"].as_f64()),
    ] {
        numbers.add(name, value, false);
    }
    // The summary omits the percentiles of the load.
    for number in &mut numbers.0 {
        number.is_key &= !number.name.starts_with("load: ");
    }
    numbers.0
}

/// Returns the name of the run's duration: a store on files runs in real time.
fn time_of_run(json: &Value) -> &'static str {
    if json["store"].is_object() { "real time of the run, s" } else { "virtual time of the run, s" }
}

fn reads_per_get(json: &Value) -> Option<f64> {
    let counts: Vec<f64> =
        json["flash_reads_per_get"].as_array()?.iter().filter_map(Value::as_f64).collect();
    let gets: f64 = counts.iter().sum();
    let reads: f64 =
        counts.iter().zip(0_u32..).map(|(count, reads)| count * f64::from(reads)).sum();
    (gets > 0.0).then(|| reads / gets)
}

/// Returns the write amplification of all sets together, if a job writes to several sets.
fn amplification_of_sets(job: &Value) -> Option<f64> {
    let sets = job["sets"].as_array()?.iter();
    let numbers = sets.filter_map(|set| {
        Some((set["write_amplification"].as_f64()?, set["blocks_written"].as_f64()?))
    });
    let numbers: Vec<(f64, f64)> = numbers.collect();
    let written: f64 = numbers.iter().map(|(_, written)| written).sum();
    let programmed: f64 = numbers.iter().map(|(each, written)| each * written).sum();
    (numbers.len() > 1).then(|| programmed / written)
}

/// Returns the part of a number's name before the direction: the name of the stream. The part is
/// empty if the job's only stream has the name of the job, as on a command line, so that numbers of
/// several such jobs have the same names.
pub(super) fn before_direction(job: &Value, stream: &Value) -> String {
    let is_only = job["streams"].as_array().is_some_and(|streams| streams.len() == 1);
    if is_only && stream["name"] == job["job"] {
        return String::new();
    }
    format!("{}: ", stream["name"].as_str().unwrap_or("stream"))
}

/// Returns the numbers of a result of `levelhead device`.
pub(super) fn of_job(json: &Value) -> Vec<Number> {
    let mut numbers = Numbers::default();
    for stream in json["streams"].as_array().into_iter().flatten() {
        for (direction, part) in stream["directions"].as_object().into_iter().flatten() {
            let of = format!("{}{direction}", before_direction(json, stream));
            let rate = part["operations_per_second"].as_f64();
            numbers.add(format!("{of} {THROUGHPUT}"), rate, true);
            let bytes = part["bytes_per_second"].as_f64();
            numbers.add(format!("{of} MB/s"), bytes.map(|bytes| bytes / 1e6), false);
            numbers.latencies(&of, &part["latency"]);
        }
    }
    for set in json["sets"].as_array().into_iter().flatten() {
        let of = format!("set {}", set["set"].as_u64().unwrap_or(0));
        let amplification = set["write_amplification"].as_f64();
        numbers.add(format!("{of}: {AMPLIFICATION}"), amplification, true);
        for (name, field) in [
            ("blocks read", "blocks_read"),
            ("blocks written", "blocks_written"),
            ("blocks moved", "slots_moved"),
            ("superblocks collected", "collections"),
        ] {
            numbers.count(format!("{of}: {name}"), set[field].as_f64());
        }
    }
    numbers.add(format!("all sets: {AMPLIFICATION}"), amplification_of_sets(json), true);
    numbers.add("virtual time of the job, s", json["virtual_seconds"].as_f64(), false);
    numbers.0
}

/// Returns a number as text for people.
pub(super) fn number_text(value: f64) -> String {
    let is_count = value >= 0.0 && (value.fract() == 0.0 || value >= 1000.0);
    match value {
        value if is_count => count_text(value.round() as u64),
        value if value < 0.1 => span_text(value),
        value => three_digits(value),
    }
}
