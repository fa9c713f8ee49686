//! What a bench runs.

use design::Design;
use runtime::Nanos;
use workload::{ClientOptions, CoreWorkload};

use crate::device::Before;
use crate::platform::Platform;

/// What to run.
#[derive(Clone, Debug)]
pub struct BenchSpec {
    /// The configuration that the two below were taken from, if one was named.
    pub configuration: Option<String>,
    /// The design.
    pub design: Design,
    /// What it runs on.
    pub platform: Platform,
    /// The workload's name in results.
    pub workload_name: String,
    /// The workload.
    pub workload: CoreWorkload,
    /// How operations are issued in the run; the load is a closed loop of as many.
    pub clients: ClientOptions,
    /// Seed of all randomness.
    pub seed: u64,
    /// What happened to a block drive before. A KV drive begins empty.
    pub precondition: Before,
    /// Whether loaded pairs are overwritten to a steady state before the run.
    pub ages: bool,
    /// Whether background work comes to its end before the run, as on a drive that is kept.
    pub at_rest: bool,
    /// How often memory is looked at in the run, if at all.
    pub sample_every: Option<Nanos>,
}
