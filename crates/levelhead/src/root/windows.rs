//! The windows of an open store: their start and end, and their counters.

use std::time::Duration;

use block::BlockDevice;
use block::nvme::PlmConfig;

use super::Root;
use crate::options::{Options, Windows};
use crate::windows::{WindowState, WindowStatistics};

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
