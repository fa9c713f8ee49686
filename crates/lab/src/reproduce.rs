//! The experiments of the papers, as code that reads like their lists, and what came of them
//! beside what the papers say.
//!
//! Every number comes out of a simulation whose physical parameters are those of a device profile;
//! nothing is set per design to meet a published value. Where a direction does not hold, the report
//! says so and what was measured about the cause.

mod iter;
mod iter_report;
mod jobs;
mod pink;
mod pink_memory;
mod pink_report;
mod stand;
mod words;

use crate::report::Report;

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

/// Hears how far the simulations are; from several threads.
pub trait Watcher: Sync {
    /// A simulation begins.
    fn begins(&self, name: &str);
    /// A simulation has ended: the `done`th of `total`.
    fn ended(&self, name: &str, done: usize, total: usize);
}

/// How to run a reproduction.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    /// How large.
    pub scale: Scale,
    /// Simulations at a time; the result does not depend on it.
    pub threads: usize,
    /// Seed of all randomness.
    pub seed: u64,
    /// Who hears of it.
    pub watcher: &'a dyn Watcher,
}

/// The experiments of `PinK` (USENIX ATC'20).
///
/// # Errors
/// In words, what could not be simulated.
pub fn pink(plan: &Plan<'_>) -> Result<Report, String> {
    let measured = pink::measure(plan)?;
    Ok(pink_report::report(plan, &measured))
}

/// The experiments of IterKVSSD (SYSTOR'23).
///
/// # Errors
/// In words, what could not be simulated.
pub fn iter(plan: &Plan<'_>) -> Result<Report, String> {
    let measured = iter::measure(plan)?;
    Ok(iter_report::report(plan, &measured))
}
