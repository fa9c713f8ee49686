//! Limits on background I/O: a medium around a medium.
//!
//! ```text
//!  Limited ........ the medium: what is limited waits, all else passes
//!   |- limiter .... who waits, and since when; refills by timer           (shell)
//!   |- class ...... whose an I/O is, and which queue it waits in           (decisions)
//!   |- tokens ..... bytes that may pass: refills, bursts, queues           (arithmetic)
//!   |- tuning ..... the auto-tuned rate of `RocksDB`                       (arithmetic)
//!   |- bandwidth .. SILK: what clients take, what is left for the rest     (arithmetic)
//!   `- options, stats ... values
//! ```
//! With `rate_limiter` flushes and compactions together get so many bytes a second, as in `RocksDB` 6.23;
//! with `silk` they get what clients leave of the drive's bandwidth, worked out anew every 10 ms.
//! docs/decisions/0028 says why it is as it is.
//!
//! Invariants: a client's I/O and the journal's never wait here. Appends to one extent reach the medium in the
//! order in which they were asked for. What waits is under way, whoever awaits it, and is not with the medium
//! yet: a power cut takes it as it takes any write that was not acknowledged.
//!
//! Cost: without a limit nothing but a test of an option; reads are the inner medium's own futures in any case.
//! An I/O that waits costs two allocations and a task.

#![forbid(unsafe_code)]

mod bandwidth;
mod class;
mod limited;
mod limiter;
mod options;
mod stats;
mod tokens;
mod tuning;

pub use limited::Limited;
pub use options::{LimiterOptions, RateLimiterOptions, SilkOptions};
pub use stats::{LimiterStats, PriorityStats};
