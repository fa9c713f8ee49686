//! How a runtime waits until the next thing can happen: the one difference between virtual and
//! real time.

use crate::Nanos;

/// What the executor does when no task can run.
///
/// In virtual time the clock jumps. A real-time driver (`io_uring`, thread pool) will read the
/// clock, submit what is queued and wait for a completion or the deadline, whichever is first.
pub trait Park {
    /// Waits until `deadline`, the next timer, and returns the time it is then: at least the
    /// earlier `now`; before `deadline` only if something else has happened.
    fn park(&mut self, now: Nanos, deadline: Nanos) -> Nanos;
}

/// Virtual time: waiting costs nothing.
#[derive(Debug, Default)]
pub struct VirtualTime;

impl Park for VirtualTime {
    fn park(&mut self, now: Nanos, deadline: Nanos) -> Nanos {
        now.max(deadline)
    }
}
