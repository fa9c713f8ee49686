//! The durability of writes: a flag.

use levelhead::Durability;

/// When a write is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum DurabilityArgument {
    /// Once it is durable, in a commit group of its own
    Each,
    /// Once it is durable, in a commit group with concurrent writes
    Group,
    /// At once; it is written to the drive a millisecond later
    Interval,
    /// At once; it is written to the drive with its memtable
    None,
}

impl From<DurabilityArgument> for Durability {
    fn from(argument: DurabilityArgument) -> Self {
        match argument {
            DurabilityArgument::Each => Self::Each,
            DurabilityArgument::Group => Self::Group,
            DurabilityArgument::Interval => Self::Interval,
            DurabilityArgument::None => Self::None,
        }
    }
}
