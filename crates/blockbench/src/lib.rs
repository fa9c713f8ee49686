//! Jobs on block drives: streams of reads and writes, described as in fio, in virtual time.
//!
//! A [`Job`] is read from TOML (see [`job`]) or built as a value. [`run`] executes a job on the
//! drive of a profile and returns a [`JobReport`]: latencies by stream and direction, a timeline,
//! single latencies if the job requests them, window commands, and the counters of each set before
//! and after the job. [`DeviceResult`] is the report as JSON, [`table`] prints it, and [`picture`]
//! draws it.
//!
//! ```
//! use blockbench::{DeviceSpec, Direction, Job, Rw, StreamSpec};
//!
//! let reads =
//!     StreamSpec { depth: Some(4), operations: Some(1_000), ..StreamSpec::new(Rw::RandRead) };
//! let spec = DeviceSpec {
//!     profile: drives::ssd::SsdProfile::load("baseline-15gb").expect("built in"),
//!     job: Job::new("a thousand reads", vec![reads]),
//!     seed: 1,
//! };
//! let report = blockbench::run(&spec, |_| ()).expect("it fits the drive");
//! let reads = report.streams[0].direction(Direction::Read).expect("there were some");
//! assert_eq!(reads.operations, 1_000);
//! assert!(reads.summary().p99_us < 1_000.0);
//! ```

#![forbid(unsafe_code)]

mod addresses;
mod block_sizes;
mod check;
mod device;
#[cfg(test)]
mod drive_tests;
#[cfg(test)]
mod fake;
pub mod fio;
pub mod flash_work;
pub mod inputs;
pub mod job;
#[cfg(test)]
mod job_tests;
mod ledger;
mod memory;
mod operation;
mod per_direction;
pub mod picture;
mod plan;
mod random_map;
mod recorder;
mod replay;
mod report;
mod result;
mod run;
#[cfg(test)]
mod run_tests;
mod schedule;
mod sets;
mod size;
mod skew;
mod source;
pub mod stream;
mod streams;
pub mod table;
mod thinking;
mod timeline;
pub mod traces;
mod versions;
mod watch;

pub use block_sizes::{BlockRange, BlockSplit};
pub use device::{DeviceSpec, check, run, run_until};
pub use job::{Before, Job, WindowName, WindowStep};
pub use ledger::{Found, Mismatch};
pub use memory::memory_bytes;
pub use operation::Direction;
pub use per_direction::PerDirection;
pub use plan::PlanError;
pub use replay::{Fitted, Trace};
pub use report::{
    ByWindow, Checks, DirectionReport, JobReport, Sample, SetChange, StreamReport, WindowReport,
};
pub use result::{
    DeviceHost, DeviceResult, DirectionResult, SetResult, StreamResult, TraceResult, WindowResult,
};
pub use sets::SetChoice;
pub use size::Extent;
pub use skew::Distribution;
pub use stream::{Arrivals, Rw, StreamSpec};
pub use timeline::{Timeline, TimelinePoint};
