//! Specification of a bench in real time.

use levelhead::Durability;
use workload::{ClientOptions, CoreWorkload};

/// Specification of a bench in real time.
#[derive(Clone, Debug)]
pub struct LiveSpec {
    /// Name of the workload in results.
    pub workload_name: String,
    /// The workload.
    pub workload: CoreWorkload,
    /// How the run issues operations. The load is a closed loop with the same number of outstanding
    /// operations.
    pub clients: ClientOptions,
    /// Seed of keys, values and operations. The timing does not depend on the seed.
    pub seed: u64,
    /// When writes of the run are acknowledged. Writes of the load are acknowledged at once.
    pub durability: Durability,
    /// Location of the store, as text.
    pub place: String,
    /// Number of directories of the store.
    pub directories: u64,
    /// Memory budget of the index, in bytes.
    pub memory_bytes: u64,
}
