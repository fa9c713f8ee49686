//! A simulated block drive on flash, in virtual time: the hardware of Vigil-KV (USENIX ATC'22).
//!
//! ```text
//!   Ssd .......... host link; implements BlockDevice  (drive.rs, commands.rs, admin.rs)
//!    `- Set ...... one NVM set: a firmware with resources of its own  (set.rs, set/)
//!        |- Windows .. NDWIN, lockdown, DTWIN: decisions              (windows.rs)
//!        |- Buffer ... newest versions not on flash yet               (buffer.rs)
//!        |- Mapping .. where the newest version on flash is           (mapping.rs, map_cache.rs)
//!        |- Table .... superblocks: free, open, full; valid slots     (table.rs)
//!        `- Flash .... its dies and channels                          (crate flash)
//! ```
//!
//! The crate `block` has the `BlockDevice` trait and the encodings of NVMe's window commands. A
//! 4 KiB read costs the simulation five steps of the executor. Memory grows with the number of
//! blocks written; a prefilled drive costs none.

mod admin;
mod buffer;
mod commands;
mod discards;
mod drive;
mod event_bell;
mod failure;
#[cfg(test)]
mod fuzz_tests;
mod gate;
mod layout;
mod map_cache;
mod mapping;
mod pacing;
mod page;
mod planted;
mod prefill;
mod profile;
mod read_cache;
mod set;
#[cfg(feature = "test-hooks")]
pub mod specimens;
mod stale_pages;
mod stats;
mod submission;
mod table;
mod windows;

pub use admin::{AdminCommand, AdminCompletion};
pub use drive::{Recovery, SetReport, Ssd, SsdImage};
pub use failure::SetFailure;
pub use planted::{Fault, Planted};
pub use prefill::{Precondition, victim_share};
pub use profile::{
    Background, Controller, Dram, PagedMapping, PlmProfile, PlmRules, SsdProfile, WriteBuffer,
    WritePacing,
};
pub use stats::SetStats;
