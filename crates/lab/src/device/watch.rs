//! Looking at a job from outside, between two instants of virtual time: what the drive does, and whether it does anything
//! for clients, makes no difference.

use std::cell::{Cell, RefCell};

use runtime::Notify;
use workload::Stop;

/// Whoever watches looks every so many instants: a millisecond or less of wall time.
const EVERY: u64 = 1 << 10;

/// How far the job is, is told every so many.
const TELL_EVERY: u64 = 1 << 16;

/// What is under way when the end is asked for may end within so many. A drive that is behind with its own work may take
/// far longer, and whoever asks does not wait for that.
const GRACE: u64 = 1 << 17;

/// See the module.
#[derive(Default)]
pub(super) struct Watch {
    stop: Stop,
    instants: Cell<u64>,
    /// When somebody has been seen to ask for the end.
    asked: Cell<Option<u64>>,
    /// Tells how far the job is.
    tell: RefCell<Option<Box<dyn Fn()>>>,
    /// The job is to be left where it stands.
    pub(super) cut: Notify,
}

impl Watch {
    pub(super) fn new(stop: Stop) -> Self {
        Self { stop, ..Self::default() }
    }

    pub(super) fn on_progress(&self, tell: impl Fn() + 'static) {
        self.tell.replace(Some(Box::new(tell)));
    }

    /// An instant is over.
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
