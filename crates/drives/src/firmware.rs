//! Firmware common to all simulated drives, block drives and key-value drives.
//!
//! ```text
//!   Link .......... link between host and drive, in both directions      (link.rs)
//!   submit ........ commands run even if they are not awaited            (submit.rs)
//!   Superblocks ... one erase block of every die, written as one         (superblocks.rs)
//!   Reserve ....... region for memory dumps at a power cut               (reserve.rs)
//! ```

mod link;
mod reserve;
mod submit;
mod superblocks;

pub use link::{COMMAND_BYTES, HostLink, Link};
pub use reserve::{Dump, DumpError, Reserve};
pub use submit::{Submitted, submit};
pub use superblocks::Superblocks;
