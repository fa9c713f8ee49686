//! The experiments of the papers as code, and reports that compare their results with the published
//! claims.
//!
//! Measured values come from simulations that use the physical parameters of a device profile. No
//! parameter is set per design to match a published value. A claim whose number set a parameter of
//! a profile is marked as fitted, and values from arithmetic are marked too. If a claim does not
//! hold, the report gives the measurements that show the cause.

#![forbid(unsafe_code)]

mod benched;
mod device;
mod distribution;
mod iter;
mod jobs;
mod kept;
mod pink;
mod settings;
mod stand;
mod threads;
mod vigil;
mod words;

pub use jobs::{Job, run_all};
pub use kept::Keeper;
pub use threads::{Bound, Threads, bytes_per_simulation, threads};

use report::Report;

/// A paper whose experiments are reproduced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Paper {
    /// PinK (USENIX ATC'20): an LSM-tree with bounded tails against hash and Bloom filters.
    Pink,
    /// IterKVSSD (SYSTOR'23): snapshot iterators, index and value prefetch.
    Iter,
    /// Vigil-KV's hardware (USENIX ATC'22): a block drive with predictable-latency windows.
    Device,
    /// Vigil-KV (USENIX ATC'22): `RocksDB` over NVM sets whose windows are scheduled.
    Vigil,
}

impl Paper {
    /// All papers.
    pub const ALL: [Self; 4] = [Self::Pink, Self::Iter, Self::Device, Self::Vigil];

    /// Returns the name of the paper on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pink => "pink",
            Self::Iter => "iter",
            Self::Device => "device",
            Self::Vigil => "vigil",
        }
    }
}

/// Size of the experiments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// Takes minutes: smaller drives, fewer pairs or shorter runs than in the paper.
    Quick,
    /// The paper's number of pairs.
    Paper,
}

impl Scale {
    /// Returns the name of the scale on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Paper => "paper",
        }
    }
}

/// A simulation of a reproduction.
#[derive(Clone, Copy, Debug)]
pub struct Simulation<'a> {
    /// Name of the simulation.
    pub name: &'a str,
    /// Number of the simulation in the order in which simulations begin, from 1.
    pub number: usize,
    /// Total number of simulations.
    pub total: usize,
}

/// Receives the progress of the simulations, from several threads.
pub trait Watcher: Sync {
    /// A simulation begins.
    fn begins(&self, simulation: Simulation<'_>);
    /// A simulation has ended. If it failed, no thread takes another simulation.
    fn ended(&self, simulation: Simulation<'_>, succeeded: bool);
}

/// Specification of a reproduction.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    /// The paper.
    pub paper: Paper,
    /// The size of the experiments.
    pub scale: Scale,
    /// Number of concurrent simulations. The result does not depend on it.
    pub threads: usize,
    /// Seed of all randomness.
    pub seed: u64,
    /// Receives the progress.
    pub watcher: &'a dyn Watcher,
    /// Stores the results of simulations, and loaded drives.
    pub keeper: &'a dyn Keeper,
    /// Runs only the simulations whose name contains this text. Unless all simulations match, there
    /// is no report.
    pub only: Option<&'a str>,
    /// Whether each workload of the `PinK` experiments runs on a freshly loaded drive, and not on
    /// the drive that the previous workload left.
    pub fresh_loads: bool,
}

impl Plan<'_> {
    /// Returns the command that reproduces the report.
    fn command(&self) -> String {
        let (paper, scale) = (self.paper.name(), self.scale.name());
        let fresh = if self.fresh_loads { " --fresh-loads" } else { "" };
        format!("levelhead reproduce {paper} --scale {scale} --seed {}{fresh}", self.seed)
    }
}

/// Runs the experiments of a paper. Returns `None` if [`Plan::only`] left out a simulation.
///
/// # Errors
/// Returns the simulation that failed and the reason, as text.
pub fn run(plan: &Plan<'_>) -> Result<Option<Report>, String> {
    Ok(match plan.paper {
        Paper::Pink => pink::measure(plan)?.map(|measured| pink::report::report(plan, &measured)),
        Paper::Iter => iter::measure(plan)?.map(|measured| iter::report::report(plan, &measured)),
        Paper::Device => {
            device::measure(plan)?.map(|measured| device::report::report(plan, &measured))
        }
        Paper::Vigil => {
            vigil::measure(plan)?.map(|measured| vigil::report::report(plan, &measured))
        }
    })
}
