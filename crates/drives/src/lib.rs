//! Simulated drives, in virtual or real time.
//!
//! ```text
//!  nand ...... NAND flash: dies, channels, timing, errors
//!  firmware .. parts that the firmware of every drive needs: host link, superblocks, dumps
//!  ssd ....... block drives: mapping, buffer, garbage collection, NVM sets with windows
//! ```
//!
//! The KV drive, which uses `nand` and `firmware`, is in crate `stacks`, because it contains the
//! engine.

#![forbid(unsafe_code)]

pub mod firmware;
pub mod nand;
pub mod ssd;
