//! The simple driver of Vigil-KV's configurations PLM and I-PLM (ATC'22, section 7.1). It requests
//! the deterministic window of each set as soon as the set may enter it, and schedules nothing by
//! windows. A write takes the set out of its window.

use std::cell::Cell;
use std::rc::Rc;

use block::nvme::{WindowSelect, WindowStatus};
use engine::MediumError;
use runtime::Nanos;

use super::Windowed;
use crate::volume::{Inner, Taker, Volume};

/// Poll interval to check whether a set is still in its window (assumed).
const POLL: Nanos = Nanos(10_000_000);

/// A simple driver. It runs until this handle is dropped.
pub struct SimpleWindows {
    counts: Rc<Counts>,
}

#[derive(Default)]
struct Counts {
    is_ending: Cell<bool>,
    entered: Cell<u64>,
}

impl SimpleWindows {
    /// Returns the number of times that a set entered its deterministic window.
    pub fn entered(&self) -> u64 {
        self.counts.entered.get()
    }
}

impl Drop for SimpleWindows {
    fn drop(&mut self) {
        self.counts.is_ending.set(true);
    }
}

impl<M: Windowed> Volume<M> {
    /// Turns windows on for all members, and keeps each in its deterministic window until a write
    /// breaks it, then again.
    pub fn start_simple_windows(&self) -> SimpleWindows {
        let counts = Rc::<Counts>::default();
        for taker in self.inner.takers() {
            let (inner, counts) = (Rc::clone(&self.inner), Rc::clone(&counts));
            self.inner.handle.spawn("simple windows", async move {
                if let Err(why) = keep(&inner, &taker, &counts).await {
                    inner.fail(&taker, why);
                }
            });
        }
        SimpleWindows { counts }
    }
}

async fn keep<M: Windowed>(
    inner: &Rc<Inner<M>>,
    taker: &Taker<M>,
    counts: &Counts,
) -> Result<(), MediumError> {
    let medium = taker.medium.medium();
    medium.configure_windows(true).await?;
    while !counts.is_ending.get() {
        medium.select_window(WindowSelect::Dtwin).await?;
        counts.entered.set(counts.entered.get() + 1);
        while medium.window_log().await?.status == WindowStatus::Dtwin && !counts.is_ending.get() {
            inner.handle.sleep(POLL).await;
        }
    }
    medium.configure_windows(false).await
}
