//! Windows: all members of a store but one are kept free of what the store does in the background, in turn.
//!
//! What is here says only when and with which numbers; crate `volume` does it, with the code that is simulated elsewhere.
//! docs/decisions/0044 has the reasons.

use std::fmt;
use std::time::Duration;

use block::BlockDevice;
use block::nvme::PlmConfig;
use runtime::Nanos;
use volume::windows::slot::Rules;
use volume::windows::{JournalWrites, Keeper, State, WindowOptions};

use crate::options::{Options, Windows};
use crate::root::Root;

/// What a host grants members that ask for nothing. A slot ends with a flush of the member's file, which takes 1 to 10 ms: in 50 it is
/// a small part. A memtable is let go after a slot of each member: with three of them in less time than the next one
/// takes to fill at some 100 MB/s, so that writers do not wait.
const BY_HOST: Rules = Rules {
    max_dtwin: Nanos::from_millis(10_000),
    min_ndwin: Nanos::from_millis(50),
    lockdown: Nanos::from_millis(20),
};

impl Options {
    /// What a volume is told; nothing without windows.
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

/// What a member of a store, a directory or a drive, may be given now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum WindowState {
    /// Everything, as it comes: windows have not begun, or are over.
    Off,
    /// ADT: in its deterministic window. Reads, and the log.
    Adt,
    /// UDT: its slot is about to begin; reads that were begun come to their end.
    Udt,
    /// AND: its slot. What the store writes in the background.
    And,
    /// UND: its slot is about to end; writes that were begun come to their end, and are made durable.
    Und,
    /// It gets ready for its window.
    Lockdown,
    /// It is lost, or takes no more writes.
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

/// What windows did since the store was opened. Reads and writes are counted in pages of 4 KiB and in commands.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct WindowStatistics {
    /// What each member may be given now, in the order of the directories.
    pub members: Vec<WindowState>,
    /// Slots there were.
    pub slots: u64,
    /// Those that ended with writes left to do.
    pub unfinished_slots: u64,
    /// Pages that callers read from a member in its window.
    pub direct_reads: u64,
    /// Pages that were rebuilt from the others, because their member was outside its window.
    pub rebuilt_reads: u64,
    /// Pages that callers read from a member outside its window, because one of the others was missing.
    pub busy_reads: u64,
    /// Pages that were read from `plm_cache`.
    pub cached_reads: u64,
    /// Bytes in `plm_cache` now, parity included.
    pub cached_bytes: u64,
    /// Most bytes there were.
    pub most_cached_bytes: u64,
    /// Stripes that waited for room in `plm_cache`.
    pub waits_for_room: u64,
    /// How long they waited, all together.
    pub waited: Duration,
    /// Writes of log and manifest to members outside their slots.
    pub journal_writes: u64,
    /// Other writes that ended outside a slot: none, or something is wrong.
    pub writes_in_dtwin: u64,
    /// Times that a drive was not in the window that it was taken to.
    pub lost_windows: u64,
}

impl Root {
    /// Windows begin, if the options ask for them and the members have them. If those have not, why.
    pub(crate) async fn start_windows(&self, options: &Options) {
        let (Some(volume), Some(windows)) = (&self.volume, options.window_options()) else {
            return;
        };
        if options.read_only {
            return; // nothing is written that reads would wait for
        }
        if options.windows == Windows::Plm
            && let Err(why) = self.device.look_for_windows().await
        {
            self.no_windows.set(Some(format!("the store has no windows: {why}")));
            return;
        }
        volume.start_windows(windows);
    }

    /// Turns the drives' windows off, if they have any. What they refuse is theirs: the store is closed.
    pub(crate) fn leave_windows(&self) -> impl Future<Output = ()> + use<> {
        let device = self.device.clone();
        async move {
            for set in device.sets().into_iter().filter(|set| set.has_windows) {
                let _refused = device.configure_plm(set.id, PlmConfig::default()).await;
            }
        }
    }

    /// What windows did; nothing without them.
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
