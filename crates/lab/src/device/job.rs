//! Jobs: what is done to a block drive, as TOML in the words of fio.
//!
//! ```toml
//! name = "readers-and-a-writer"
//! precondition = "random"      # or "sequential", "empty"
//! fill = 0.9                   # of each set, before the job begins
//!
//! [[stream]]
//! name = "reads"
//! set = 1                      # or "all"
//! rw = "randread"              # read, write, rw, trim, trimwrite, and each with rand before it
//! random_distribution = "zipf:1.1"
//! depth = 16                   # a closed loop of so many (fio: iodepth)
//! duration_s = 2.0             # or operations, or bytes; the first that is reached ends it
//!
//! [[stream]]
//! name = "writes"
//! rw = "write"
//! block_bytes = "128KiB"       # fio: bs
//! rate_iops = 500              # an open loop; or rate = "2m", bytes per second
//! duration_s = 2.0
//!
//! [[window]]                   # predictable-latency mode is on for the sets that are named here
//! at_s = 4.0
//! set = 1
//! to = "dtwin"
//! ```

use block::nvme::WindowSelect;
use catalogue::{CatalogueError, Entry};
use serde::Deserialize;
use ssd::Precondition;
use workload::trace::TraceError;

use super::replay::Trace;
use super::stream::StreamSpec;

/// What is done to a block drive.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Its name in results.
    pub name: String,
    /// What it is, in a sentence.
    #[serde(default)]
    pub description: String,
    /// What happened to the drive before.
    #[serde(default)]
    pub precondition: Before,
    /// The share of each set that was written before, 0 to 1; all of it unless set.
    pub fill: Option<f64>,
    /// Whether every block that is written carries a stamp, and every block that is read is
    /// checked against what was written.
    #[serde(default = "yes")]
    pub verify: bool,
    /// How many latencies to keep one by one, of each stream and direction, from the first on.
    #[serde(default)]
    pub samples: usize,
    /// Length of a bucket of the timeline to begin with, in milliseconds; longer jobs have longer
    /// ones.
    #[serde(default = "default_bucket_ms")]
    pub bucket_ms: f64,
    /// Who reads and writes, all of them side by side.
    #[serde(default, rename = "stream")]
    pub streams: Vec<StreamSpec>,
    /// When sets are taken to which window.
    #[serde(default, rename = "window")]
    pub windows: Vec<WindowStep>,
}

/// What happened to a drive before a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Before {
    /// Nothing: fresh out of the box. What is read without having been written takes no flash read.
    Empty,
    /// Written once, in order.
    Sequential,
    /// Then overwritten at random until it reached a steady state.
    #[default]
    Random,
}

impl Before {
    /// Each, with its name.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::Empty, "empty"), (Self::Sequential, "sequential"), (Self::Random, "random")];

    /// Its name.
    pub fn name(self) -> &'static str {
        let named = Self::ALL.into_iter().find(|(one, _)| *one == self);
        named.expect("all are listed").1
    }

    /// The same of a drive of which the share `fill` was written.
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
    /// When it is given, in seconds from the beginning of the job. A command waits for those of
    /// the same set before it.
    pub at_s: f64,
    /// The set, by number from 1 on.
    #[serde(default = "first_set")]
    pub set: u16,
    /// The window to go to.
    pub to: WindowName,
}

/// A window, by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WindowName {
    /// Deterministic: reads are not disturbed.
    Dtwin,
    /// Non-deterministic: the drive does its background work.
    Ndwin,
}

impl WindowName {
    /// As it is written in results.
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
    /// A job of these streams on a drive that was filled and overwritten at random.
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

    /// Reads the traces that its streams replay from beginning to end, if nobody has yet, and keeps what is in each as a whole.
    ///
    /// # Errors
    /// [`TraceError`] of the first that cannot be replayed.
    pub fn look_at_traces(&mut self) -> Result<(), TraceError> {
        for stream in self.streams.iter_mut().filter(|stream| stream.trace.is_none()) {
            let Some(path) = &stream.replay else { continue };
            stream.trace = Some(Trace::look(path, stream.trace_format, stream.replay_action)?);
        }
        Ok(())
    }

    /// A built-in job by name, or one from a TOML file by path.
    ///
    /// # Errors
    /// What is wrong and what is allowed, in words.
    pub fn load(name_or_path: &str) -> Result<Self, CatalogueError> {
        catalogue::load(name_or_path)
    }

    /// A job from the text of a file; `origin` says in messages where it came from.
    ///
    /// # Errors
    /// What is wrong and what is allowed, in words.
    pub fn parse(origin: &str, text: &str) -> Result<Self, CatalogueError> {
        catalogue::parse(origin, text)
    }

    /// Names of the built-in jobs.
    pub fn names() -> Vec<&'static str> {
        Self::BUILT_IN.iter().map(|(name, _)| *name).collect()
    }

    /// What happened to the drive before.
    pub fn precondition(&self) -> Precondition {
        self.precondition.on(self.fill.unwrap_or(1.0))
    }
}
