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
use workload::trace::TraceError;
use workload::trace::block::BlockFormat;

use super::block_sizes::{BlockRange, BlockSplit, Sizes};
use super::replay::Trace;
use super::sets::SetChoice;
use super::size::{self, Extent};
use super::skew::Distribution;

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

/// A stream of operations to one set, or to all of them.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamSpec {
    /// Its name in results; what it does, unless set.
    #[serde(default)]
    pub name: String,
    /// The set, by number from 1 on, or all of the drive's.
    #[serde(default = "set_one")]
    pub set: SetChoice,
    /// What it does; of no use where it replays a trace.
    #[serde(default)]
    pub rw: Rw,
    /// A trace that it replays, as a file: fio's iolog, what blkparse prints, or CSV of MSR Cambridge.
    #[serde(alias = "read_iolog")]
    pub replay: Option<String>,
    /// The format of that trace, where it is not to be found out.
    pub trace_format: Option<BlockFormat>,
    /// Whether its operations follow each other as fast as `depth` allows, and not as they were recorded.
    #[serde(default)]
    pub replay_no_stall: bool,
    /// How fast it is replayed, in percent of the recorded speed; 100 unless set.
    pub replay_time_scale: Option<f64>,
    /// What its offsets are divided by; 1 unless set.
    pub replay_scale: Option<u64>,
    /// What its offsets are brought down to a multiple of, in bytes: a power of two.
    #[serde(default, deserialize_with = "size::some_bytes")]
    pub replay_align: Option<u64>,
    /// What is in the trace, once somebody has looked ([`Job::look_at_traces`]).
    #[serde(skip)]
    pub trace: Option<Trace>,
    /// Reads among the operations of `rw` and `randrw`, in percent; 50 unless set.
    #[serde(alias = "rwmixread")]
    pub read_percent: Option<f64>,
    /// Trims among the operations that do not read, in percent, where `rw` has writes; none unless set.
    #[serde(alias = "trim_percentage")]
    pub trim_percent: Option<f64>,
    /// How operations at random spread over its part of the set; each place alike unless set.
    pub random_distribution: Option<Distribution>,
    /// Several sizes of operations, with their shares, in the place of `block_bytes`.
    pub bssplit: Option<BlockSplit>,
    /// Sizes of operations between two, each alike, in the place of `block_bytes`.
    pub bsrange: Option<BlockRange>,
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rw {
    /// What its trace says; where it has none, nobody has said what it does.
    #[default]
    Replay,
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
    /// Trims at random: the drive is told that blocks are not needed any more.
    RandTrim,
    /// Trims in order, over and over.
    Trim,
    /// Trims at random, each followed by a write of what it trimmed.
    RandTrimWrite,
    /// The same in order.
    TrimWrite,
}

impl Rw {
    /// fio's word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Replay => "replay",
            Self::RandRead => "randread",
            Self::Read => "read",
            Self::RandWrite => "randwrite",
            Self::Write => "write",
            Self::RandRw => "randrw",
            Self::Rw => "rw",
            Self::RandTrim => "randtrim",
            Self::Trim => "trim",
            Self::RandTrimWrite => "randtrimwrite",
            Self::TrimWrite => "trimwrite",
        }
    }

    pub(super) fn is_random(self) -> bool {
        use Rw::{RandRead, RandRw, RandTrim, RandTrimWrite, RandWrite};
        matches!(self, RandRead | RandWrite | RandRw | RandTrim | RandTrimWrite)
    }

    /// Whether a part of its writes may be trims instead.
    pub(super) fn may_trim(self) -> bool {
        matches!(self, Self::RandWrite | Self::Write | Self::RandRw | Self::Rw)
    }

    /// Whether each trim is followed by a write.
    pub(super) fn writes_what_it_trims(self) -> bool {
        matches!(self, Self::RandTrimWrite | Self::TrimWrite)
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

fn set_one() -> SetChoice {
    SetChoice::One(first_set())
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
            set: set_one(),
            rw,
            replay: None,
            trace_format: None,
            replay_no_stall: false,
            replay_time_scale: None,
            replay_scale: None,
            replay_align: None,
            trace: None,
            read_percent: None,
            trim_percent: None,
            random_distribution: None,
            bssplit: None,
            bsrange: None,
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

    /// Whether its operations begin as they were recorded. A trace without times has no such thing.
    pub(super) fn is_paced_by_its_trace(&self) -> bool {
        let has_times = self.trace.as_ref().is_none_or(|trace| trace.survey.span.is_some());
        self.replay.is_some() && !self.replay_no_stall && has_times
    }

    /// Operations outstanding.
    pub fn outstanding(&self) -> u32 {
        const OPEN: u32 = 256;
        let is_open = self.rate.is_some() || self.is_paced_by_its_trace();
        self.depth.unwrap_or(if is_open { OPEN } else { 1 })
    }

    /// Operations, as far as their number is given; a number of bytes counts whole operations of the smallest size, so that
    /// there may be fewer.
    pub(super) fn operation_limit(&self) -> u64 {
        let least = self.sizes().least() * default_block_bytes();
        let of_bytes = self.bytes.map_or(u64::MAX, |bytes| bytes.checked_div(least).unwrap_or(0));
        self.operations.unwrap_or(u64::MAX).min(of_bytes)
    }

    /// Sizes of its operations.
    pub(super) fn sizes(&self) -> Sizes {
        match (&self.bssplit, self.bsrange) {
            (Some(split), _) => Sizes::split(split),
            (None, Some(range)) => Sizes::range(range),
            (None, None) => Sizes::one(self.block_bytes),
        }
    }

    /// Sizes of its operations in fio's words, if there are several.
    pub(super) fn several_sizes(&self) -> Option<String> {
        let split = self.bssplit.as_ref().map(ToString::to_string);
        split.or_else(|| self.bsrange.map(|range| range.to_string()))
    }

    /// The share of its operations that are reads.
    pub(super) fn read_share(&self) -> f64 {
        if let Some(Trace { survey, .. }) = &self.trace {
            let on_bytes = survey.operations() - survey.flushes;
            return survey.reads as f64 / on_bytes.max(1) as f64;
        }
        match self.rw {
            Rw::RandRead | Rw::Read => 1.0,
            Rw::RandRw | Rw::Rw => self.read_percent.unwrap_or(50.0) / 100.0,
            _ => 0.0,
        }
    }

    /// The share of its other operations that are trims.
    pub(super) fn trim_share(&self) -> f64 {
        if let Some(Trace { survey, .. }) = &self.trace {
            return survey.trims as f64 / (survey.writes + survey.trims).max(1) as f64;
        }
        match self.rw {
            Rw::RandTrim | Rw::Trim | Rw::RandTrimWrite | Rw::TrimWrite => 1.0,
            _ => self.trim_percent.unwrap_or(0.0) / 100.0,
        }
    }

    /// Whether it writes anything.
    pub(super) fn writes(&self) -> bool {
        self.rw.writes_what_it_trims() || (self.read_share() < 1.0 && self.trim_share() < 1.0)
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

    /// Reads the traces that its streams replay from beginning to end, if nobody has yet, and keeps what is in each as a whole.
    ///
    /// # Errors
    /// [`TraceError`] of the first that cannot be replayed.
    pub fn look_at_traces(&mut self) -> Result<(), TraceError> {
        for stream in self.streams.iter_mut().filter(|stream| stream.trace.is_none()) {
            let Some(path) = &stream.replay else { continue };
            stream.trace = Some(Trace::look(path, stream.trace_format)?);
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
