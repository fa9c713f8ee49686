//! A block drive on flash, in virtual time.

#![forbid(unsafe_code)]

mod block;
mod buffer;
mod layout;
mod mapping;
pub mod nvme;
mod page;
mod permutation;
mod prefill;
mod profile;
mod read_cache;
mod table;
mod trims;

pub use block::{BLOCK_BYTES, Block};
pub use prefill::Precondition;
pub use profile::{
    Background, Controller, Dram, HostLink, PlmProfile, PlmRules, SsdProfile, WriteBuffer,
};
