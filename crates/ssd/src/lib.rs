//! A block drive on flash, in virtual time.

#![forbid(unsafe_code)]

mod block;
mod buffer;
mod device;
mod drive;
mod gate;
mod layout;
mod mapping;
pub mod nvme;
mod page;
mod permutation;
mod planted;
mod prefill;
mod profile;
mod read_cache;
mod set;
mod stats;
mod table;
mod trims;
mod windows;

pub use block::{BLOCK_BYTES, Block};
pub use device::{BlockDevice, DeviceError, SetShape};
pub use drive::{SetReport, Ssd, SsdImage};
pub use planted::{Fault, Planted};
pub use prefill::Precondition;
pub use profile::{
    Background, Controller, Dram, HostLink, PlmProfile, PlmRules, SsdProfile, WriteBuffer,
};
pub use stats::SetStats;
