//! Windows: in turn, one member of a store takes the background writes, and the others are kept
//! free of them.
//!
//! This module only has the parameters. The crate `volume` implements windows, with the same code
//! as in the simulation. docs/decisions/0044 has the reasons.

use std::fmt;
use std::time::Duration;

use block::BlockDevice;
use block::nvme::PlmConfig;
use runtime::Nanos;
use volume::windows::slot::Rules;
use volume::windows::{JournalWrites, Keeper, State, WindowOptions};

use crate::options::{Options, Windows};
use crate::root::Root;

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

impl Root {
    /// Starts windows, if the options ask for them and the drives support them. Records the reason
    /// if the drives do not.
    pub(crate) async fn start_windows(&self, options: &Options) {
        let (Some(volume), Some(windows)) = (&self.volume, options.window_options()) else {
            return;
        };
        if options.read_only {
            return; // A read-only store has no writes for which reads would wait.
        }
        if options.windows == Windows::Plm
            && let Err(why) = self.device.look_for_windows().await
        {
            self.no_windows.set(Some(format!("the store has no windows: {why}")));
            return;
        }
        volume.start_windows(windows);
    }

    /// Turns off the windows of the drives, if they have any. Ignores errors, because the store is
    /// being closed.
    pub(crate) fn leave_windows(&self) -> impl Future<Output = ()> + use<> {
        let device = self.device.clone();
        async move {
            for set in device.sets().into_iter().filter(|set| set.has_windows) {
                let _refused = device.configure_plm(set.id, PlmConfig::default()).await;
            }
        }
    }

    /// Returns the counters of windows; `None` without windows.
    pub(crate) fn window_statistics(&self) -> Option<WindowStatistics> {
        let volume = self.volume.as_ref()?;
        let stats = volume.window_stats()?;
        let mut members: Vec<_> = volume.window_states().into_iter().map(Into::into).collect();
        for lost in volume.failed_members() {
            members[lost] = WindowState::Lost;
        }
        Some(WindowStatistics {
            members,
            slots: stats.slots,
            unfinished_slots: stats.unfinished_slots,
            direct_reads: stats.direct_reads,
            rebuilt_reads: stats.rebuilt_reads,
            busy_reads: stats.busy_reads,
            cached_reads: stats.cached_reads,
            cached_bytes: stats.cached,
            most_cached_bytes: stats.most_cached,
            waits_for_room: stats.waits_for_room,
            waited: Duration::from_nanos(stats.waited.0),
            journal_writes: stats.journal_writes,
            writes_in_dtwin: stats.writes_in_dtwin,
            lost_windows: stats.lost_windows,
        })
    }
}
