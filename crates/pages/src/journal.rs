//! The journal: what makes acknowledged writes and edits of the index outlive a power cut.
//!
//! Two ways to do it (docs/decisions/0020). With *capacitors* nothing is written before power fails:
//! memory is dumped then. With a *log* every write goes to a log of its own before it is acknowledged,
//! and every edit to a manifest before it is in force; what is in memory may be lost at any instant.
//!
//! ```text
//!  groups ..... bytes of journal pages: pages that count together or not at all
//!  log ........ writes that are not in the index yet, in groups
//!  manifest ... edits since the last checkpoint, and when the next one is due
//!  scan ....... what a power cut left of both
//!  unreadable, unneeded .. what of them cannot be read, and is not needed
//!  reopening .. what every index does with that
//!  fields ..... what the edits of every index have in them
//! ```
//! Log and manifest live in extents of their own, taken from all there are, so that they wear like
//! others. Nobody keeps where they are: each of their extents begins with a page that says what it
//! is, and a recovery looks at the first page of every extent. Or they live on a medium that has nothing else on
//! it (`PageStore::set_journal`).

pub mod fields;
pub(crate) mod groups;
pub(crate) mod log;
pub mod manifest;
pub(crate) mod reopening;
pub mod scan;
mod unneeded;
mod unreadable;

use serde::{Deserialize, Serialize};

use crate::format::object::Sequence;

/// What makes writes durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Memory survives: a power cut is followed by a dump of it.
    #[default]
    Capacitors,
    /// A log and a manifest on the medium.
    Log,
}

/// When a write is acknowledged, where there is a log: chosen by design, and by write
/// ([`WriteOptions`](crate::WriteOptions)).
///
/// Writes enter the log in the order in which the store takes them, and a power cut leaves a first
/// part of that order: where one survives, so do all that the store took before it, whichever way
/// they were acknowledged. What was acknowledged before another write was asked for was taken before
/// it. So a write with [`Self::Group`] or [`Self::Each`] makes all that came before it durable, too,
/// and a power cut may take away only the newest of those acknowledged at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogSync {
    /// At once. It is durable when it, and what came meanwhile, has filled a program, when somebody waits
    /// for a later write, or when its memtable is flushed.
    None,
    /// At once. It is written after a millisecond at the latest, behind the groups that wait before it.
    Interval,
    /// When it is durable, together with those that came meanwhile: group commit.
    #[default]
    Group,
    /// When it is durable, in a group of its own.
    Each,
}

/// What the flush of a memtable makes unnecessary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flushed {
    /// Writes of clients up to this one are in the levels.
    pub sequence: Sequence,
    /// The log is needed from this group on.
    pub log_from: u64,
}
