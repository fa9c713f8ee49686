//! The commands on a store: `put`, `get`, `delete`, `scan`, `load`, `dump`, `stats`, `verify`,
//! `repair`, `backup`, `compact`.
//!
//! Results go to stdout, everything else to stderr. Only `put` and `load` create a missing store,
//! and report it.

mod care;
mod compact;
mod encoding;
mod escapes;
mod input;
mod load;
mod output;
mod place;
mod point;
mod quotes;
mod scan;
mod stats;

pub(crate) use care::{BackupArguments, RepairArguments, VerifyArguments, backup, repair, verify};
pub(crate) use compact::{CompactArguments, compact};
pub(crate) use load::{LoadArguments, load};
pub(crate) use place::{
    Does, DurabilityArgument, WindowsArguments, check_directories, say_if_refused, say_what_is_lost,
};
pub(crate) use point::{DeleteArguments, GetArguments, PutArguments, delete, get, or_trouble, put};
pub(crate) use scan::{DumpArguments, ScanArguments, dump, scan};
pub(crate) use stats::{StatsArguments, stats, windows_text};

/// The file format of pairs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Format {
    /// One line per pair: key, tab, value; tabs, line ends, backslashes and bytes that are no text
    /// are escaped (\t, \n, \x00)
    Tsv,
    /// Comma-separated values, with a header
    Csv,
    /// JSON Lines: objects with `key` and `value`, or `key_base64` and `value_base64` for bytes
    /// that are no text
    Jsonl,
}
