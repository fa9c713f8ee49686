//! Specification of a reproduction: the paper, the size, and how the simulations run.

use crate::keeper::Keeper;
use crate::watcher::Watcher;

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
    pub(super) fn command(&self) -> String {
        let (paper, scale) = (self.paper.name(), self.scale.name());
        let fresh = if self.fresh_loads { " --fresh-loads" } else { "" };
        format!("levelhead reproduce {paper} --scale {scale} --seed {}{fresh}", self.seed)
    }
}
