//! The flags of `levelhead bench`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use host::{Arrangement, JournalPlace};
use lab::device::Before;
use workload::trace::kv::KvFormat;

use crate::overrides::Setting;
use crate::results::ResultArguments;
use crate::store::DurabilityArgument;
use crate::values;
use crate::values::BenchWindows;

pub(super) const DEFAULT_WORKLOAD: &str = "a";

#[derive(Args, Clone)]
#[command(allow_negative_numbers = true, after_help = crate::sweep::HELP)]
pub(crate) struct BenchArguments {
    /// Configuration of a host's store: a built-in name or a TOML file, which says all of the flags up to --plm-cache.
    /// Each of those that is given as well wins over it
    #[arg(long, value_delimiter = ',')]
    pub(super) configuration: Vec<String>,
    /// Design: a built-in name or a TOML file [default: pink]
    #[arg(long, value_delimiter = ',')]
    pub(super) design: Vec<String>,
    /// Device: a built-in name or a TOML file, of a KV drive or of a block drive [default: pink-zcu102; if there is neither
    /// --records nor --fill, pink-zcu102-1gib, filled to 70 % and overwritten to its steady state]
    #[arg(long, value_delimiter = ',')]
    pub(super) device: Vec<String>,
    /// Host of a block drive: a built-in name or a TOML file [default: desktop-12-core]
    #[arg(long)]
    pub(super) host: Option<String>,
    /// Into how many equal partitions each set of a block drive is cut; layouts are of these then, as md's over
    /// partitions
    /// [default: 1]
    #[arg(long, value_parser = values::partitions)]
    pub(super) partitions: Option<u32>,
    /// How a host's store lies on the sets of a block drive: plain (one set), striped, parity (any one set may be lost)
    /// or mirrored (a copy on each set)
    /// [default: plain on one set, striped on several]
    #[arg(long, value_delimiter = ',', value_parser = values::arrangement)]
    pub(super) layout: Vec<Arrangement>,
    /// Where such a store's log and manifest lie: beside its data, or own-set, alone on the drive's last set
    /// [default: beside]
    #[arg(long, value_parser = values::journal)]
    pub(super) journal: Option<JournalPlace>,
    /// How predictable-latency windows are kept on the sets of its data, from the load's end on: off; simple (each set
    /// asks for its window whenever it may, nothing is scheduled by it); constant (one set after the other is written, in
    /// slots of one length); dynamic (in slots as long as the work needs); rails (dynamic on a drive without windows).
    /// A flush waits for the slots of all sets, about 12 s, so that many writes a second wait for memtables. On a
    /// store over several directories: off, rails (kept by the store), plm (by the drives, which have to have them)
    /// [default: off]
    #[arg(long, value_delimiter = ',', value_parser = values::windows)]
    pub(super) windows: Vec<BenchWindows>,
    /// Bytes that may wait in memory for the slots of their sets, parity included (`plm_cache`). Writes wait beyond it, reads
    /// never do [default: 2 GB, with --store 128MiB]
    #[arg(long, value_parser = values::bytes(1..=1 << 40))]
    pub(super) plm_cache: Option<u64>,
    /// After how many microseconds a client's read that has not come is begun a second time, rebuilt from the other sets, and
    /// the first to come is taken: a hedged request. For layouts parity and mirrored without windows [default: never]
    #[arg(long, value_name = "MICROSECONDS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) hedge_after: Option<u32>,
    /// What happened to a block drive before: empty (nothing), sequential (all of it written once), random (then overwritten
    /// at random until it reached a steady state: the drive collects garbage from the first write on)
    /// [default: empty]
    #[arg(long, value_parser = values::precondition)]
    pub(super) precondition: Option<Before>,
    /// Load so many pairs that they are this share of what the drive has room for, about: 70%. In the place of --records
    #[arg(long, allow_hyphen_values = true, value_parser = lab::parse_share, conflicts_with_all = ["records", "store"])]
    pub(super) fill: Option<f64>,
    /// Overwrite the pairs at random after the load, until the free room is used up and write amplification stays within 2 %:
    /// the steady state
    #[arg(long, conflicts_with = "store")]
    pub(super) age: bool,
    /// Keep the drive in this file, as it is when it was loaded, aged if that is wanted, and has come to rest: the run begins then.
    /// `--drive` runs on it again
    #[arg(long, value_name = "FILE", conflicts_with_all = ["store", "drive"])]
    pub(super) save_drive: Option<PathBuf>,
    /// Run on the drive that --save-drive kept in this file: nothing is loaded. Design, device, pairs and seed are those that it
    /// was made with
    #[arg(long, value_name = "FILE", conflicts_with_all = ["store", "records", "fill", "age", "configuration"])]
    pub(super) drive: Option<PathBuf>,
    /// Workload: a built-in name or a YCSB property file; `levelhead list` has the names
    #[arg(long, default_value = DEFAULT_WORKLOAD, value_delimiter = ',')]
    pub(super) workload: Vec<String>,
    /// Pairs to load: recordcount [default: 4M, with --store 1M; a file's own; see --device]
    #[arg(long, value_delimiter = ',', value_parser = values::records)]
    pub(super) records: Vec<u64>,
    /// Operations to run: operationcount [default: 1M, for e and mixgraph 100k, for seekrandom 2k; a file's own]
    #[arg(long, value_delimiter = ',', value_parser = values::operations)]
    pub(super) operations: Vec<u64>,
    #[command(flatten)]
    pub(super) replay: TraceArguments,
    /// Seed of all randomness: the same seed gives the same result [default: 1; of a kept drive its own]
    #[arg(long, value_delimiter = ',', value_parser = values::seed)]
    pub(super) seed: Vec<u64>,
    /// Operations outstanding at a time: threadcount [default: 64, with --store, where they are threads, one a core; a file's own]
    #[arg(long, value_delimiter = ',', value_parser = values::queue_depth)]
    pub(super) queue_depth: Vec<u64>,
    /// Operations per second: target. An open loop with Poisson arrivals, in which
    /// waiting counts. Without it a closed loop of --queue-depth clients runs
    #[arg(long, value_delimiter = ',', value_parser = values::rate)]
    pub(super) rate: Vec<f64>,
    /// Set a workload property, as in YCSB. It wins over a file; a flag above that says otherwise is
    /// refused
    #[arg(short = 'p', value_name = "NAME=VALUE", value_parser = values::assignment)]
    pub(super) property: Vec<(String, String)>,
    /// Set a key of the design's, device's, host's or configuration's file, or a property of the workload: `gc_start=0.1`,
    /// `timing.read_us=[60.0, 60.0]`. It is checked as if it stood in the file
    #[arg(long, value_name = "KEY=VALUE", value_parser = Setting::parse)]
    pub(super) set: Vec<Setting>,
    /// Run on a store on files in this directory, in real time, with threads for clients: the store is made for it and stays there.
    /// Given three times or more, it is over these directories. In the place of design and device
    #[arg(long, value_name = "DIR", conflicts_with_all = ["configuration", "design", "device", "host", "partitions", "layout",
        "journal", "hedge_after", "precondition"])]
    pub(super) store: Vec<PathBuf>,
    /// Memory for that store's index and caches [default: 256MiB]
    #[arg(long, requires = "store", value_parser = values::bytes(1 << 20..=1 << 45))]
    pub(super) memory: Option<u64>,
    /// Out of that, memory for values that were read last [default: 64MiB]
    #[arg(long, requires = "store", value_parser = values::bytes(0..=1 << 45))]
    pub(super) value_cache: Option<u64>,
    /// Size of each of its files, at most: room is taken as it is needed [default: 16GiB]
    #[arg(long, requires = "store", value_parser = values::bytes(64 << 20..=1 << 50))]
    pub(super) capacity: Option<u64>,
    /// How long writes of the run are waited for [default: group]
    #[arg(long, requires = "store")]
    pub(super) durability: Option<DurabilityArgument>,
    /// Runs at a time, if several values make several; the results do not depend on it [default: one a core, as long as there
    /// is memory for them]
    #[arg(long, value_parser = values::threads)]
    pub(super) threads: Option<u64>,
    /// Length of the slices that timeline.csv and its picture are in, of virtual time: 10ms, 0.5s [default: such that there are
    /// 200 to 400]
    #[arg(long, allow_hyphen_values = true, value_parser = values::slice)]
    pub(super) slice: Option<Duration>,
    #[command(flatten)]
    pub(super) results: ResultArguments,
}

impl BenchArguments {
    /// What the workload is called, or its file.
    pub(super) fn workload(&self) -> &str {
        self.workload.first().map_or(DEFAULT_WORKLOAD, String::as_str)
    }
}

/// What is replayed in the place of a workload, and how fast.
#[derive(Args, Clone)]
pub(super) struct TraceArguments {
    /// In the place of the workload's run a trace to replay: CSV of Twitter's caches, or `RocksDB`'s as `trace_analyzer` writes it
    /// for people (docs/traces.md). Nothing is loaded before it, unless --trace-load, --records or --fill says so, or it runs on a --drive; --operations are
    /// those of it, at most
    #[arg(long, value_name = "FILE", value_delimiter = ',', conflicts_with_all = ["rate", "store"])]
    pub(super) trace: Vec<PathBuf>,
    /// The format of the trace [default: found out]
    #[arg(long, requires = "trace", value_parser = values::trace_format)]
    pub(super) trace_format: Option<KvFormat>,
    /// Load the keys that the trace gets before it puts them
    #[arg(long, requires = "trace", conflicts_with_all = ["records", "fill", "drive"])]
    pub(super) trace_load: bool,
    /// Replay as fast as --queue-depth allows, and not as recorded
    #[arg(
        long,
        alias = "replay_no_stall",
        requires = "trace",
        conflicts_with = "replay_time_scale"
    )]
    pub(super) replay_no_stall: bool,
    /// How fast the trace is replayed, in percent of the recorded speed: 200 is twice as fast [default: 100]
    #[arg(long, alias = "replay_time_scale", requires = "trace", value_delimiter = ',', value_parser = values::speed)]
    pub(super) replay_time_scale: Vec<f64>,
}
