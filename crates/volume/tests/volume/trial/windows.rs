//! Starts and ends of windows.

use volume::windows::Overflow;

use super::Life;

impl Life {
    /// Turns windows on or off at random, or leaves them unchanged.
    pub(super) async fn change_windows(&mut self) {
        let Some(options) = self.world.windows else { return };
        if self.volume.window_stats().is_some() {
            self.end_windows().await;
        } else if self.rng.chance(0.8) {
            self.volume.start_windows(options);
            self.tally.borrow_mut().windows += 1;
        }
    }

    /// Turns windows off, if they are on, and checks that their rules were kept.
    pub(super) async fn end_windows(&mut self) {
        let Some(stats) = self.volume.window_stats() else { return };
        let is_whole = {
            let mut tally = self.tally.borrow_mut();
            tally.slots += stats.slots;
            tally.cached_reads += stats.cached_reads;
            tally.quiet_rebuilds += stats.rebuilt_reads;
            tally.journal_writes += stats.journal_writes;
            tally.losses + tally.beyond + tally.cuts == 0
        };
        let waits = self.world.windows.is_some_and(|windows| windows.overflow == Overflow::Wait);
        let complain = |what: &str, count| {
            if count > 0 {
                let what = format!("{count} {what}: {stats:?}");
                self.model.borrow_mut().complaints.push(what);
            }
        };
        if waits {
            complain("writes ended in DTWIN", stats.writes_in_dtwin);
        }
        if is_whole && self.world.spares() > 0 {
            complain("reads went to busy members", stats.busy_reads);
        }
        self.volume.end_windows().await;
    }
}
