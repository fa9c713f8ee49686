//! The commands on a store: `put`, `get`, `delete`, `scan`, `load`, `dump`, `stats`, `verify`, `repair`, `backup`,
//! `compact`.
//!
//! Results go to stdout as they are asked for, everything else to stderr. Only `put` and `load` make a store where none is,
//! and say so.

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

/// How pairs are written in files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Format {
    /// A line each: key, tab, value; what is no text, and tabs, line ends and backslashes, as escapes (\t, \n, \x00)
    Tsv,
    /// Comma-separated, with a header
    Csv,
    /// A JSON object a line, with `key` and `value`; what is no text as `key_base64` and `value_base64`
    Jsonl,
}
