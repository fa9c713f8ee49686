//! The flags of `levelhead device`.

use clap::Args;

use crate::overrides::Setting;
use crate::results::ResultArguments;
use crate::values;

/// What is said below the flags.
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
    /// Job: a built-in name, a TOML file in fio's words, or a job file of fio's; `levelhead list`
    /// has the names [default: mixed-70-30]
    #[arg(long, value_delimiter = ',')]
    pub(super) job: Vec<String>,
    /// In place of a job's file one stream, which does read, write, rw, trim or trimwrite, or the same at random: randread and so
    /// on; the flags that follow say how. With --job they change each of its streams
    #[arg(long, alias = "readwrite", value_delimiter = ',', conflicts_with = "job")]
    pub(super) rw: Vec<String>,
    /// In place of both a trace to replay: fio's iolog, the text of blkparse, or CSV of MSR Cambridge (docs/traces.md)
    #[arg(long, alias = "read_iolog", value_delimiter = ',', conflicts_with_all = ["job", "rw"])]
    pub(super) replay: Vec<String>,
    /// The format of the trace: iolog, blkparse, msr [default: found out]
    #[arg(long, value_delimiter = ',')]
    pub(super) trace_format: Vec<String>,
    /// The action of blktrace that counts: Q (asked for) or D (issued to the drive) [default: Q, or D where there is no Q]
    #[arg(long, alias = "replay_action", value_delimiter = ',')]
    pub(super) replay_action: Vec<String>,
    /// Replay as fast as --iodepth allows, and not as recorded
    #[arg(long, alias = "replay_no_stall", value_delimiter = ',', num_args = 0..=1, default_missing_value = "true")]
    pub(super) replay_no_stall: Vec<String>,
    /// How fast the trace is replayed, in percent of the recorded speed: 200 is twice as fast [default: 100]
    #[arg(long, alias = "replay_time_scale", value_delimiter = ',')]
    pub(super) replay_time_scale: Vec<String>,
    /// What its offsets are divided by [default: 1; those beyond the drive begin again at its beginning]
    #[arg(long, alias = "replay_scale", value_delimiter = ',')]
    pub(super) replay_scale: Vec<String>,
    /// What its offsets are brought down to a multiple of: 4k [default: 1; reads and writes go to whole blocks of 4 KiB]
    #[arg(long, alias = "replay_align", value_delimiter = ',')]
    pub(super) replay_align: Vec<String>,
    /// Bytes of an operation: 4k, 128KiB [default: 4KiB]
    #[arg(long, alias = "blocksize", value_delimiter = ',')]
    pub(super) bs: Vec<String>,
    /// Several sizes of operations with their shares in percent: 4k/60:64k/40
    #[arg(long, value_delimiter = ',', conflicts_with = "bs")]
    pub(super) bssplit: Vec<String>,
    /// Sizes of operations between two, each alike: 4k-64k
    #[arg(long, value_delimiter = ',', conflicts_with = "bs")]
    pub(super) bsrange: Vec<String>,
    /// How operations at random spread: random, zipf:THETA, pareto:H, normal:PERCENT, zoned:OPERATIONS/SIZE:...
    /// [default: random]
    #[arg(long, alias = "random_distribution", value_delimiter = ',')]
    pub(super) random_distribution: Vec<String>,
    /// Let operations at random go to a place again before all others had their turn; without it,
    /// and where each place is alike and operations have one size, they go to each place once a
    /// pass, as fio's do
    #[arg(long, value_delimiter = ',', num_args = 0..=1, default_missing_value = "true")]
    pub(super) norandommap: Vec<String>,
    /// Operations outstanding [default: 1; in open loops and with --replay up to 256]
    #[arg(long, value_delimiter = ',')]
    pub(super) iodepth: Vec<String>,
    /// So many streams side by side, each with its depth, rate, end and order
    #[arg(long, value_delimiter = ',')]
    pub(super) numjobs: Vec<String>,
    /// Virtual time for which operations begin: 10, 500ms, 1m; seconds without a unit
    #[arg(long, value_delimiter = ',')]
    pub(super) runtime: Vec<String>,
    /// Operations, at most
    #[arg(long, aliases = ["number_ios", "number-ios"], value_delimiter = ',')]
    pub(super) operations: Vec<String>,
    /// Bytes that are read and written, at most: 1g
    #[arg(long, alias = "io_size", value_delimiter = ',')]
    pub(super) io_size: Vec<String>,
    /// So many times --io-size, or as many bytes as the part of the set has
    #[arg(long, value_delimiter = ',')]
    pub(super) loops: Vec<String>,
    /// Bytes per second of each direction, in an open loop, in which waiting counts: 10m; for reads
    /// and writes apart --set 'stream.rate="10m,1m"'
    #[arg(long, value_delimiter = ',')]
    pub(super) rate: Vec<String>,
    /// Operations per second of each direction, in an open loop: 500 of randrw are 500 reads and
    /// 500 writes
    #[arg(long, alias = "rate_iops", value_delimiter = ',')]
    pub(super) rate_iops: Vec<String>,
    /// How the operations of an open loop are spaced: linear, or poisson as independent users
    /// [default: linear]
    #[arg(long, aliases = ["rate_process", "arrivals"], value_delimiter = ',')]
    pub(super) rate_process: Vec<String>,
    /// Rest after --thinktime-blocks operations, once all under way have ended: 100us; microseconds
    /// without a unit
    #[arg(long, value_delimiter = ',')]
    pub(super) thinktime: Vec<String>,
    /// Operations between two rests [default: 1]
    #[arg(long, alias = "thinktime_blocks", value_delimiter = ',')]
    pub(super) thinktime_blocks: Vec<String>,
    /// Reads among the operations of rw and randrw, in percent [default: 50]
    #[arg(long, value_delimiter = ',')]
    pub(super) rwmixread: Vec<String>,
    /// Writes among them [default: 50]
    #[arg(long, value_delimiter = ',', conflicts_with = "rwmixread")]
    pub(super) rwmixwrite: Vec<String>,
    /// Trims among the operations that do not read, in percent [default: 0]
    #[arg(long, alias = "trim_percentage", value_delimiter = ',')]
    pub(super) trim_percent: Vec<String>,
    /// The NVM set that is read and written, by number from 1 on, or all of them [default: 1]
    #[arg(long, value_delimiter = ',')]
    pub(super) nvm_set: Vec<String>,
    /// How long the part of the set is that is read and written: 1GiB, 25% [default: to the end]
    #[arg(long, allow_hyphen_values = true, value_delimiter = ',')]
    pub(super) size: Vec<String>,
    /// Where that part begins
    #[arg(long, allow_hyphen_values = true, value_delimiter = ',')]
    pub(super) offset: Vec<String>,
    /// So many writes are followed by a flush
    #[arg(long, value_delimiter = ',')]
    pub(super) fsync: Vec<String>,
    /// What happened to the drive before: empty, sequential (written once), random (then overwritten to a steady state)
    /// [default: random]
    #[arg(long, value_delimiter = ',')]
    pub(super) precondition: Vec<String>,
    /// The share of each set that was written before [default: all of it]
    #[arg(long, allow_hyphen_values = true, value_delimiter = ',')]
    pub(super) fill: Vec<String>,
    /// Set a key of the job's or the device's file: `stream.2.set=3`, `read_us=[60.0, 60.0, 60.0]`. It is checked as if it stood in
    /// the file
    #[arg(long, value_name = "KEY=VALUE", value_parser = Setting::parse)]
    pub(super) set: Vec<Setting>,
    /// Seed of all randomness: the same seed gives the same result
    #[arg(long, default_value = "1", value_delimiter = ',', value_parser = values::seed)]
    pub(super) seed: Vec<u64>,
    /// Runs at a time, if several values make several; the results do not depend on it [default: one a core, as long as there
    /// is memory for them]
    #[arg(long, value_parser = values::threads)]
    pub(super) threads: Option<u64>,
    #[command(flatten)]
    pub(super) passed_over: PassedOver,
    #[command(flatten)]
    pub(super) results: ResultArguments,
}

/// Options of fio's that make no difference here, and are told to make none.
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
    #[arg(long, alias = "group_reporting", hide = true, num_args = 0..=1, default_missing_value = "")]
    group_reporting: Option<String>,
}

impl PassedOver {
    /// What is said of those that are given.
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
