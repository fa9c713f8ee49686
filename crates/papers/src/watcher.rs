//! The progress of simulations.

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
