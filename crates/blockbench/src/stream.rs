//! The streams of a job, as its file describes them.

use serde::Deserialize;
use workload::trace::block::{Action, BlockFormat};

use crate::block_sizes::{BlockRange, BlockSplit, Sizes};
use crate::operation::Direction;
use crate::per_direction::PerDirection;
use crate::replay::Trace;
use crate::sets::SetChoice;
use crate::size::{Extent, default_block_bytes};
use crate::skew::Distribution;
use crate::{block_sizes, per_direction, size};

/// A stream of operations on one set, or on all sets.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "options of fio's, each by itself")]
pub struct StreamSpec {
    /// The name in results. Default: the name of `rw`.
    #[serde(default)]
    pub name: String,
    /// The number of the set, from 1, or all sets of the drive. Default: 1.
    #[serde(default = "set_one")]
    pub set: SetChoice,
    /// The operations; not allowed with `replay`.
    #[serde(default)]
    pub rw: Rw,
    /// The path of a trace to replay: an iolog of fio, the output of blkparse, or CSV of MSR
    /// Cambridge.
    #[serde(alias = "read_iolog")]
    pub replay: Option<String>,
    /// The format of the trace. Default: detected.
    pub trace_format: Option<BlockFormat>,
    /// The action of blktrace that counts. Default: Q, or D if the trace has no Q.
    pub replay_action: Option<Action>,
    /// Whether operations follow each other as fast as `depth` allows, and not at the recorded
    /// times.
    #[serde(default)]
    pub replay_no_stall: bool,
    /// The speed of the replay, in percent of the recorded speed. Default: 100.
    pub replay_time_scale: Option<f64>,
    /// The divisor of offsets in the trace. Default: 1.
    pub replay_scale: Option<u64>,
    /// Offsets in the trace are rounded down to a multiple of this many bytes, a power of two.
    #[serde(default, deserialize_with = "size::some_bytes")]
    pub replay_align: Option<u64>,
    /// The trace and its survey, after [`crate::Job::look_at_traces`].
    #[serde(skip)]
    pub trace: Option<Trace>,
    /// The share of reads in the operations of `rw` and `randrw`, in percent. Default: 50.
    #[serde(alias = "rwmixread")]
    pub read_percent: Option<f64>,
    /// The share of trims in the operations that do not read, in percent, if `rw` has writes.
    /// Default: 0.
    #[serde(alias = "trim_percentage")]
    pub trim_percent: Option<f64>,
    /// The distribution of random operations over the stream's part of the set. Default: uniform.
    pub random_distribution: Option<Distribution>,
    /// Whether random operations may visit a place again before all others were visited. By
    /// default, if the distribution is uniform and operations have one size, they visit each place
    /// once per pass, like fio's random map.
    #[serde(default)]
    pub norandommap: bool,
    /// Several sizes of operations and their shares; replaces `block_bytes`.
    #[serde(default, deserialize_with = "block_sizes::of_directions")]
    pub bssplit: Option<PerDirection<BlockSplit>>,
    /// A range of sizes of operations, all equally frequent; replaces `block_bytes`.
    #[serde(default, deserialize_with = "block_sizes::of_directions")]
    pub bsrange: Option<PerDirection<BlockRange>>,
    /// Bytes of an operation: a multiple of 4096.
    #[serde(alias = "bs", default = "default_sizes", deserialize_with = "per_direction::sizes")]
    pub block_bytes: PerDirection<u64>,
    /// Outstanding operations: exactly this many in a closed loop, default 1; at most this many in
    /// an open loop, default 256.
    #[serde(alias = "iodepth")]
    pub depth: Option<u32>,
    /// The number of concurrent jobs of this stream, as in fio: each has its own depth, end,
    /// submission queue and random map. Default: 1. Results are those of all jobs together.
    pub numjobs: Option<u32>,
    /// Bytes per second of each direction, in an open loop. Each direction that occurs requires a
    /// rate above 0.
    #[serde(default, deserialize_with = "per_direction::byte_rates")]
    pub rate: Option<PerDirection<f64>>,
    /// Operations per second of each direction, in an open loop, with latencies from the intended
    /// start. Each direction that occurs requires a rate above 0.
    #[serde(default, deserialize_with = "per_direction::operation_rates")]
    pub rate_iops: Option<PerDirection<f64>>,
    /// Operations per second of all directions together, in an open loop.
    pub operations_per_second: Option<f64>,
    /// The spacing of the operations of an open loop.
    #[serde(alias = "rate_process")]
    pub arrivals: Option<Arrivals>,
    /// The pause after `thinktime_blocks` operations, once all operations in flight have ended, in
    /// microseconds.
    #[serde(alias = "thinktime")]
    pub thinktime_us: Option<f64>,
    /// The number of operations between two pauses. Default: 1.
    pub thinktime_blocks: Option<u64>,
    /// The name of an earlier stream in the file: this stream begins when that one has ended.
    pub after: Option<String>,
    /// Whether this stream and all later ones begin only when all earlier ones have ended.
    #[serde(default)]
    pub stonewall: bool,
    /// The start, in seconds from the end of the stream named by `after`, else from the start of
    /// the job. With `stonewall`, not before the earlier streams have ended.
    #[serde(default, alias = "startdelay")]
    pub start_s: f64,
    /// The time in which operations begin, in seconds.
    #[serde(alias = "runtime")]
    pub duration_s: Option<f64>,
    /// The number of operations.
    #[serde(alias = "number_ios")]
    pub operations: Option<u64>,
    /// The number of bytes read and written.
    #[serde(alias = "io_size", default, deserialize_with = "size::some_bytes")]
    pub bytes: Option<u64>,
    /// Multiplies `bytes`; without `bytes`, the number of passes over the stream's part of the set.
    pub loops: Option<u64>,
    /// The start of the stream's part of the set. Default: the start of the set.
    pub offset: Option<Extent>,
    /// The distance between the parts of two successive jobs of `numjobs`, in bytes.
    #[serde(default, deserialize_with = "size::some_bytes")]
    pub offset_increment: Option<u64>,
    /// The length of the stream's part of the set. Default: up to the end of the set.
    pub size: Option<Extent>,
    /// Whether a part that reaches beyond the end of the set is cut there, as on fio's devices.
    /// Otherwise this is an error.
    #[serde(skip)]
    pub ends_with_set: bool,
    /// The number of writes between two flushes.
    #[serde(alias = "fsync")]
    pub flush_every: Option<u64>,
}

/// The operations of a stream, in the terms of fio.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rw {
    /// The operations of the trace. An error without a trace: `rw` is then missing.
    #[default]
    Replay,
    /// Random reads.
    RandRead,
    /// Reads in order, repeatedly.
    Read,
    /// Random writes.
    RandWrite,
    /// Writes in order, repeatedly.
    Write,
    /// Random reads and writes.
    RandRw,
    /// Reads in order and writes in order.
    Rw,
    /// Random trims: the drive may drop the blocks.
    RandTrim,
    /// Trims in order, repeatedly.
    Trim,
    /// Random trims, each followed by a write of the same blocks.
    RandTrimWrite,
    /// Trims in order, each followed by a write of the same blocks.
    TrimWrite,
}

impl Rw {
    /// Returns the name in fio.
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

    /// Whether some of the writes may be replaced by trims.
    pub(super) fn may_trim(self) -> bool {
        matches!(self, Self::RandWrite | Self::Write | Self::RandRw | Self::Rw)
    }

    /// Whether each trim is followed by a write of the same blocks.
    pub(super) fn writes_what_it_trims(self) -> bool {
        matches!(self, Self::RandTrimWrite | Self::TrimWrite)
    }

    pub(super) fn is_mixed(self) -> bool {
        matches!(self, Self::RandRw | Self::Rw)
    }
}

/// The rates of an open loop.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Rates {
    /// Operations per second of all directions together.
    Total(f64),
    /// Operations per second of each direction.
    Operations(PerDirection<f64>),
    /// Bytes per second of each direction.
    Bytes(PerDirection<f64>),
}

/// The spacing of the operations of an open loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// Even.
    #[default]
    #[serde(alias = "linear")]
    Fixed,
    /// Random, like the operations of independent users.
    Poisson,
}

fn set_one() -> SetChoice {
    SetChoice::One(1)
}

fn default_sizes() -> PerDirection<u64> {
    default_block_bytes().into()
}

impl StreamSpec {
    /// Creates a stream on all of set 1, with blocks of 4 KiB and one outstanding operation. It has
    /// no end: set `duration_s`, `operations` or `bytes`.
    pub fn new(rw: Rw) -> Self {
        Self {
            name: String::new(),
            set: set_one(),
            rw,
            replay: None,
            trace_format: None,
            replay_action: None,
            replay_no_stall: false,
            replay_time_scale: None,
            replay_scale: None,
            replay_align: None,
            trace: None,
            read_percent: None,
            trim_percent: None,
            random_distribution: None,
            norandommap: false,
            bssplit: None,
            bsrange: None,
            block_bytes: default_sizes(),
            depth: None,
            numjobs: None,
            rate: None,
            rate_iops: None,
            operations_per_second: None,
            arrivals: None,
            thinktime_us: None,
            thinktime_blocks: None,
            after: None,
            stonewall: false,
            start_s: 0.0,
            duration_s: None,
            operations: None,
            bytes: None,
            loops: None,
            offset: None,
            offset_increment: None,
            size: None,
            ends_with_set: false,
            flush_every: None,
        }
    }

    /// Returns the name in results.
    pub fn shown_name(&self) -> &str {
        if self.name.is_empty() { self.rw.name() } else { &self.name }
    }

    /// Whether operations begin at the recorded times. False for a trace without times.
    pub(super) fn is_paced_by_its_trace(&self) -> bool {
        let has_times = self.trace.as_ref().is_none_or(|trace| trace.survey.span.is_some());
        self.replay.is_some() && !self.replay_no_stall && has_times
    }

    /// Returns the number of outstanding operations of each job of the stream.
    pub fn outstanding(&self) -> u32 {
        const OPEN: u32 = 256;
        let is_open = self.rates().is_some() || self.is_paced_by_its_trace();
        self.depth.unwrap_or(if is_open { OPEN } else { 1 })
    }

    /// Returns the number of concurrent jobs of the stream.
    pub(super) fn jobs(&self) -> u32 {
        self.numjobs.unwrap_or(1)
    }

    /// Returns the rates of an open loop; `None` for a closed loop.
    pub(super) fn rates(&self) -> Option<Rates> {
        let total = self.operations_per_second.map(Rates::Total);
        let operations = self.rate_iops.map(Rates::Operations);
        total.or(operations).or(self.rate.map(Rates::Bytes))
    }

    /// Returns the operations per second of all directions, for each job of an open loop.
    pub(super) fn total_rate(&self) -> Option<f64> {
        let sizes = self.sizes();
        let sum = |of: &dyn Fn(Direction) -> f64| self.directions().into_iter().map(of).sum();
        Some(match self.rates()? {
            Rates::Total(rate) => rate,
            Rates::Operations(rates) => sum(&|direction| *rates.of(direction)),
            Rates::Bytes(rates) => sum(&|direction| {
                let blocks = sizes.of(direction).mean();
                *rates.of(direction) / (blocks * default_block_bytes() as f64)
            }),
        })
    }

    /// Returns the directions of its operations, without the writes that follow trims.
    pub(super) fn directions(&self) -> Vec<Direction> {
        let (reads, trims) = (self.read_share(), self.trim_share());
        let writes = reads < 1.0 && trims < 1.0;
        let is_there = [(Direction::Read, reads > 0.0), (Direction::Write, writes)];
        let trims = (Direction::Trim, reads < 1.0 && trims > 0.0);
        let all = is_there.into_iter().chain([trims]);
        all.filter(|(_, is_there)| *is_there).map(|(direction, _)| direction).collect()
    }

    /// Returns an upper bound of the number of operations of each job: a limit in bytes is
    /// converted with the smallest size. `u64::MAX` without a limit.
    pub(super) fn operation_limit(&self) -> u64 {
        let least = self.sizes().least() * default_block_bytes();
        let bytes = self.bytes.map(|bytes| bytes.saturating_mul(self.loops.unwrap_or(1)));
        let of_bytes = bytes.map_or(u64::MAX, |bytes| bytes.checked_div(least).unwrap_or(0));
        self.operations.unwrap_or(u64::MAX).min(of_bytes)
    }

    /// Returns the sizes of operations. A direction that does not occur has the sizes of one that
    /// does.
    pub(super) fn sizes(&self) -> PerDirection<Sizes> {
        let sizes = match (&self.bssplit, &self.bsrange) {
            (Some(split), _) => split.map(Sizes::split),
            (None, Some(range)) => range.map(|range| Sizes::range(*range)),
            (None, None) => self.block_bytes.map(|bytes| Sizes::one(*bytes)),
        };
        let used = self.directions();
        let other = used.first().copied().unwrap_or(Direction::Read);
        let of = |direction| {
            let is_used = used.contains(&direction);
            sizes.of(if is_used { direction } else { other }).clone()
        };
        let (read, write) = (of(Direction::Read), of(Direction::Write));
        PerDirection { read, write, trim: of(Direction::Trim) }
    }

    /// Returns the sizes of operations in the notation of fio; `None` if all have one size.
    pub(super) fn several_sizes(&self) -> Option<String> {
        let split = self.bssplit.as_ref().map(ToString::to_string);
        let range = || self.bsrange.map(|range| range.to_string());
        let bytes = || {
            let sizes = self.block_bytes.map(|bytes| block_sizes::short(*bytes));
            (!self.sizes().is_one()).then(|| sizes.to_string())
        };
        split.or_else(range).or_else(bytes)
    }

    /// Whether random operations visit each place once before they visit one again.
    pub(super) fn has_map(&self) -> bool {
        self.wants_map() && self.sizes().is_one()
    }

    /// Whether they would do so with one size of operations.
    pub(super) fn wants_map(&self) -> bool {
        let is_uniform = self.random_distribution.as_ref().is_none_or(Distribution::is_uniform);
        self.rw.is_random() && is_uniform && !self.norandommap
    }

    /// Returns the share of reads in the operations.
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

    /// Returns the share of trims in the operations that do not read.
    pub(super) fn trim_share(&self) -> f64 {
        if let Some(Trace { survey, .. }) = &self.trace {
            return survey.trims as f64 / (survey.writes + survey.trims).max(1) as f64;
        }
        match self.rw {
            Rw::RandTrim | Rw::Trim | Rw::RandTrimWrite | Rw::TrimWrite => 1.0,
            _ => self.trim_percent.unwrap_or(0.0) / 100.0,
        }
    }

    /// Whether any operation writes.
    pub(super) fn writes(&self) -> bool {
        self.rw.writes_what_it_trims() || (self.read_share() < 1.0 && self.trim_share() < 1.0)
    }
}
