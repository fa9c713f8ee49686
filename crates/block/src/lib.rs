//! The interface below volumes: block devices of one or more NVM sets, with windows.
//!
//! ```text
//!   BlockDevice .. read, write, flush, discard, window commands   (device.rs)
//!   Block ........ the bytes of one block, part of a shared page  (contents.rs)
//!   DeviceError .. the errors of commands and their remedies      (error.rs)
//!   nvme ......... the standard's layouts: pure functions         (nvme/)
//! ```
//!
//! Simulated drives, files, kernel block devices and drives behind admin passthrough can implement
//! the interface: it depends neither on flash nor on virtual time.

#![forbid(unsafe_code)]

mod contents;
mod device;
mod error;
pub mod nvme;

pub use contents::{BLOCK_BYTES, Block};
pub use device::{BlockDevice, Force, SetShape};
pub use error::DeviceError;
