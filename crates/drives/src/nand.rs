//! NAND flash in virtual time: contents, timing, faults.
//!
//! ```text
//!   Flash ......... submit reads, programs, erases; await their end      (device.rs, device/)
//!    |- Die ....... one operation, or overlapping reads; queues; suspend (die.rs, queue.rs)
//!    |- Channel ... carries one page at a time for its dies              (channel.rs)
//!    `- NandArray . contents, program order, wear; survives a power cut  (array.rs)
//! ```
//!
//! An operation books a resource only when it needs it: the channel is requested only after the die
//! has sensed the page, so a slow sense never blocks a bus (an error in several public simulators).
//! Cost: one timer per step, one wake-up per operation.

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
