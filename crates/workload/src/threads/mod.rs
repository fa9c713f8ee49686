//! Clients that are threads, for stores in real time.
//!
//! What they do is what the tasks of [`Session`](crate::Session) do: the same streams of operations, the same oracle, the same
//! report. A thread takes its next operation and a ticket for it with a lock held, lets go of it, does the operation on its own,
//! and comes back with what it got. So a client waits for others of its kind between operations only, and in a closed loop no
//! such wait is in any latency.

mod client;
mod session;
mod target;

pub use session::{Part, SharedSession};
pub use target::SharedTarget;
