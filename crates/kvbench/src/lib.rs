//! Runs a workload on a design on a device.

#![forbid(unsafe_code)]

mod ageing;
mod bench;
pub mod configuration;
mod error;
pub mod fit;
mod kept;
pub mod live;
mod observer;
mod phases;
pub mod picture;
pub mod plan;
pub mod platform;
pub mod rerun;
pub mod result;
mod samples;
mod snapshot;
mod spec;
mod summary;
pub mod table;
pub mod target;

pub use bench::{BenchOutcome, check, run};
pub use blockbench::traces::KvTrace;
pub use error::BenchError;
pub use kept::{KeptDrive, Origin, check_keeping, run_and_keep, run_on_kept};
pub use observer::Observer;
pub use samples::MemorySample;
pub use spec::{Before, BenchSpec, TraceSpec};
pub use summary::difference;
