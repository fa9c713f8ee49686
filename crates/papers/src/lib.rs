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
#[cfg(test)]
mod doubles;
mod failure;
mod iter;
mod jobs;
mod keeper;
mod kept;
mod pink;
mod plan;
mod settings;
mod stand;
mod threads;
mod vigil;
mod watcher;
mod words;

pub use jobs::{Job, run_all};
pub use keeper::Keeper;
pub use plan::{Paper, Plan, Scale};
pub use threads::{Bound, Threads, bytes_per_simulation, threads};
pub use watcher::{Simulation, Watcher};

use report::Report;

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
