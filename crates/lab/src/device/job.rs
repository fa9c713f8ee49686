//! Jobs: what is done to a block drive, as TOML in the words of fio.
//!
//! ```toml
//! name = "readers-and-a-writer"
//! precondition = "random"      # or "sequential", "empty"
//! fill = 0.9                   # of each set, before the job begins
//!
//! [[stream]]
//! name = "reads"
//! set = 1
//! rw = "randread"              # randread, read, randwrite, write, randrw, rw
//! depth = 16                   # a closed loop of so many (fio: iodepth)
//! duration_s = 2.0             # or operations, or bytes; the first that is reached ends it
//!
//! [[stream]]
//! name = "writes"
//! rw = "write"
//! block_bytes = "128KiB"       # fio: bs
//! rate = 500.0                 # operations per second, an open loop (fio: rate_iops)
//! duration_s = 2.0
//!
//! [[window]]                   # predictable-latency mode is on for the sets that are named here
//! at_s = 4.0
//! set = 1
//! to = "dtwin"
//! ```

use block::BLOCK_BYTES;
use block::nvme::WindowSelect;
use catalogue::{CatalogueError, Entry};
use serde::Deserialize;
use ssd::Precondition;

use super::size::{self, Extent};

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

/// A stream of operations to one set.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamSpec {
    /// Its name in results; what it does, unless set.
    #[serde(default)]
    pub name: String,
    /// The set, by number from 1 on.
    #[serde(default = "first_set")]
    pub set: u16,
    /// What it does.
    pub rw: Rw,
    /// Reads among the operations of `rw` and `randrw`, in percent; 50 unless set.
    #[serde(alias = "rwmixread")]
    pub read_percent: Option<f64>,
    /// Bytes of an operation: a multiple of 4096.
    #[serde(alias = "bs", default = "default_block_bytes", deserialize_with = "size::bytes")]
    pub block_bytes: u64,
    /// Operations outstanding: exactly so many in a closed loop, 1 unless set; at most so many in
    /// an open one, 256 unless set.
    #[serde(alias = "iodepth")]
    pub depth: Option<u32>,
    /// Operations per second of an open loop, whose latencies count from the intended start.
    #[serde(alias = "rate_iops")]
    pub rate: Option<f64>,
    /// How the operations of an open loop are spaced.
    pub arrivals: Option<Arrivals>,
    /// The stream begins when the one of this name, an earlier one in the file, has ended.
    pub after: Option<String>,
    /// When it begins, in seconds from there, or from the beginning of the job.
    #[serde(default)]
    pub start_s: f64,
    /// How long operations begin, in seconds.
    #[serde(alias = "runtime")]
    pub duration_s: Option<f64>,
    /// How many operations there are.
    pub operations: Option<u64>,
    /// How many bytes they read and write.
    #[serde(default, deserialize_with = "size::some_bytes")]
    pub bytes: Option<u64>,
    /// Where its part of the set begins; at the beginning unless set.
    pub offset: Option<Extent>,
    /// How long its part of the set is; to the end unless set.
    pub size: Option<Extent>,
    /// So many writes are followed by a flush.
    #[serde(alias = "fsync")]
    pub flush_every: Option<u64>,
}

/// What a stream does, in fio's words.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rw {
    /// Reads at random.
    RandRead,
    /// Reads in order, over and over.
    Read,
    /// Writes at random.
    RandWrite,
    /// Writes in order, over and over.
    Write,
    /// Reads and writes at random.
    RandRw,
    /// Reads in order and writes in order.
    Rw,
}

impl Rw {
    /// fio's word.
    pub fn name(self) -> &'static str {
        match self {
            Self::RandRead => "randread",
            Self::Read => "read",
            Self::RandWrite => "randwrite",
            Self::Write => "write",
            Self::RandRw => "randrw",
            Self::Rw => "rw",
        }
    }

    pub(super) fn is_random(self) -> bool {
        matches!(self, Self::RandRead | Self::RandWrite | Self::RandRw)
    }

    pub(super) fn is_mixed(self) -> bool {
        matches!(self, Self::RandRw | Self::Rw)
    }
}

/// How the operations of an open loop are spaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// Evenly.
    #[default]
    Fixed,
    /// At random, as independent users would.
    Poisson,
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

pub(super) fn default_block_bytes() -> u64 {
    u64::from(BLOCK_BYTES)
}

fn default_bucket_ms() -> f64 {
    1.0
}

impl StreamSpec {
    /// A stream on all of set 1, in blocks of 4 KiB, one outstanding. It has no end yet: set
    /// `duration_s`, `operations` or `bytes`.
    pub fn new(rw: Rw) -> Self {
        Self {
            name: String::new(),
            set: first_set(),
            rw,
            read_percent: None,
            block_bytes: default_block_bytes(),
            depth: None,
            rate: None,
            arrivals: None,
            after: None,
            start_s: 0.0,
            duration_s: None,
            operations: None,
            bytes: None,
            offset: None,
            size: None,
            flush_every: None,
        }
    }

    /// Its name in results.
    pub fn shown_name(&self) -> &str {
        if self.name.is_empty() { self.rw.name() } else { &self.name }
    }

    /// Operations outstanding.
    pub fn outstanding(&self) -> u32 {
        const OPEN: u32 = 256;
        self.depth.unwrap_or(if self.rate.is_some() { OPEN } else { 1 })
    }

    /// Operations, as far as their number is given; a number of bytes counts whole operations.
    pub(super) fn operation_limit(&self) -> u64 {
        let of_bytes =
            self.bytes.map_or(u64::MAX, |bytes| bytes.checked_div(self.block_bytes).unwrap_or(0));
        self.operations.unwrap_or(u64::MAX).min(of_bytes)
    }

    /// The share of its operations that are reads.
    pub(super) fn read_share(&self) -> f64 {
        match self.rw {
            Rw::RandRead | Rw::Read => 1.0,
            Rw::RandWrite | Rw::Write => 0.0,
            Rw::RandRw | Rw::Rw => self.read_percent.unwrap_or(50.0) / 100.0,
        }
    }
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
