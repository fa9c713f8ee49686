//! What a peer may be told, and what it answers: a line of JSON each.

use serde::{Deserialize, Serialize};
use workload::LatencySummary;

/// What to do.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Task {
    /// Put all records, each once.
    Load,
    /// Wait until no background work is left.
    Settle,
    /// A workload for a time.
    Run(Run),
    /// Uniform reads beside uniform overwrites, both in an open loop.
    Tails(Tails),
    /// Puts of new keys, so many made durable at a time, for a time.
    Durable { batch: usize, seconds: f64 },
    /// Close the store.
    Quit,
}

/// A workload for a time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Run {
    /// Built-in workload.
    pub workload: String,
    /// YCSB's request distribution.
    pub distribution: String,
    pub threads: usize,
    pub seconds: f64,
    /// One more thread that overwrites uniformly.
    pub writer: Option<Writer>,
}

/// Reads beside writes, each due at its time whatever the store does.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Tails {
    pub reads_per_second: f64,
    /// 0 for none.
    pub writes_per_second: f64,
    pub seconds: f64,
}

/// How it writes.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Writer {
    /// So many puts a second, evenly spaced.
    Paced(f64),
    /// One after the other.
    FlatOut,
}

/// What came of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    pub operations: u64,
    pub seconds: f64,
    /// Puts a second of the writer beside, if there was one.
    pub writer_rate: Option<f64>,
    /// Of the kind of operation that the task is about.
    pub latency: Latency,
    /// Wrong answers.
    pub mismatches: u64,
    pub error: Option<String>,
    /// Bytes that the process had drives read and write.
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// Written behind the task, by settling; counted as written.
    #[serde(default)]
    pub settled_bytes: u64,
    /// Bytes of keys and values that were put.
    pub user_bytes: u64,
}

impl Outcome {
    /// Operations a second.
    pub fn rate(&self) -> f64 {
        self.operations as f64 / self.seconds.max(1e-9)
    }
}

/// Latencies in microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Latency {
    pub p50: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

impl Latency {
    pub fn of(summary: &LatencySummary) -> Self {
        let LatencySummary { p50_us, p99_us, p999_us, max_us, .. } = *summary;
        Self { p50: p50_us, p99: p99_us, p999: p999_us, max: max_us }
    }
}
