//! Jobs: streams of operations on a block drive, as TOML with the terms of fio.
//!
//! ```toml
//! name = "readers-and-a-writer"
//! precondition = "random"      # or "sequential", "empty"
//! fill = 0.9                   # share of each set, written before the job
//!
//! [[stream]]
//! name = "reads"
//! set = 1                      # or "all"
//! rw = "randread"              # read, write, rw, trim, trimwrite, also with the prefix rand
//! random_distribution = "zipf:1.1"
//! depth = 16                   # a closed loop of 16 outstanding operations (fio: iodepth)
//! duration_s = 2.0             # or operations, or bytes; the first limit reached ends it
//!
//! [[stream]]
//! name = "writes"
//! rw = "write"
//! block_bytes = "128KiB"       # fio: bs
//! rate_iops = 500              # an open loop; or rate = "2m", bytes per second
//! duration_s = 2.0
//!
//! [[window]]                   # turns predictable-latency mode on for this set
//! at_s = 4.0
//! set = 1
//! to = "dtwin"
//! ```

use block::nvme::WindowSelect;
use catalogue::{CatalogueError, Entry};
use drives::ssd::Precondition;
use serde::Deserialize;
use workload::trace::TraceError;

use crate::replay::Trace;
use crate::stream::StreamSpec;

/// A job on a block drive.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The name in results.
    pub name: String,
    /// A description in one sentence.
    #[serde(default)]
    pub description: String,
    /// The state of the drive before the job.
    #[serde(default)]
    pub precondition: Before,
    /// The share of each set that was written before the job, from 0 to 1. Default: 1.
    pub fill: Option<f64>,
    /// Whether every written block has a stamp, and every block that is read is checked against the
    /// writes.
    #[serde(default = "yes")]
    pub verify: bool,
    /// The number of latencies to keep individually, for each stream and direction, from the first
    /// operation on.
    #[serde(default)]
    pub samples: usize,
    /// The initial length of a bucket of the timeline, in milliseconds. Buckets grow in long jobs.
    #[serde(default = "default_bucket_ms")]
    pub bucket_ms: f64,
    /// The streams, all concurrent.
    #[serde(default, rename = "stream")]
    pub streams: Vec<StreamSpec>,
    /// The window commands.
    #[serde(default, rename = "window")]
    pub windows: Vec<WindowStep>,
}

/// The state of a drive before a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Before {
    /// Empty, as delivered. A read of a block that was never written needs no read of flash.
    Empty,
    /// Written once, in order.
    Sequential,
    /// Written once in order, then overwritten at random until the steady state.
    #[default]
    Random,
}

impl Before {
    /// All states and their names.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::Empty, "empty"), (Self::Sequential, "sequential"), (Self::Random, "random")];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        let named = Self::ALL.into_iter().find(|(one, _)| *one == self);
        named.expect("all are listed").1
    }

    /// Returns this state for a drive of which the share `fill` was written.
    pub fn on(self, fill: f64) -> Precondition {
        match self {
            Self::Empty => Precondition::Empty,
            Self::Sequential => Precondition::Sequential(fill),
            Self::Random => Precondition::Random(fill),
        }
    }
}

/// A window command of the host.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowStep {
    /// The time of the command, in seconds from the start of the job. A command waits for the
    /// earlier commands of the same set.
    pub at_s: f64,
    /// The number of the set, from 1.
    #[serde(default = "first_set")]
    pub set: u16,
    /// The new window.
    pub to: WindowName,
}

/// A window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WindowName {
    /// The deterministic window: the drive does no background work.
    Dtwin,
    /// The non-deterministic window: the drive does its background work.
    Ndwin,
}

impl WindowName {
    /// Returns the name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dtwin => "DTWIN",
            Self::Ndwin => "NDWIN",
        }
    }
}

impl From<WindowName> for WindowSelect {
    fn from(window: WindowName) -> Self {
        match window {
            WindowName::Dtwin => Self::Dtwin,
            WindowName::Ndwin => Self::Ndwin,
        }
    }
}

fn yes() -> bool {
    true
}

fn first_set() -> u16 {
    1
}

fn default_bucket_ms() -> f64 {
    1.0
}

impl Job {
    /// Creates a job of these streams on a drive in the steady state after random overwriting.
    pub fn new(name: impl Into<String>, streams: Vec<StreamSpec>) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            precondition: Before::default(),
            fill: None,
            verify: true,
            samples: 0,
            bucket_ms: default_bucket_ms(),
            streams,
            windows: Vec::new(),
        }
    }

    /// Surveys the traces that the streams replay, unless done before: reads each trace from
    /// beginning to end, and keeps the survey.
    ///
    /// # Errors
    /// Returns the [`TraceError`] of the first trace that cannot be replayed.
    pub fn look_at_traces(&mut self) -> Result<(), TraceError> {
        for stream in self.streams.iter_mut().filter(|stream| stream.trace.is_none()) {
            let Some(path) = &stream.replay else { continue };
            stream.trace = Some(Trace::look(path, stream.trace_format, stream.replay_action)?);
        }
        Ok(())
    }

    /// Loads the built-in job of this name, or the TOML file at this path.
    ///
    /// # Errors
    /// Returns an error with the problem and the allowed values.
    pub fn load(name_or_path: &str) -> Result<Self, CatalogueError> {
        catalogue::load(name_or_path)
    }

    /// Parses the text of a file; `origin` is its source in messages.
    ///
    /// # Errors
    /// Returns an error with the problem and the allowed values.
    pub fn parse(origin: &str, text: &str) -> Result<Self, CatalogueError> {
        catalogue::parse(origin, text)
    }

    /// Returns the names of the built-in jobs.
    pub fn names() -> Vec<&'static str> {
        Self::BUILT_IN.iter().map(|(name, _)| *name).collect()
    }

    /// Returns the state of the drive before the job.
    pub fn precondition(&self) -> Precondition {
        self.precondition.on(self.fill.unwrap_or(1.0))
    }
}
