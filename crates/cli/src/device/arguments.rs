//! The flags of `levelhead device`.

use clap::Args;

use crate::overrides::Setting;
use crate::results::ResultArguments;
use crate::values;

/// Returns the text below the flags in the help.
fn help() -> String {
    format!(
        "{}\n\nA job file of fio's (--job FILE) is read: what nothing depends on here is passed \
         over, and told; what is not read is an error. fio's --name, --ioengine, --direct, \
         --filename, --time_based and --group_reporting are passed over, and told.",
        crate::sweep::HELP
    )
}

#[derive(Args, Clone)]
#[command(allow_negative_numbers = true, after_help = help())]
pub(crate) struct DeviceArguments {
    /// Block drive: a built-in name or a TOML file
    #[arg(long, alias = "profile", default_value = "vigil-15gb", value_delimiter = ',')]
    pub(super) device: Vec<String>,
    /// Job: a built-in name (see `levelhead list`), a TOML file with fio's keys, or an fio job file
    /// [default: mixed-70-30]
    #[arg(long, value_delimiter = ',')]
    pub(super) job: Vec<String>,
    /// Run one stream of this kind instead of a --job: read, write, rw, trim, trimwrite, or the
    /// same at random
    ///
    /// Random streams are randread, randwrite, randrw, randtrim and randtrimwrite. The flags that
    /// follow describe the stream; with --job they change each of its streams.
    #[arg(long, alias = "readwrite", value_delimiter = ',', conflicts_with = "job")]
    pub(super) rw: Vec<String>,
    /// Replay a trace instead of --job or --rw: fio's iolog, blkparse text, or MSR Cambridge CSV
    /// (docs/traces.md)
    #[arg(long, alias = "read_iolog", value_delimiter = ',', conflicts_with_all = ["job", "rw"])]
    pub(super) replay: Vec<String>,
    /// Format of the trace: iolog, blkparse, msr [default: detected]
    #[arg(long, value_delimiter = ',')]
    pub(super) trace_format: Vec<String>,
    /// blktrace action to replay: Q (queued), D (issued to the drive) [default: Q, or D if the
    /// trace has no Q]
    #[arg(long, alias = "replay_action", value_delimiter = ',')]
    pub(super) replay_action: Vec<String>,
    /// Replay as fast as --iodepth allows, instead of at recorded times
    #[arg(
        long,
        alias = "replay_no_stall",
        value_delimiter = ',',
        num_args = 0..=1,
        default_missing_value = "true"
    )]
    pub(super) replay_no_stall: Vec<String>,
    /// Replay speed in percent of the recorded speed; 200 is twice as fast [default: 100]
    #[arg(long, alias = "replay_time_scale", value_delimiter = ',')]
    pub(super) replay_time_scale: Vec<String>,
    /// Divisor of the trace's offsets [default: 1]
    ///
    /// Offsets beyond the drive wrap around to its beginning.
    #[arg(long, alias = "replay_scale", value_delimiter = ',')]
    pub(super) replay_scale: Vec<String>,
    /// Round the trace's offsets down to a multiple of this many bytes: 4k [default: 1]
    ///
    /// Reads and writes cover whole blocks of 4 KiB in any case.
    #[arg(long, alias = "replay_align", value_delimiter = ',')]
    pub(super) replay_align: Vec<String>,
    /// Block size of an operation in bytes: 4k, 128KiB [default: 4KiB]
    #[arg(long, alias = "blocksize", value_delimiter = ',')]
    pub(super) bs: Vec<String>,
    /// Mix of block sizes with their shares in percent: 4k/60:64k/40
    #[arg(long, value_delimiter = ',', conflicts_with = "bs")]
    pub(super) bssplit: Vec<String>,
    /// Range of block sizes, all equally frequent: 4k-64k
    #[arg(long, value_delimiter = ',', conflicts_with = "bs")]
    pub(super) bsrange: Vec<String>,
    /// Distribution of random offsets: random, zipf:THETA, pareto:H, normal:PERCENT,
    /// zoned:OPERATIONS/SIZE:... [default: random]
    #[arg(long, alias = "random_distribution", value_delimiter = ',')]
    pub(super) random_distribution: Vec<String>,
    /// Allow random operations to repeat an offset before all others were used
    ///
    /// Without it, each pass visits every offset once, as with fio's random map; only for uniformly
    /// random offsets and one block size.
    #[arg(long, value_delimiter = ',', num_args = 0..=1, default_missing_value = "true")]
    pub(super) norandommap: Vec<String>,
    /// Queue depth: outstanding operations [default: 1; up to 256 in open loops and with --replay]
    #[arg(long, value_delimiter = ',')]
    pub(super) iodepth: Vec<String>,
    /// Parallel copies of each stream, each with its own depth, rate, end and order [default: 1]
    #[arg(long, value_delimiter = ',')]
    pub(super) numjobs: Vec<String>,
    /// Virtual time during which operations start: 500ms, 1m; seconds without a unit
    #[arg(long, value_delimiter = ',')]
    pub(super) runtime: Vec<String>,
    /// Maximum number of operations
    #[arg(long, aliases = ["number_ios", "number-ios"], value_delimiter = ',')]
    pub(super) operations: Vec<String>,
    /// Maximum bytes to read and write: 1g
    #[arg(long, alias = "io_size", value_delimiter = ',')]
    pub(super) io_size: Vec<String>,
    /// Repeat --io-size, or the size of the stream's part of the set, this many times
    #[arg(long, value_delimiter = ',')]
    pub(super) loops: Vec<String>,
    /// Bytes per second of each direction, as an open loop: 10m
    ///
    /// Latency counts from the intended start of an operation, so that it includes waiting.
    /// Different rates of reads and writes: --set 'stream.rate="10m,1m"'.
    #[arg(long, value_delimiter = ',')]
    pub(super) rate: Vec<String>,
    /// Operations per second of each direction, as an open loop
    ///
    /// With randrw, 500 are 500 reads and 500 writes.
    #[arg(long, alias = "rate_iops", value_delimiter = ',')]
    pub(super) rate_iops: Vec<String>,
    /// Arrivals of an open loop: linear, or poisson as from independent users [default: linear]
    #[arg(long, aliases = ["rate_process", "arrivals"], value_delimiter = ',')]
    pub(super) rate_process: Vec<String>,
    /// Pause after --thinktime-blocks operations, once all outstanding ones have completed: 100us;
    /// microseconds without a unit
    #[arg(long, value_delimiter = ',')]
    pub(super) thinktime: Vec<String>,
    /// Operations between two pauses of --thinktime [default: 1]
    #[arg(long, alias = "thinktime_blocks", value_delimiter = ',')]
    pub(super) thinktime_blocks: Vec<String>,
    /// Share of reads in rw and randrw, in percent [default: 50]
    #[arg(long, value_delimiter = ',')]
    pub(super) rwmixread: Vec<String>,
    /// Share of writes in rw and randrw, in percent [default: 50]
    #[arg(long, value_delimiter = ',', conflicts_with = "rwmixread")]
    pub(super) rwmixwrite: Vec<String>,
    /// Share of trims among the operations other than reads, in percent [default: 0]
    #[arg(long, alias = "trim_percentage", value_delimiter = ',')]
    pub(super) trim_percent: Vec<String>,
    /// NVM set to use, numbered from 1, or all [default: 1]
    #[arg(long, value_delimiter = ',')]
    pub(super) nvm_set: Vec<String>,
    /// Size of the part of the set to use: 1GiB, 25% [default: to the end]
    #[arg(long, allow_hyphen_values = true, value_delimiter = ',')]
    pub(super) size: Vec<String>,
    /// Start of the part of the set to use [default: 0]
    #[arg(long, allow_hyphen_values = true, value_delimiter = ',')]
    pub(super) offset: Vec<String>,
    /// Flush after this many writes [default: never]
    #[arg(long, value_delimiter = ',')]
    pub(super) fsync: Vec<String>,
    /// State of the drive before the job: empty, sequential, random [default: random]
    ///
    /// sequential: written once. random: written once, then overwritten at random to a steady
    /// state.
    #[arg(long, value_delimiter = ',')]
    pub(super) precondition: Vec<String>,
    /// Share of each set written before the job [default: 100%]
    #[arg(long, allow_hyphen_values = true, value_delimiter = ',')]
    pub(super) fill: Vec<String>,
    /// Set a key of the job or device file
    ///
    /// Examples: `stream.2.set=3`, `read_us=[60.0, 60.0, 60.0]`. The value is checked as if it were
    /// in the file.
    #[arg(long, value_name = "KEY=VALUE", value_parser = Setting::parse)]
    pub(super) set: Vec<Setting>,
    /// Seed of all randomness; the same seed gives the same result
    #[arg(long, default_value = "1", value_delimiter = ',', value_parser = values::seed)]
    pub(super) seed: Vec<u64>,
    /// Simulations to run in parallel, if flags have several values [default: one per core, as far
    /// as memory allows]
    ///
    /// The results do not depend on it.
    #[arg(long, value_parser = values::threads)]
    pub(super) threads: Option<u64>,
    #[command(flatten)]
    pub(super) passed_over: PassedOver,
    #[command(flatten)]
    pub(super) results: ResultArguments,
}

/// Options of fio that have no effect here. They are accepted, with a note.
#[derive(Args, Clone)]
pub(crate) struct PassedOver {
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    name: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    ioengine: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    direct: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "")]
    filename: Option<String>,
    #[arg(long, alias = "time_based", hide = true, num_args = 0..=1, default_missing_value = "")]
    time_based: Option<String>,
    #[arg(
        long,
        alias = "group_reporting",
        hide = true,
        num_args = 0..=1,
        default_missing_value = ""
    )]
    group_reporting: Option<String>,
}

impl PassedOver {
    /// Returns a note that names the options given; `None` if none is.
    pub(super) fn words(&self) -> Option<String> {
        let options = [
            ("--name", &self.name),
            ("--ioengine", &self.ioengine),
            ("--direct", &self.direct),
            ("--filename", &self.filename),
            ("--time_based", &self.time_based),
            ("--group_reporting", &self.group_reporting),
        ];
        let given = options.into_iter().filter(|(_, value)| value.is_some());
        let names: Vec<&str> = given.map(|(name, _)| name).collect();
        let them = if names.len() == 1 { "is" } else { "are" };
        (!names.is_empty())
            .then(|| format!("{} {them} passed over: nothing here depends on it", names.join(", ")))
    }
}
