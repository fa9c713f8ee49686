//! The seam that volumes are built on: block devices of one or more NVM sets, with windows.
//!
//! ```text
//!   BlockDevice .. read, write, flush, discard, window commands  (device.rs)
//!   Block ........ the bytes of one block, part of a shared page (contents.rs)
//!   DeviceError .. what went wrong, and what to do about it      (error.rs)
//!   nvme ......... the standard's layouts: pure functions        (nvme/)
//! ```
//!
//! A simulated drive implements it, and so can a file, a kernel's block device or a drive behind
//! admin passthrough: nothing here knows of flash, or of virtual time.

#![forbid(unsafe_code)]

mod contents;
mod device;
mod error;
pub mod nvme;

pub use contents::{BLOCK_BYTES, Block};
pub use device::{BlockDevice, Force, SetShape};
pub use error::DeviceError;
