//! Windows: in turn, one member of a store takes the background writes, and the others are kept
//! free of them.
//!
//! This module only has the parameters. The crate `volume` implements windows, with the same code
//! as in the simulation. docs/decisions/0044 has the reasons.

use std::fmt;
use std::time::Duration;

use runtime::Nanos;
use volume::windows::slot::Rules;
use volume::windows::{JournalWrites, Keeper, State, WindowOptions};

use crate::options::{Options, Windows};

/// The rules for members without requirements of their own. A slot ends with a flush of the
/// member's file, which takes 1 to 10 ms, a small part of 50 ms. A memtable is released after one
/// slot of each member. With three members this is shorter than the time in which the next memtable
/// fills at about 100 MB/s, so writers do not wait.
const BY_HOST: Rules = Rules {
    max_dtwin: Nanos::from_millis(10_000),
    min_ndwin: Nanos::from_millis(50),
    lockdown: Nanos::from_millis(20),
};

impl Options {
    /// Returns the volume's window options; `None` without windows.
    pub(crate) fn window_options(&self) -> Option<WindowOptions> {
        let keeper = match self.windows {
            Windows::Off => return None,
            Windows::Rails => Keeper::Host(BY_HOST),
            Windows::Plm => Keeper::Device,
        };
        Some(WindowOptions {
            keeper,
            cache_bytes: self.plm_cache_bytes,
            journal: JournalWrites::AtOnce,
            ..WindowOptions::O_VIGIL
        })
    }
}

/// The window state of a member (a directory or a drive): the I/O that it may receive now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum WindowState {
    /// All I/O: windows have not started or have ended.
    Off,
    /// ADT, in the member's deterministic window: reads, and writes of the log.
    Adt,
    /// UDT, just before the member's slot: reads in flight complete.
    Udt,
    /// AND, in the member's slot: background writes.
    And,
    /// UND, just before the end of the slot: writes in flight complete and are made durable.
    Und,
    /// The member prepares for its deterministic window.
    Lockdown,
    /// The member is lost or read-only.
    Lost,
}

impl fmt::Display for WindowState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::Adt => "adt",
            Self::Udt => "udt",
            Self::And => "and",
            Self::Und => "und",
            Self::Lockdown => "lockdown",
            Self::Lost => "lost",
        })
    }
}

impl From<State> for WindowState {
    fn from(state: State) -> Self {
        match state {
            State::Off => Self::Off,
            State::Adt => Self::Adt,
            State::Udt => Self::Udt,
            State::And => Self::And,
            State::Und => Self::Und,
            State::Lockdown => Self::Lockdown,
        }
    }
}

/// Counters of windows since the store was opened. Reads are counted in pages
/// ([`Options::page_bytes`]), writes in commands.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct WindowStatistics {
    /// The present state of each member, in the order of the directories.
    pub members: Vec<WindowState>,
    /// Slots so far.
    pub slots: u64,
    /// Slots that ended with writes left to do.
    pub unfinished_slots: u64,
    /// Pages that callers read from a member in its deterministic window.
    pub direct_reads: u64,
    /// Pages that were rebuilt from the other members, because their member was outside its
    /// deterministic window.
    pub rebuilt_reads: u64,
    /// Pages that callers read from a member outside its deterministic window, because another
    /// member was missing.
    pub busy_reads: u64,
    /// Pages that were read from `plm_cache`.
    pub cached_reads: u64,
    /// Bytes in `plm_cache` now, parity included.
    pub cached_bytes: u64,
    /// The maximum of `cached_bytes` so far.
    pub most_cached_bytes: u64,
    /// Stripes that waited for space in `plm_cache`.
    pub waits_for_room: u64,
    /// The total time that they waited.
    pub waited: Duration,
    /// Writes of log and manifest to members outside their slots.
    pub journal_writes: u64,
    /// Other writes that completed outside a slot. Should be 0.
    pub writes_in_dtwin: u64,
    /// Times that a drive was not in the window into which it had been switched.
    pub lost_windows: u64,
}
