//! The write-ahead log: acknowledged writes that are not in the levels yet.
//!
//! Two mechanisms make writes durable (docs/decisions/0020). With *capacitors*, nothing is written
//! before a power cut; memory is dumped then. With a *log*, every write is written to the WAL
//! before it is acknowledged, and every edit to the manifest before it takes effect; memory may be
//! lost at any instant.
//!
//! ```text
//!  log .......... the WAL: group commit
//!  group_pages .. encoding of pages in groups that are valid as a whole or not at all
//!  records ...... encoding of writes
//!  extents ...... the extents of WAL and manifest
//! ```
//! WAL and manifest use extents of their own from the common pool, so that these wear like all
//! others. Their places are not recorded anywhere: each extent of theirs begins with a page that
//! identifies it, and recovery reads the first page of every extent. Alternatively, they use a
//! medium that holds nothing else (`PageStore::set_journal`).

pub(crate) mod extents;
pub(crate) mod group_pages;
pub(crate) mod log;
pub(crate) mod records;

use serde::{Deserialize, Serialize};

use crate::format::object::Sequence;

/// The mechanism that makes writes durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Memory survives: it is dumped after a power cut.
    #[default]
    Capacitors,
    /// A WAL and a manifest on the medium.
    Log,
}

/// When a write is acknowledged, if a WAL exists. The design sets the default; each write may
/// override it ([`WriteOptions`](crate::operations::WriteOptions)).
///
/// Writes enter the WAL in the order in which the store accepts them, and a power cut preserves a
/// prefix of that order: if a write survives, all writes accepted before it survive too, in
/// whichever mode they were acknowledged. A write that was acknowledged before another write was
/// issued was accepted before it. So a write with [`Self::Group`] or [`Self::Each`] also makes all
/// earlier writes durable, and a power cut can lose only the newest of the writes that were
/// acknowledged at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogSync {
    /// At once. The write becomes durable when it has filled a program together with later writes,
    /// when a client waits for a later write, or when its memtable is flushed.
    None,
    /// At once. The write is written to the WAL within a millisecond, after the groups that already
    /// wait.
    Interval,
    /// When it is durable, together with writes that arrived meanwhile: group commit.
    #[default]
    Group,
    /// When it is durable, in a group of its own.
    Each,
}

/// The journal contents that a memtable's flush makes unnecessary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flushed {
    /// Client writes up to this sequence number are in the levels.
    pub sequence: Sequence,
    /// The WAL is needed from this group on.
    pub log_from: u64,
}
