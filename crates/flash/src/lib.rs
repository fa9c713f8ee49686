//! NAND flash in virtual time: what it holds, how long it takes, how it fails.
//!
//! ```text
//!   Flash ......... submit reads, programs, erases; await their end      (device.rs, device/)
//!    |- Die ....... one operation at a time; queues by priority; suspend (die.rs, queue.rs)
//!    |- Channel ... carries one page at a time for the dies behind it    (channel.rs)
//!    `- NandArray . contents, program order, wear; survives a power cut  (array.rs)
//! ```
//!
//! An operation books a resource when it needs it and not before: the channel is asked for only
//! when the die has sensed the page, so a slow sense never blocks a bus (a fault of several public
//! simulators). Cost: one timer per step, one wake-up per operation.

#![forbid(unsafe_code)]

mod array;
mod channel;
mod device;
mod die;
mod geometry;
mod operation;
mod power_cut;
mod profile;
mod queue;
mod stats;

pub use array::{NandArray, PageSource, ReadError};
pub use device::{Flash, Lane, PageReading};
pub use geometry::{BlockAddress, DieIndex, Geometry, PageAddress};
pub use power_cut::CutReport;
pub use profile::{ErrorModel, FlashProfile, ReadDisturb, ReadOverlap, Suspend, Timing};
pub use stats::{Blocker, FlashStats, OperationCounts, WaitStats};
