//! Limits on background I/O: a medium that wraps a medium.
//!
//! ```text
//!  Limited ........ the medium: limited I/O waits, all other I/O passes
//!   |- gate ....... waiting requests and their times; refills by timer     (shell)
//!   |- class ...... class of an I/O, and the queue that it waits in        (decisions)
//!   |- tokens ..... bytes that may pass: refills, bursts, queues           (arithmetic)
//!   |- tuning ..... the auto-tuned rate of `RocksDB`                       (arithmetic)
//!   |- bandwidth .. SILK: bandwidth of clients and of internal work        (arithmetic)
//!   `- options, stats ... values
//! ```
//! With `rate_limiter` flushes and compactions share a fixed number of bytes per second, as in
//! `RocksDB` 6.23. With `silk` they get the bandwidth of the drive that clients leave, computed
//! every 10 ms. docs/decisions/0028 has the reasons.
//!
//! Invariants: I/O of clients and of the journal never waits here. Appends to one extent reach the
//! medium in the order of their submission. A waiting I/O proceeds even if no task awaits it. It
//! has not reached the medium yet, so a power cut loses it like any write that was not
//! acknowledged.
//!
//! Cost: without a limit only the test of an option. Reads of a single page are the inner medium's
//! own futures in any case. An I/O that waits costs two allocations and a task.

mod bandwidth;
mod class;
mod gate;
mod limited;
mod options;
mod stats;
mod tokens;
mod tuning;

pub use limited::Limited;
pub use options::{LimiterOptions, RateLimiterOptions, SilkOptions};
pub use stats::{LimiterStats, PriorityStats};
