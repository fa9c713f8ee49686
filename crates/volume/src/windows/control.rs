//! The windows of a volume, as its users see them: on and off, statistics and states.

use std::rc::Rc;

use runtime::Nanos;

use super::devd::Devd;
use super::flow::Flow;
use super::{State, WindowOptions, WindowStats, Windowed, Windows};
use crate::volume::Volume;

impl<M: Windowed> Volume<M> {
    /// Turns windows on. All members first go to their deterministic windows; this takes the
    /// devices' shortest NDWIN, during which all commands continue. From then on all members but
    /// one are kept there.
    ///
    /// # Panics
    /// If windows are on already.
    pub fn start_windows(&self, options: WindowOptions) {
        let inner = &self.inner;
        let page_bytes = u64::from(inner.stripes.member_shape().page_bytes);
        let windows = Rc::new(Windows::new(options, page_bytes));
        let before = inner.windows.replace(Some(Rc::clone(&windows)));
        assert!(before.is_none(), "there are windows already");
        for taker in inner.takers() {
            taker.medium.flow().begin_slot(Nanos::MAX, options.write_bytes_per_second);
        }
        let devd = Devd::new(Rc::clone(inner), windows);
        inner.handle.spawn("devd", devd.run());
    }

    /// Waits until all members have been in their deterministic windows. Returns at once without
    /// windows.
    pub async fn windows_begun(&self) {
        let Some(windows) = self.inner.windows() else { return };
        windows.changed.wait_until(|| windows.has_begun.get()).await;
    }

    /// Writes the stripes in `plm_cache` to the members, and turns windows off.
    pub async fn end_windows(&self) {
        let inner = &self.inner;
        if let Some(windows) = inner.windows() {
            windows.is_ending.set(true);
            windows.changed.notify_all();
        }
        inner.changed.wait_until(|| inner.windows.borrow().is_none()).await;
    }

    /// Returns statistics since windows were turned on; `None` without windows.
    pub fn window_stats(&self) -> Option<WindowStats> {
        let windows = self.inner.windows()?;
        let takers = self.inner.takers();
        let of_all = |count: fn(&Flow) -> u64| -> u64 {
            takers.iter().map(|taker| count(taker.medium.flow())).sum()
        };
        let (writes_in_dtwin, journal_writes) =
            (of_all(Flow::writes_in_dtwin), of_all(Flow::writes_at_once));
        let cached = windows.cached();
        Some(WindowStats { writes_in_dtwin, journal_writes, cached, ..windows.stats.get() })
    }

    /// Returns the state of each member.
    pub fn window_states(&self) -> Vec<State> {
        self.inner.takers().iter().map(|taker| taker.medium.state()).collect()
    }
}
