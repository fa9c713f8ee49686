//! The flags of `levelhead bench`.

use std::path::PathBuf;
use std::time::Duration;

use blockbench::Before;
use clap::Args;
use stacks::host::{Arrangement, JournalPlace};
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
    /// Configuration: a built-in name or a TOML file
    ///
    /// A configuration of a host's store sets the flags from --design to --hedge-after. A flag that
    /// is given in addition takes precedence.
    #[arg(long, value_delimiter = ',')]
    pub(super) configuration: Vec<String>,
    /// Design: a built-in name or a TOML file [default: pink]
    #[arg(long, value_delimiter = ',')]
    pub(super) design: Vec<String>,
    /// Device, a KV drive or a block drive: a built-in name or a TOML file [default: pink-zcu102]
    ///
    /// With neither --records nor --fill, the default for YCSB workloads and designs without caches
    /// is pink-zcu102-1gib, filled to 70 % and overwritten until it is in its steady state.
    #[arg(long, value_delimiter = ',')]
    pub(super) device: Vec<String>,
    /// Host of a block drive: a built-in name or a TOML file [default: desktop-12-core]
    #[arg(long)]
    pub(super) host: Option<String>,
    /// Equal partitions per NVM set of a block drive [default: 1]
    ///
    /// A layout uses partitions of different sets as its members, as md does with partitions of
    /// disks.
    #[arg(long, value_parser = values::partitions)]
    pub(super) partitions: Option<u32>,
    /// Layout of a host's store over the sets: plain, striped, parity, mirrored [default: plain on
    /// one set, striped on several]
    ///
    /// plain uses one set. parity survives the loss of any one set. mirrored keeps a copy on each
    /// set.
    #[arg(long, value_delimiter = ',', value_parser = values::arrangement)]
    pub(super) layout: Vec<Arrangement>,
    /// Place of the store's log and manifest: beside, own-set [default: beside]
    ///
    /// beside keeps them on the sets of the data, own-set alone on the last set of the drive.
    #[arg(long, value_parser = values::journal)]
    pub(super) journal: Option<JournalPlace>,
    /// Policy of predictable-latency windows: off, simple, constant, dynamic, rails, plm [default:
    /// off]
    ///
    /// Windows of the sets of the data are kept from the end of the load on. simple: each set
    /// requests its window whenever it may, and nothing is scheduled by it. constant: one set after
    /// the other is written, in slots of equal length. dynamic: the same, in slots as long as the
    /// work needs. rails: dynamic on a drive without windows. A flush waits for the slots of all
    /// sets, about 12 s, so at a high write rate writes wait for memtables.
    ///
    /// A store over several directories (--store) takes off, rails (kept by the store) or plm (kept
    /// by the drives, which need NVMe's Predictable Latency Mode).
    #[arg(long, value_delimiter = ',', value_parser = values::windows)]
    pub(super) windows: Vec<BenchWindows>,
    /// Memory for writes that wait for the slots of their sets (`plm_cache`), in bytes [default: 2
    /// GB, with --store 128MiB]
    ///
    /// Includes parity. Once it is full, further writes wait; reads never do.
    #[arg(long, value_parser = values::bytes(1..=1 << 40))]
    pub(super) plm_cache: Option<u64>,
    /// Start a hedged read after this many microseconds [default: never]
    ///
    /// A client's read that is still outstanding by then is issued a second time, rebuilt from the
    /// other sets; the first to complete is used. For layouts parity and mirrored without windows.
    #[arg(
        long,
        value_name = "MICROSECONDS",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    pub(super) hedge_after: Option<u32>,
    /// State of a block drive before the load: empty, sequential, random [default: empty]
    ///
    /// sequential: all of it has been written once. random: it has then been overwritten at random
    /// until it reached a steady state, so the drive collects garbage from the first write on.
    #[arg(long, value_parser = values::precondition)]
    pub(super) precondition: Option<Before>,
    /// Load pairs up to about this share of the drive's capacity: 0.7, 70% (instead of --records)
    #[arg(
        long,
        allow_hyphen_values = true,
        value_parser = report::units::parse_share,
        conflicts_with_all = ["records", "store"]
    )]
    pub(super) fill: Option<f64>,
    /// Overwrite pairs at random after the load until the drive is in its steady state
    ///
    /// The steady state begins when the free space is used up and write amplification stays within
    /// 2 %.
    #[arg(long, conflicts_with = "store")]
    pub(super) age: bool,
    /// Save the loaded drive to this file
    ///
    /// The drive is saved once it is loaded, aged with --age, and idle; the run starts from that
    /// state. --drive runs on the saved drive.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["store", "drive"])]
    pub(super) save_drive: Option<PathBuf>,
    /// Run on the drive that --save-drive saved to this file, without a load
    ///
    /// Design, device, pairs and seed are those that the drive was made with.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["store", "records", "fill", "age", "configuration"]
    )]
    pub(super) drive: Option<PathBuf>,
    /// Workload: a built-in name (see `levelhead list`) or a YCSB property file
    #[arg(long, default_value = DEFAULT_WORKLOAD, value_delimiter = ',')]
    pub(super) workload: Vec<String>,
    /// Pairs to load (recordcount) [default: 4M, with --store 1M; that of a workload file; see
    /// --device]
    #[arg(long, value_delimiter = ',', value_parser = values::records)]
    pub(super) records: Vec<u64>,
    /// Operations to run (operationcount) [default: 1M, for e and mixgraph 100k, for seekrandom 2k;
    /// that of a workload file]
    #[arg(long, value_delimiter = ',', value_parser = values::operations)]
    pub(super) operations: Vec<u64>,
    #[command(flatten)]
    pub(super) replay: TraceArguments,
    /// Seed of all randomness; the same seed gives the same result [default: 1; with --drive that
    /// of the drive]
    #[arg(long, value_delimiter = ',', value_parser = values::seed)]
    pub(super) seed: Vec<u64>,
    /// Queue depth: outstanding operations (threadcount) [default: 64; with --store, one thread per
    /// core; that of a workload file]
    #[arg(long, value_delimiter = ',', value_parser = values::queue_depth)]
    pub(super) queue_depth: Vec<u64>,
    /// Operations per second (target), as an open loop with Poisson arrivals [default: a closed
    /// loop of --queue-depth clients]
    ///
    /// In an open loop latency counts from the intended start of an operation, so that it includes
    /// waiting.
    #[arg(long, value_delimiter = ',', value_parser = values::rate)]
    pub(super) rate: Vec<f64>,
    /// Set a workload property, as in YCSB
    ///
    /// It takes precedence over a workload file. It is refused if a flag contradicts it.
    #[arg(short = 'p', value_name = "NAME=VALUE", value_parser = values::assignment)]
    pub(super) property: Vec<(String, String)>,
    /// Set a key of the design, device, host or configuration file, or a workload property
    ///
    /// Examples: `gc_start=0.1`, `timing.read_us=[60.0, 60.0]`. The value is checked as if it were
    /// in the file.
    #[arg(long, value_name = "KEY=VALUE", value_parser = Setting::parse)]
    pub(super) set: Vec<Setting>,
    /// Run on files in this directory, in real time, with one thread per client
    ///
    /// Creates the store, which stays there after the run. Given three times or more, the store is
    /// over these directories. Replaces --design and --device.
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with_all = [
            "configuration", "design", "device", "host", "partitions", "layout", "journal",
            "hedge_after", "precondition"
        ]
    )]
    pub(super) store: Vec<PathBuf>,
    /// Memory for the store's index and caches [default: 256MiB]
    #[arg(long, requires = "store", value_parser = values::bytes(1 << 20..=1 << 45))]
    pub(super) memory: Option<u64>,
    /// Part of --memory for recently read values [default: 64MiB]
    #[arg(long, requires = "store", value_parser = values::bytes(0..=1 << 45))]
    pub(super) value_cache: Option<u64>,
    /// Maximum size of each of the store's files; space is allocated as needed [default: 16GiB]
    #[arg(long, requires = "store", value_parser = values::bytes(64 << 20..=1 << 50))]
    pub(super) capacity: Option<u64>,
    /// Durability of the run's writes [default: group]
    #[arg(long, requires = "store")]
    pub(super) durability: Option<DurabilityArgument>,
    /// Simulations to run in parallel, if flags have several values [default: one per core, as far
    /// as memory allows]
    ///
    /// The results do not depend on it.
    #[arg(long, value_parser = values::threads)]
    pub(super) threads: Option<u64>,
    /// Virtual time per row of timeline.csv and its picture: 10ms, 0.5s [default: 200 to 400 slices
    /// per run]
    #[arg(long, allow_hyphen_values = true, value_parser = values::slice)]
    pub(super) slice: Option<Duration>,
    #[command(flatten)]
    pub(super) results: ResultArguments,
}

impl BenchArguments {
    /// Returns the name of the workload, or the path of its file.
    pub(super) fn workload(&self) -> &str {
        self.workload.first().map_or(DEFAULT_WORKLOAD, String::as_str)
    }
}

/// Flags of a trace that is replayed instead of a workload.
#[derive(Args, Clone)]
pub(super) struct TraceArguments {
    /// Replay a trace instead of a workload: CSV of Twitter's caches, or of RocksDB as
    /// `trace_analyzer` prints it
    ///
    /// Formats: docs/traces.md. Nothing is loaded first, unless --trace-load, --records or --fill
    /// is given, or it runs on a --drive. --operations limits the operations that are replayed.
    #[arg(long, value_name = "FILE", value_delimiter = ',', conflicts_with_all = ["rate", "store"])]
    pub(super) trace: Vec<PathBuf>,
    /// Format of the trace [default: detected]
    #[arg(long, requires = "trace", value_parser = values::trace_format)]
    pub(super) trace_format: Option<KvFormat>,
    /// Load the keys that the trace gets before it puts them
    #[arg(long, requires = "trace", conflicts_with_all = ["records", "fill", "drive"])]
    pub(super) trace_load: bool,
    /// Replay as fast as --queue-depth allows, instead of at recorded times
    #[arg(
        long,
        alias = "replay_no_stall",
        requires = "trace",
        conflicts_with = "replay_time_scale"
    )]
    pub(super) replay_no_stall: bool,
    /// Replay speed in percent of the recorded speed; 200 is twice as fast [default: 100]
    #[arg(
        long,
        alias = "replay_time_scale",
        requires = "trace",
        value_delimiter = ',',
        value_parser = values::speed
    )]
    pub(super) replay_time_scale: Vec<f64>,
}
