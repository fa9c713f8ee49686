//! Observation of a job from outside, between two instants of virtual time. It works whatever the
//! drive does, even if the drive completes no operation of clients.

use std::cell::{Cell, RefCell};

use runtime::Notify;
use workload::Stop;

/// Instants between two looks: at most a millisecond of wall time.
const EVERY: u64 = 1 << 10;

/// Instants between two progress reports.
const TELL_EVERY: u64 = 1 << 16;

/// Instants from a stop request to the cut, in which operations in flight may end. A drive with
/// much pending background work may need far more.
const GRACE: u64 = 1 << 17;

/// The observer of a job; see the module.
#[derive(Default)]
pub(super) struct Watch {
    stop: Stop,
    instants: Cell<u64>,
    /// The instant at which the stop request was seen.
    asked: Cell<Option<u64>>,
    /// Reports the progress of the job.
    tell: RefCell<Option<Box<dyn Fn()>>>,
    /// Notified when the job must end at once, with operations in flight.
    pub(super) cut: Notify,
}

impl Watch {
    pub(super) fn new(stop: Stop) -> Self {
        Self { stop, ..Self::default() }
    }

    pub(super) fn on_progress(&self, tell: impl Fn() + 'static) {
        self.tell.replace(Some(Box::new(tell)));
    }

    /// Counts an instant, and looks at the job if a look is due.
    pub(super) fn look(&self) {
        let now = self.instants.get() + 1;
        self.instants.set(now);
        if !now.is_multiple_of(EVERY) {
            return;
        }
        if self.asked.get().is_none() && self.stop.is_asked() {
            self.asked.set(Some(now));
        }
        if self.asked.get().is_some_and(|asked| now - asked >= GRACE) {
            self.cut.notify_all();
        }
        if now.is_multiple_of(TELL_EVERY)
            && let Some(tell) = &*self.tell.borrow()
        {
            tell();
        }
    }
}
