//! What the firmware of a simulated drive does whatever it stores, blocks or key-value pairs.
//!
//! ```text
//!   Link .......... the way between host and drive, in both directions   (link.rs)
//!   submit ........ commands go on whether or not anybody awaits them    (submit.rs)
//!   Superblocks ... one erase block of every die, written as one         (superblocks.rs)
//!   Reserve ....... where memory is dumped when power fails              (reserve.rs)
//! ```

#![forbid(unsafe_code)]

mod link;
mod reserve;
mod submit;
mod superblocks;

pub use link::{COMMAND_BYTES, HostLink, Link};
pub use reserve::{Dump, DumpError, Reserve};
pub use submit::{Submitted, submit};
pub use superblocks::Superblocks;
