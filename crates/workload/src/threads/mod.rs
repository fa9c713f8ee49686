//! Client threads, for stores in real time.
//!
//! They work like the tasks of [`Session`](crate::Session): the same streams of operations, the
//! same oracle, the same report. A thread takes its next operation and a ticket for it under a
//! lock, executes the operation without the lock, and takes the lock again to check the result. So
//! a client waits for other clients only between operations, and in a closed loop no latency
//! includes such a wait.

mod client;
mod session;
mod target;

pub use session::{Part, SharedSession};
pub use target::SharedTarget;
