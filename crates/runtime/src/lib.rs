//! The one source of time, tasks, randomness and I/O for everything below the command line.
//!
//! A [`Runtime`] is a single-threaded async executor. In virtual time its clock stands still while
//! tasks run and jumps to the next timer when none can: a simulated second costs as much wall time
//! as its events do. The same seed gives the same order of tasks, the same random streams and so
//! the same bytes; [`Handle::trace_hash`] is the witness.
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
//! Invariants: no task runs on another thread; virtual time never goes back; a task that is polled
//! more than [`POLL_LIMIT`] times within one virtual instant is a bug and panics by name.
//!
//! Real time is later work: [`park::Park`] is the place where the two differ.

mod channel;
#[cfg(feature = "count-allocations")]
pub mod counted;
mod executor;
mod io_class;
mod join;
mod nanos;
mod notify;
mod oneshot;
mod page_image;
pub mod park;
mod prefetch;
mod resource;
mod rng;
mod semaphore;
mod timer;
mod waker;
mod wheel;

pub use channel::{Receiver, Sender, bounded};
pub use executor::{Handle, POLL_LIMIT, Runtime, TaskOrder};
pub use io_class::{IoClass, Priority};
pub use join::{First, JoinHandle, first, join_all};
pub use nanos::Nanos;
pub use notify::Notify;
pub use oneshot::{OneshotReceiver, OneshotSender, oneshot};
pub use page_image::PageImage;
pub use prefetch::prefetch;
pub use resource::{Cores, Pipe};
pub use rng::{Rng, mix64};
pub use semaphore::{Permit, Semaphore};
pub use timer::{Event, Sleep};
