//! Streams: who reads and writes in a job, as its file says it.

use block::BLOCK_BYTES;
use serde::Deserialize;
use workload::trace::block::{Action, BlockFormat};

use super::block_sizes::{self, BlockRange, BlockSplit, Sizes};
use super::per_direction::{self, PerDirection};
use super::replay::Trace;
use super::report::Direction;
use super::sets::SetChoice;
use super::size::{self, Extent};
use super::skew::Distribution;

/// A stream of operations to one set, or to all of them.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "options of fio's, each by itself")]
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
    /// The action of blktrace that counts; Q unless set, or D where the trace has no Q.
    pub replay_action: Option<Action>,
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
    /// What is in the trace, once somebody has looked ([`super::Job::look_at_traces`]).
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
    /// Whether operations at random may go to a place again before all others had their turn.
    /// Unless set, and where each place is alike and operations have one size, they go to each
    /// place once a pass, as fio's random map has it.
    #[serde(default)]
    pub norandommap: bool,
    /// Several sizes of operations, with their shares, in the place of `block_bytes`.
    #[serde(default, deserialize_with = "block_sizes::of_directions")]
    pub bssplit: Option<PerDirection<BlockSplit>>,
    /// Sizes of operations between two, each alike, in the place of `block_bytes`.
    #[serde(default, deserialize_with = "block_sizes::of_directions")]
    pub bsrange: Option<PerDirection<BlockRange>>,
    /// Bytes of an operation: a multiple of 4096.
    #[serde(alias = "bs", default = "default_sizes", deserialize_with = "per_direction::sizes")]
    pub block_bytes: PerDirection<u64>,
    /// Operations outstanding: exactly so many in a closed loop, 1 unless set; at most so many in
    /// an open one, 256 unless set.
    #[serde(alias = "iodepth")]
    pub depth: Option<u32>,
    /// How many there are of it side by side, each with a depth, an end, a submission queue and a
    /// random map of its own, as fio's jobs; 1 unless set. Results are of all together.
    pub numjobs: Option<u32>,
    /// Bytes per second of each direction, in an open loop; none where 0.
    #[serde(default, deserialize_with = "per_direction::byte_rates")]
    pub rate: Option<PerDirection<f64>>,
    /// Operations per second of each direction, in an open loop, whose latencies count from the
    /// intended start; none where 0.
    #[serde(default, deserialize_with = "per_direction::operation_rates")]
    pub rate_iops: Option<PerDirection<f64>>,
    /// Operations per second of all directions together, each by its share.
    pub operations_per_second: Option<f64>,
    /// How the operations of an open loop are spaced.
    #[serde(alias = "rate_process")]
    pub arrivals: Option<Arrivals>,
    /// How long it rests after `thinktime_blocks` operations, once all under way have ended, in
    /// microseconds.
    #[serde(alias = "thinktime")]
    pub thinktime_us: Option<f64>,
    /// See there; 1 unless set.
    pub thinktime_blocks: Option<u64>,
    /// The stream begins when the one of this name, an earlier one in the file, has ended.
    pub after: Option<String>,
    /// This stream and those behind it begin when all before it have ended.
    #[serde(default)]
    pub stonewall: bool,
    /// When it begins, in seconds from the end of the stream that it comes `after`, or from the
    /// beginning of the job; later if it waits for others by `stonewall`.
    #[serde(default, alias = "startdelay")]
    pub start_s: f64,
    /// How long operations begin, in seconds.
    #[serde(alias = "runtime")]
    pub duration_s: Option<f64>,
    /// How many operations there are.
    #[serde(alias = "number_ios")]
    pub operations: Option<u64>,
    /// How many bytes they read and write.
    #[serde(alias = "io_size", default, deserialize_with = "size::some_bytes")]
    pub bytes: Option<u64>,
    /// So many times `bytes`, or as many as its part of the set has, are read and written.
    pub loops: Option<u64>,
    /// Where its part of the set begins; at the beginning unless set.
    pub offset: Option<Extent>,
    /// How far further on the part of each of its `numjobs` begins, in bytes.
    #[serde(default, deserialize_with = "size::some_bytes")]
    pub offset_increment: Option<u64>,
    /// How long its part of the set is; to the end unless set.
    pub size: Option<Extent>,
    /// A part that reaches beyond the end of the set ends with it, as it does on fio's devices.
    #[serde(skip)]
    pub ends_with_set: bool,
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

/// Rates of an open loop.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Rates {
    /// Operations per second of all directions together.
    Total(f64),
    /// Operations per second of each direction.
    Operations(PerDirection<f64>),
    /// Bytes per second of each direction.
    Bytes(PerDirection<f64>),
}

/// How the operations of an open loop are spaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// Evenly.
    #[default]
    #[serde(alias = "linear")]
    Fixed,
    /// At random, as independent users would.
    Poisson,
}

fn set_one() -> SetChoice {
    SetChoice::One(1)
}

fn default_sizes() -> PerDirection<u64> {
    default_block_bytes().into()
}

pub(super) fn default_block_bytes() -> u64 {
    u64::from(BLOCK_BYTES)
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
        let is_open = self.rates().is_some() || self.is_paced_by_its_trace();
        self.depth.unwrap_or(if is_open { OPEN } else { 1 })
    }

    /// How many there are of it side by side.
    pub(super) fn jobs(&self) -> u32 {
        self.numjobs.unwrap_or(1)
    }

    /// Rates of an open loop.
    pub(super) fn rates(&self) -> Option<Rates> {
        let total = self.operations_per_second.map(Rates::Total);
        let operations = self.rate_iops.map(Rates::Operations);
        total.or(operations).or(self.rate.map(Rates::Bytes))
    }

    /// Operations per second of all directions of an open loop.
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

    /// What its operations do that it chooses itself: not the writes behind trims.
    pub(super) fn directions(&self) -> Vec<Direction> {
        let (reads, trims) = (self.read_share(), self.trim_share());
        let writes = reads < 1.0 && trims < 1.0;
        let is_there = [(Direction::Read, reads > 0.0), (Direction::Write, writes)];
        let trims = (Direction::Trim, reads < 1.0 && trims > 0.0);
        let all = is_there.into_iter().chain([trims]);
        all.filter(|(_, is_there)| *is_there).map(|(direction, _)| direction).collect()
    }

    /// Operations of one of its jobs, as far as their number is given; a number of bytes counts
    /// whole operations of the smallest size, so that there may be fewer.
    pub(super) fn operation_limit(&self) -> u64 {
        let least = self.sizes().least() * default_block_bytes();
        let bytes = self.bytes.map(|bytes| bytes.saturating_mul(self.loops.unwrap_or(1)));
        let of_bytes = bytes.map_or(u64::MAX, |bytes| bytes.checked_div(least).unwrap_or(0));
        self.operations.unwrap_or(u64::MAX).min(of_bytes)
    }

    /// Sizes of its operations. A direction that never occurs has those of one that does.
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

    /// Sizes of its operations in fio's words, if there are several.
    pub(super) fn several_sizes(&self) -> Option<String> {
        let split = self.bssplit.as_ref().map(ToString::to_string);
        let range = || self.bsrange.map(|range| range.to_string());
        let bytes = || {
            let sizes = self.block_bytes.map(|bytes| block_sizes::short(*bytes));
            (!self.sizes().is_one()).then(|| sizes.to_string())
        };
        split.or_else(range).or_else(bytes)
    }

    /// Whether its operations go to each place once before they go to one again.
    pub(super) fn has_map(&self) -> bool {
        self.wants_map() && self.sizes().is_one()
    }

    /// Whether they would, if they had one size.
    pub(super) fn wants_map(&self) -> bool {
        let is_uniform = self.random_distribution.as_ref().is_none_or(Distribution::is_uniform);
        self.rw.is_random() && is_uniform && !self.norandommap
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
