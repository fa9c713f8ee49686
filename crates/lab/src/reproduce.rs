//! The experiments of the papers, as code that reads like their lists, and what came of them
//! beside what the papers say.
//!
//! Every number comes out of a simulation whose physical parameters are those of a device profile;
//! nothing is set per design to meet a published value. Where a direction does not hold, the report
//! says so and what was measured about the cause.

mod benched;
mod device;
mod device_arithmetic;
mod device_clients;
mod device_measured;
mod device_report;
mod device_samples;
mod distribution;
mod iter;
mod iter_bounds;
mod iter_measured;
mod iter_report;
mod jobs;
mod kept;
mod pink;
mod pink_memory;
mod pink_report;
mod settings;
mod stand;
mod threads;
mod vigil;
mod vigil_report;
mod words;

pub use jobs::{Job, run_all};
pub use kept::Keeper;
pub use threads::{Bound, Threads, bytes_per_simulation, threads};

use crate::report::Report;

/// Whose experiments.
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
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Pink, Self::Iter, Self::Device, Self::Vigil];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pink => "pink",
            Self::Iter => "iter",
            Self::Device => "device",
            Self::Vigil => "vigil",
        }
    }
}

/// How large the experiments are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// Minutes: smaller drives and fewer pairs in the same proportions.
    Quick,
    /// The paper's number of pairs.
    Paper,
}

impl Scale {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Paper => "paper",
        }
    }
}

/// One of the simulations of a reproduction.
#[derive(Clone, Copy, Debug)]
pub struct Simulation<'a> {
    /// What is simulated.
    pub name: &'a str,
    /// Its number in the order in which simulations begin, from 1.
    pub number: usize,
    /// How many there are.
    pub total: usize,
}

/// Hears how far the simulations are; from several threads.
pub trait Watcher: Sync {
    /// A simulation begins.
    fn begins(&self, simulation: Simulation<'_>);
    /// A simulation has ended. After one that did not succeed no other begins.
    fn ended(&self, simulation: Simulation<'_>, succeeded: bool);
}

/// How to run a reproduction.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    /// Whose experiments.
    pub paper: Paper,
    /// How large.
    pub scale: Scale,
    /// Simulations at a time; the result does not depend on it.
    pub threads: usize,
    /// Seed of all randomness.
    pub seed: u64,
    /// Who hears of it.
    pub watcher: &'a dyn Watcher,
    /// Who keeps what simulations gave, and loaded drives.
    pub keeper: &'a dyn Keeper,
    /// Of the simulations only those with this in their name; no report comes of it then.
    pub only: Option<&'a str>,
    /// Whether each workload of `PinK`'s runs on a drive of its own, as it was behind the load, and not on what the one before left.
    pub fresh_loads: bool,
}

impl Plan<'_> {
    /// The command that gives the same report.
    fn command(&self) -> String {
        let (paper, scale) = (self.paper.name(), self.scale.name());
        let fresh = if self.fresh_loads { " --fresh-loads" } else { "" };
        format!("levelhead reproduce {paper} --scale {scale} --seed {}{fresh}", self.seed)
    }
}

/// Runs a paper's experiments. No report comes of it where only a part was asked for.
///
/// # Errors
/// In words, what could not be simulated.
pub fn run(plan: &Plan<'_>) -> Result<Option<Report>, String> {
    Ok(match plan.paper {
        Paper::Pink => pink::measure(plan)?.map(|measured| pink_report::report(plan, &measured)),
        Paper::Iter => iter::measure(plan)?.map(|measured| iter_report::report(plan, &measured)),
        Paper::Device => {
            device::measure(plan)?.map(|measured| device_report::report(plan, &measured))
        }
        Paper::Vigil => vigil::measure(plan)?.map(|measured| vigil_report::report(plan, &measured)),
    })
}
