//! The client that moves a set from window to window, and its checks.

use block::nvme::{Budget, Events, PlmConfig, Status, Thresholds, WindowSelect, WindowStatus};
use block::{BlockDevice, DeviceError};
use drives::nand::FlashStats;
use drives::ssd::SetReport;
use runtime::{IoClass, Nanos};

use crate::client::Client;
use crate::harness::set_id;
use crate::world::Command;

/// Observed state of a window.
struct Look {
    status: WindowStatus,
    entered: u64,
    broken: u64,
    /// Flash operations of internal jobs and programs.
    internal: u64,
}

impl Client {
    /// Sends window commands until the session ends.
    pub(crate) async fn run_windows(self, has_windows: bool) {
        if !has_windows {
            return self.windows_are_refused().await;
        }
        while !self.world.is_over.get() {
            let thresholds = self.thresholds();
            self.configure(PlmConfig { enabled: true, thresholds }).await;
            self.expect_status(WindowStatus::Ndwin).await;
            for _ in 0..self.below(12) {
                if self.world.is_over.get() {
                    break;
                }
                self.one_window().await;
            }
            self.is_quiet().set(false);
            self.configure(PlmConfig::default()).await;
            self.expect_status(WindowStatus::NotEnabled).await;
            self.pause(3).await;
        }
    }

    async fn windows_are_refused(&self) {
        let refused = self.ssd.select_window(set_id(self.set), WindowSelect::Dtwin).await;
        if refused != Err(DeviceError::Refused(Status::InvalidField)) {
            self.world.complain(format!("a drive without windows says {refused:?}"));
        }
    }

    async fn one_window(&self) {
        self.is_quiet().set(self.below(10) < 7);
        let before = self.look().await;
        self.select(WindowSelect::Dtwin).await;
        let (from, until) = (self.look().await, self.below(4));
        if from.status != WindowStatus::Dtwin && from.broken == before.broken {
            self.world.complain(format!("it was to be in DTWIN, and is {:?}", from.status));
        }
        for _ in 0..until {
            self.pause(5).await;
            self.compare(&from).await;
        }
        self.is_quiet().set(false);
        self.pause(2).await;
        self.compare(&from).await;
        if self.below(3) > 0 {
            self.select(WindowSelect::Ndwin).await;
            self.expect_status(WindowStatus::Ndwin).await;
            self.pause(4).await;
        }
        if self.below(4) == 0 {
            self.ssd.plm_events().await.expect("the drive answers");
        }
    }

    fn is_quiet(&self) -> &std::cell::Cell<bool> {
        &self.world.is_quiet[usize::from(self.set)]
    }

    fn thresholds(&self) -> Thresholds {
        let left = Budget { reads: self.below(50), writes: self.below(3), time_ms: self.below(8) };
        let events = if self.below(3) == 0 { Events::NONE } else { Events::ALL };
        Thresholds { events, left }
    }

    async fn pause(&self, most_ms: u64) {
        self.handle.sleep(Nanos(self.below(most_ms * 1_000_000))).await;
    }

    async fn configure(&self, config: PlmConfig) {
        self.world.begin(self.number, Command::Window { set: self.set }, self.handle.now());
        let done = self.ssd.configure_plm(set_id(self.set), config).await;
        self.world.end(self.number);
        let is_set = self.ssd.plm_config(set_id(self.set)).await == Ok(config);
        if done != Ok(()) || !is_set {
            self.world.complain(format!("configuring windows: {done:?}"));
        }
    }

    async fn select(&self, window: WindowSelect) {
        self.world.begin(self.number, Command::Window { set: self.set }, self.handle.now());
        let done = self.ssd.select_window(set_id(self.set), window).await;
        self.world.end(self.number);
        if done != Ok(()) {
            self.world.complain(format!("selecting {window:?}: {done:?}"));
        }
    }

    async fn expect_status(&self, expected: WindowStatus) {
        let status = self.look().await.status;
        if status != expected {
            self.world.complain(format!("it was to be in {expected:?}, and is in {status:?}"));
        }
    }

    async fn look(&self) -> Look {
        let retains = self.below(2) == 0;
        // Both at the same instant: the log is created when its command begins.
        let report = self.ssd.report(set_id(self.set)).expect("the set is there");
        let log = self.ssd.plm_log(set_id(self.set), retains).await.expect("the set is there");
        let SetReport { firmware, flash, .. } = report;
        Look {
            status: log.status,
            entered: firmware.windows_entered,
            broken: firmware.windows_broken,
            internal: internal(&flash),
        }
    }

    /// Checks that the drive does no internal work during a window.
    async fn compare(&self, from: &Look) {
        let now = self.look().await;
        let is_same = now.entered == from.entered && now.broken == from.broken;
        if is_same && from.status == WindowStatus::Dtwin {
            if now.status != WindowStatus::Dtwin {
                self.world.complain("a window has ended for no reason".to_owned());
            }
            if now.internal != from.internal {
                self.world.complain("internal work in a deterministic window".to_owned());
            }
        }
    }
}

/// Returns the flash operations that are not client reads or read-ahead.
fn internal(flash: &FlashStats) -> u64 {
    let classes = [IoClass::Flush, IoClass::GcRead, IoClass::GcWrite, IoClass::Journal];
    let of_class = |class| {
        let counts = flash.of(class);
        counts.pages_read + counts.pages_programmed + counts.blocks_erased
    };
    classes.into_iter().map(of_class).sum()
}
