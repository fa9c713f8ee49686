//! The one source of time, tasks, randomness and I/O for all crates below the command line.
//!
//! A [`Runtime`] is a single-threaded async executor. In virtual time, the clock stands still while
//! tasks run and jumps to the next timer when no task is ready: a simulated second costs as much
//! wall time as its events. The same seed gives the same order of tasks and the same random
//! streams, and so the same results, byte for byte; [`Handle::trace_hash`] verifies this.
//!
//! ```
//! use runtime::{Nanos, Runtime};
//!
//! let rt = Runtime::new(42);
//! let handle = rt.handle();
//! let slept = rt.block_on(async move {
//!     handle.sleep(Nanos::from_micros(75)).await;
//!     handle.now()
//! });
//! assert_eq!(slept, Nanos::from_micros(75));
//! ```
//!
//! In real time ([`Runtime::real`]) the same tasks use the system's clock, files, other threads
//! that send them work ([`Remote`], [`mailbox`]), and threads that compute for them
//! ([`Handle::compute`]). Library code cannot tell virtual from real time, except with
//! [`Handle::is_real`].
//!
//! Invariants: one task runs at a time. Time never goes back. A task that is polled more than
//! [`POLL_LIMIT`] times within one instant is a bug: the runtime panics with the task's name.

#![expect(
    clippy::disallowed_macros,
    reason = "the list of runtimes that a thread runs, and a count for tests; see `waker` and `counted`"
)]

mod carrier;
mod channel;
#[cfg(feature = "test-hooks")]
pub mod counted;
mod executor;
mod io_class;
mod join;
mod nanos;
mod notify;
mod oneshot;
mod page_image;
mod permutation;
pub mod planted;
mod prefetch;
mod real;
mod resource;
mod rng;
mod semaphore;
mod timer;
mod waker;
mod wheel;

pub use carrier::Carrier;
pub use channel::{Receiver, Sender, bounded};
pub use executor::{Handle, POLL_LIMIT, Runtime, Standstill, TaskOrder};
pub use io_class::{IoClass, Priority};
/// The lock for data that outside threads share with a runtime. A panic does not poison it, because
/// no update is ever left half done.
pub use parking_lot::Mutex;

pub use join::{First, JoinHandle, first, join_all};
pub use nanos::Nanos;
pub use notify::Notify;
pub use oneshot::{OneshotReceiver, OneshotSender, oneshot};
pub use page_image::PageImage;
pub use permutation::Permutation;
pub use prefetch::prefetch;
pub use real::compute::Compute;
pub use real::file_read::{FileRead, ReadBuffers, ReadBytes};
pub use real::fork_mark::ForkMark;
pub use real::io::{FileCommand, Transfer};
pub use real::mailbox::{Mailbox, Outbox, mailbox};
pub use real::nvme::{AdminCompletion, AdminDwords};
pub use real::op::Room;
pub use real::post::{Gone, Remote};
pub use real::shared::Shared;
pub use real::wall_clock::{ExactSleep, WallClock};
pub use real::{IoChoice, IoEngine, RealOptions};
pub use resource::{Cores, Pipe};
pub use rng::{Rng, mix64};
pub use semaphore::{Permit, Semaphore};
pub use timer::{Event, Sleep};
