//! Experiments and their reports.
//!
//! [`mod@bench`] runs one design on one device under one workload in virtual time and returns a
//! [`BenchResult`]. [`table`] formats a result for people and `serde` for programs; [`picture`]
//! draws its charts. [`device`] runs jobs of reads and writes on a block drive. [`plan`] calculates
//! the needs of a design on a drive. Nothing here reads a clock: the command line adds everything
//! that depends on the machine.

#![forbid(unsafe_code)]

mod ageing;
pub mod bench;
mod bench_spec;
mod chart;
pub mod compare;
mod configuration;
pub mod device;
pub mod fit;
mod flash_work;
mod inputs;
mod late;
pub mod live;
pub mod picture;
pub mod plan;
mod platform;
mod quantiles;
pub mod report;
pub mod reproduce;
pub mod rerun;
mod resolution;
mod result;
mod samples;
mod statistics;
mod summary;
pub mod table;
mod target;
mod text_table;
mod traces;
mod units;

pub use ageing::AgeingResult;
pub use configuration::Configuration;
pub use inputs::Inputs;
pub use platform::{
    DEFAULT_HOST, HostChoice, LoadedPlatform, Platform, PlatformOverrides, designs_for_hosts,
    is_block_drive,
};
pub use result::{
    BenchResult, BlockDriveResult, FlashResult, Host, Interrupted, IteratorResult, LevelResult,
    LoadResult, Memory, StoreResult, Verification,
};
pub use samples::MemorySample;
pub use traces::TraceInput;
pub use units::{
    bytes_text, count_text, parse_bytes, parse_bytes_in, parse_count_in, parse_share,
    parse_span_in, printable,
};
