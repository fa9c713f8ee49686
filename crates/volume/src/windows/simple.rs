//! The simple driver of Vigil-KV's configurations PLM and I-PLM (ATC'22, section 7.1): each set is asked for its
//! deterministic window as soon as it may have it, and nothing is scheduled by that. A write takes the set out of it.

use std::cell::Cell;
use std::rc::Rc;

use block::nvme::{WindowSelect, WindowStatus};
use pages::MediumError;
use runtime::Nanos;

use super::Windowed;
use crate::volume::{Inner, Taker, Volume};

/// How often a set is asked whether it is still in its window (assumed).
const POLL: Nanos = Nanos(10_000_000);

/// A simple driver; it goes on as long as somebody holds it.
pub struct SimpleWindows {
    counts: Rc<Counts>,
}

#[derive(Default)]
struct Counts {
    is_ending: Cell<bool>,
    entered: Cell<u64>,
}

impl SimpleWindows {
    /// How often a set was taken to its deterministic window.
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
    /// Turns windows on in all members, and keeps each in its deterministic window for as long as nothing breaks it.
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

/// Keeps a member in its deterministic window.
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
