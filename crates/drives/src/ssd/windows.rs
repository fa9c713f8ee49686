//! Predictable-latency windows of one set: its state and the transitions. Decisions only;
//! `set/window.rs` executes them.
//!
//! ```text
//!          enable                  select DTWIN, once NDWIN has lasted long enough
//!   Off ----------> Ndwin ---------------------------------------------> Lockdown
//!                     ^  ^                                                   | buffer empty,
//!                     |  |    select NDWIN; or by itself: budget spent,      v no job running
//!                     |  +--------------------------------------------- Dtwin
//!                     +- disable from any state goes to Off
//! ```
//!
//! Sources: NVMe base specification 2.x, Predictable Latency Mode; Vigil-KV (ATC'22) sections 4.1
//! and 5. Where they differ, [`PlmRules`] selects one.

use block::BLOCK_BYTES;
use block::nvme::{Budget, Event, Events, PerSetLog, PlmConfig, WindowStatus};
use runtime::Nanos;

use super::profile::{PlmProfile, PlmRules};

/// The window of a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Window {
    /// The mode is disabled: reads, writes and internal jobs run at any time.
    Off,
    /// Reads and writes run at any time; internal jobs run as many as there are.
    Ndwin { since: Nanos },
    /// Transition to DTWIN: the buffer is emptied, no further job begins, and writes wait.
    Lockdown { since: Nanos },
    /// Only commands of clients access the flash.
    Dtwin { since: Nanos, used: Used },
}

/// Used part of a DTWIN's budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Used {
    reads: u64,
    written_bytes: u64,
}

/// Whether a write may proceed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Admission {
    Now,
    /// After the lockdown.
    Later,
    /// The write first returns the set to NDWIN.
    EndsWindow,
}

/// The windows of a set.
#[derive(Clone, Debug)]
pub(crate) struct Windows {
    profile: Option<PlmProfile>,
    config: PlmConfig,
    optimal_write_bytes: u64,
    window: Window,
    /// Recorded events that the host has not read yet.
    events: Events,
    /// Number of the DTWIN: identifies a window.
    generation: u64,
}

impl Windows {
    pub(crate) fn new(profile: Option<PlmProfile>, optimal_write_bytes: u64) -> Self {
        Self {
            profile,
            config: PlmConfig::default(),
            optimal_write_bytes,
            window: Window::Off,
            events: Events::NONE,
            generation: 0,
        }
    }

    pub(crate) fn window(&self) -> Window {
        self.window
    }

    pub(crate) fn is_supported(&self) -> bool {
        self.profile.is_some()
    }

    pub(crate) fn config(&self) -> PlmConfig {
        self.config
    }

    pub(crate) fn events(&self) -> Events {
        self.events
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns whether internal jobs run.
    pub(crate) fn runs_jobs(&self) -> bool {
        matches!(self.window, Window::Off | Window::Ndwin { .. })
    }

    /// Returns whether buffered blocks go to flash.
    pub(crate) fn empties_buffer(&self) -> bool {
        !matches!(self.window, Window::Dtwin { .. })
    }

    pub(crate) fn is_deterministic(&self) -> bool {
        matches!(self.window, Window::Dtwin { .. })
    }

    /// Sets the configuration. Enabling moves the set into NDWIN, disabling ends any window.
    pub(crate) fn configure(&mut self, config: PlmConfig, now: Nanos) {
        match (config.enabled, self.window) {
            (false, _) => self.window = Window::Off,
            (true, Window::Off) => self.window = Window::Ndwin { since: now },
            (true, _) => {}
        }
        self.config = config;
        self.warn(now);
    }

    /// Returns the earliest time at which the set may begin to leave NDWIN.
    pub(crate) fn earliest_lockdown(&self) -> Option<Nanos> {
        let low = self.profile.as_ref().map_or(0, |p| p.ndwin_time_min_low_ms);
        match self.window {
            Window::Ndwin { since } => Some(since + Nanos::from_millis(low)),
            _ => None,
        }
    }

    pub(crate) fn begin_lockdown(&mut self, now: Nanos) {
        assert!(matches!(self.window, Window::Ndwin { .. }), "only NDWIN leads to DTWIN");
        self.window = Window::Lockdown { since: now };
    }

    /// Enters DTWIN. Returns the time at which the set must leave it.
    pub(crate) fn enter_dtwin(&mut self, now: Nanos) -> Nanos {
        assert!(matches!(self.window, Window::Lockdown { .. }), "lockdown comes first");
        self.window = Window::Dtwin { since: now, used: Used::default() };
        self.generation += 1;
        self.warn(now);
        let max = self.profile.as_ref().map_or(0, |p| p.dtwin_time_max_ms);
        now + Nanos::from_millis(max)
    }

    /// Returns to NDWIN, on the host's command or because of `event`.
    pub(crate) fn leave_dtwin(&mut self, now: Nanos, event: Option<Event>) {
        assert!(self.is_deterministic(), "only DTWIN is left");
        self.window = Window::Ndwin { since: now };
        if let Some(event) = event {
            self.record(event);
        }
    }

    /// Clears the events after the host has read them.
    pub(crate) fn clear_events(&mut self) {
        self.events = Events::NONE;
    }

    fn record(&mut self, event: Event) {
        let enabled = self.config.thresholds.events;
        self.events = self.events.with(event).intersection(enabled);
    }

    /// Returns whether a write of `bytes` may proceed now.
    pub(crate) fn admit_write(&self, bytes: u64) -> Admission {
        let Window::Dtwin { used, .. } = self.window else {
            let is_locked = matches!(self.window, Window::Lockdown { .. });
            return if is_locked { Admission::Later } else { Admission::Now };
        };
        let profile = self.profile.as_ref().expect("a drive without windows is in none");
        let typical = profile.dtwin_writes_typical * self.optimal_write_bytes;
        let fits = used.written_bytes + bytes <= typical;
        match profile.rules {
            PlmRules::Standard if fits => Admission::Now,
            PlmRules::Standard | PlmRules::Vigil => Admission::EndsWindow,
        }
    }

    /// Counts a write that proceeded.
    pub(crate) fn count_write(&mut self, bytes: u64, now: Nanos) {
        if let Window::Dtwin { used, .. } = &mut self.window {
            used.written_bytes += bytes;
            self.warn(now);
        }
    }

    /// Counts a read. Returns true if the read budget is exceeded: the set must leave the window.
    pub(crate) fn count_read(&mut self, bytes: u64, now: Nanos) -> bool {
        let Window::Dtwin { used, .. } = &mut self.window else { return false };
        used.reads += bytes.div_ceil(u64::from(BLOCK_BYTES));
        let reads = used.reads;
        self.warn(now);
        let profile = self.profile.as_ref().expect("a drive without windows is in none");
        profile.dtwin_reads_typical > 0 && reads > profile.dtwin_reads_typical
    }

    /// Records warnings whose threshold is reached.
    pub(crate) fn warn(&mut self, now: Nanos) {
        if self.config.thresholds.events.is_empty() || !self.is_deterministic() {
            return;
        }
        let (left, thresholds) = (self.left(now), self.config.thresholds.left);
        let has_reads = self.profile.as_ref().is_some_and(|p| p.dtwin_reads_typical > 0);
        let has_writes = self.profile.as_ref().is_some_and(|p| p.dtwin_writes_typical > 0);
        let warnings = [
            (has_reads && left.reads < thresholds.reads, Event::ReadsWarning),
            (has_writes && left.writes < thresholds.writes, Event::WritesWarning),
            (left.time_ms < thresholds.time_ms, Event::TimeWarning),
        ];
        for (is_due, event) in warnings {
            if is_due {
                self.record(event);
            }
        }
    }

    /// Returns the time of the time warning, if it is enabled.
    pub(crate) fn time_warning_at(&self) -> Option<Nanos> {
        let (Window::Dtwin { since, .. }, Some(profile)) = (self.window, &self.profile) else {
            return None;
        };
        let wants = self.config.thresholds.events.contains(Event::TimeWarning);
        let threshold = self.config.thresholds.left.time_ms;
        // The first millisecond at which less than the threshold is left.
        let after = (profile.dtwin_time_max_ms + 1).checked_sub(threshold)?;
        (wants && threshold > 0).then(|| since + Nanos::from_millis(after))
    }

    fn typical(&self) -> Budget {
        let of = |get: fn(&PlmProfile) -> u64| self.profile.as_ref().map_or(0, get);
        Budget {
            reads: of(|p| p.dtwin_reads_typical),
            writes: of(|p| p.dtwin_writes_typical),
            time_ms: of(|p| p.dtwin_time_max_ms),
        }
    }

    /// Returns the rest of the window's budget; the whole budget outside a window.
    fn left(&self, now: Nanos) -> Budget {
        let all = self.typical();
        let Window::Dtwin { since, used } = self.window else { return all };
        let writes = used.written_bytes.div_ceil(self.optimal_write_bytes);
        Budget {
            reads: all.reads.saturating_sub(used.reads),
            writes: all.writes.saturating_sub(writes),
            time_ms: all.time_ms.saturating_sub((now - since).0 / 1_000_000),
        }
    }

    /// Returns the log page 0Ah.
    pub(crate) fn log(&self, now: Nanos, lockdown_estimate: Nanos) -> PerSetLog {
        let status = match self.window {
            Window::Off => WindowStatus::NotEnabled,
            Window::Dtwin { .. } => WindowStatus::Dtwin,
            Window::Ndwin { .. } | Window::Lockdown { .. } => WindowStatus::Ndwin,
        };
        let of = |get: fn(&PlmProfile) -> u64| self.profile.as_ref().map_or(0, get);
        let reports_lockdown = self.profile.as_ref().is_some_and(|p| p.rules == PlmRules::Vigil);
        let lockdown_us = if reports_lockdown { lockdown_estimate.0.div_ceil(1_000) } else { 0 };
        PerSetLog {
            status,
            events: self.events,
            dtwin: self.typical(),
            ndwin_minimum_high_ms: of(|p| p.ndwin_time_min_high_ms),
            ndwin_minimum_low_ms: of(|p| p.ndwin_time_min_low_ms),
            left: self.left(now),
            lockdown_estimate_us: std::num::NonZeroU64::new(lockdown_us),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::nvme::Thresholds;

    const S: u64 = 1_000_000_000;

    fn windows(rules: PlmRules) -> Windows {
        let profile = PlmProfile {
            rules,
            dtwin_time_max_ms: 60_000,
            ndwin_time_min_low_ms: 4_000,
            ndwin_time_min_high_ms: 5_000,
            dtwin_reads_typical: if rules == PlmRules::Standard { 10 } else { 0 },
            dtwin_writes_typical: if rules == PlmRules::Standard { 2 } else { 0 },
        };
        let mut windows = Windows::new(Some(profile), 16_384);
        let left = Budget { reads: 3, writes: 1, time_ms: 1_000 };
        let thresholds = Thresholds { events: Events::ALL, left };
        windows.configure(PlmConfig { enabled: true, thresholds }, Nanos(S));
        windows
    }

    fn in_dtwin(rules: PlmRules) -> Windows {
        let mut windows = windows(rules);
        assert_eq!(windows.earliest_lockdown(), Some(Nanos(5 * S)));
        windows.begin_lockdown(Nanos(5 * S));
        assert_eq!(windows.admit_write(4_096), Admission::Later);
        assert_eq!(windows.enter_dtwin(Nanos(5 * S)), Nanos(65 * S));
        windows
    }

    #[test]
    fn vigil_s_window_ends_with_any_write_and_not_with_reads() {
        let mut windows = in_dtwin(PlmRules::Vigil);
        assert_eq!(windows.admit_write(4_096), Admission::EndsWindow);
        assert!((0..1_000).all(|_| !windows.count_read(4_096, Nanos(6 * S))));
        assert!(windows.events().is_empty());
        windows.leave_dtwin(Nanos(7 * S), Some(Event::Exceeded));
        assert!(windows.events().contains(Event::Exceeded));
        assert_eq!(windows.earliest_lockdown(), Some(Nanos(11 * S)));
    }

    #[test]
    fn the_standard_s_window_has_budgets_that_are_counted_down() {
        let mut windows = in_dtwin(PlmRules::Standard);
        assert_eq!(windows.admit_write(32_768), Admission::Now);
        windows.count_write(20_000, Nanos(6 * S));
        assert_eq!(
            windows.log(Nanos(6 * S), Nanos::ZERO).left,
            Budget { reads: 10, writes: 0, time_ms: 59_000 }
        );
        assert!(windows.events().contains(Event::WritesWarning));
        assert_eq!(windows.admit_write(16_384), Admission::EndsWindow);
        let spent: Vec<bool> = (0..11).map(|_| windows.count_read(4_096, Nanos(6 * S))).collect();
        assert_eq!(spent.iter().position(|spent| *spent), Some(10));
        assert!(windows.events().contains(Event::ReadsWarning));
        assert!(!windows.events().contains(Event::TimeWarning));
        assert_eq!(windows.time_warning_at(), Some(Nanos(64 * S + S / 1_000)));
        windows.warn(Nanos(64 * S + S / 1_000));
        assert!(windows.events().contains(Event::TimeWarning));
    }

    #[test]
    fn a_threshold_above_what_is_left_is_noticed_at_once() {
        let mut windows = windows(PlmRules::Standard);
        let beyond = |time_ms| Thresholds {
            events: Events::ALL,
            left: Budget { reads: 11, writes: 0, time_ms },
        };
        windows.configure(PlmConfig { enabled: true, thresholds: beyond(0) }, Nanos(2 * S));
        assert!(windows.events().is_empty(), "there is no window to warn of");
        windows.begin_lockdown(Nanos(5 * S));
        windows.enter_dtwin(Nanos(5 * S));
        assert_eq!(windows.events(), Events::NONE.with(Event::ReadsWarning));
        windows.clear_events();
        windows.configure(PlmConfig { enabled: true, thresholds: beyond(70_000) }, Nanos(6 * S));
        assert!(windows.events().contains(Event::TimeWarning));
    }

    #[test]
    fn only_events_that_were_enabled_are_recorded() {
        let mut windows = in_dtwin(PlmRules::Vigil);
        windows.configure(PlmConfig { enabled: true, ..PlmConfig::default() }, Nanos(6 * S));
        assert!(windows.is_deterministic(), "enabling twice changes no window");
        windows.leave_dtwin(Nanos(7 * S), Some(Event::Excursion));
        assert!(windows.events().is_empty());
        windows.configure(PlmConfig::default(), Nanos(8 * S));
        assert_eq!(windows.window(), Window::Off);
    }
}
