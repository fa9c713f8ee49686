//! Systems that run on simulated drives.
//!
//! ```text
//!  design ... named designs: the options of an index and of its limiter; an index of either kind
//!  kvssd .... the KV drive: commands, firmware costs, raw flash under an index, power loss
//!  host ..... the store of a host on a block drive or on a volume of NVM sets
//!  limiter .. limits of background I/O: `RocksDB`'s rate limiter, SILK
//! ```

#![forbid(unsafe_code)]

pub mod design;
pub mod host;
pub mod kvssd;
pub mod limiter;
