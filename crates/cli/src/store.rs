//! The commands on a store: `put`, `get`, `delete`, `scan`, `load`, `dump`, `stats`, `verify`,
//! `repair`, `backup`, `compact`.
//!
//! Each command has a file of its name; `dump` is in `scan.rs`. They share the names and flags of a
//! store and its opening (`open.rs`, `windows.rs`, `durability.rs`), keys and values as text
//! (`encoding.rs`, `escapes.rs`, `quotes.rs`, `input.rs`, `output.rs`), the report of damage
//! (`findings.rs`) and the exit code of a failure (`exit.rs`).
//!
//! Results go to stdout, everything else to stderr. Only `put` and `load` create a missing store,
//! and report it.

mod backup;
mod compact;
mod delete;
mod durability;
mod encoding;
mod escapes;
mod exit;
mod findings;
mod get;
mod input;
mod load;
mod open;
mod output;
mod put;
mod quotes;
mod repair;
mod scan;
mod stats;
mod verify;
mod windows;

pub(crate) use backup::{BackupArguments, backup};
pub(crate) use compact::{CompactArguments, compact};
pub(crate) use delete::{DeleteArguments, delete};
pub(crate) use durability::DurabilityArgument;
pub(crate) use exit::or_trouble;
pub(crate) use get::{GetArguments, get};
pub(crate) use load::{LoadArguments, load};
pub(crate) use open::{Does, check_directories, say_what_is_lost};
pub(crate) use put::{PutArguments, put};
pub(crate) use repair::{RepairArguments, repair};
pub(crate) use scan::{DumpArguments, ScanArguments, dump, scan};
pub(crate) use stats::{StatsArguments, stats, windows_text};
pub(crate) use verify::{VerifyArguments, verify};
pub(crate) use windows::{WindowsArguments, say_if_refused};

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
