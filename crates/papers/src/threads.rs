//! The number of concurrent simulations for which a machine has cores and memory.

use crate::plan::{Paper, Scale};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Returns the maximum memory of one simulation of a reproduction, in bytes: the measured memory of
/// the largest one, rounded up.
pub fn bytes_per_simulation(paper: Paper, scale: Scale) -> u64 {
    match (paper, scale) {
        // 257 MiB, measured with one simulation at a time.
        (Paper::Pink, Scale::Quick) => 300 * MIB,
        // 16.2 GiB for the LSM-tree with all requests; 8.2 GiB for PinK with pinned levels.
        (Paper::Pink, Scale::Paper) => 17 * GIB,
        // 927 MiB, measured with one simulation at a time.
        (Paper::Iter, Scale::Quick) => GIB,
        // 5.8 GiB, measured with one simulation at a time.
        (Paper::Iter, Scale::Paper) => 6 * GIB,
        // 922 MiB, measured with one simulation at a time: the drive without windows collects
        // garbage for half a minute.
        (Paper::Device, Scale::Quick) => 1100 * MIB,
        // 1.8 GiB.
        (Paper::Device, Scale::Paper) => 2 * GIB,
        // 354 MiB for the first simulations, rounded up for those that were not measured.
        (Paper::Vigil, Scale::Quick) => 600 * MIB,
        // 13.4 GiB for two concurrent simulations, measured for half of the simulations.
        (Paper::Vigil, Scale::Paper) => 8 * GIB,
    }
}

/// Number of concurrent simulations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Threads {
    /// The number, at least 1.
    pub count: usize,
    /// The resource that limits the number.
    pub bound: Bound,
}

/// The resource that limits the number of concurrent simulations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    /// Cores: one simulation per core.
    Cores,
    /// Memory: the cores would allow more.
    Memory,
    /// Memory: it may be too small even for one simulation.
    TooLittleMemory,
}

/// Returns one simulation per core, or fewer if the available memory is too small. If the available
/// memory is not known, only the cores count.
pub fn threads(cores: usize, available_bytes: Option<u64>, bytes_per_simulation: u64) -> Threads {
    let cores = cores.max(1);
    let fitting = available_bytes.map(|bytes| bytes / bytes_per_simulation.max(1));
    let fitting = fitting.map_or(cores, |count| usize::try_from(count).unwrap_or(usize::MAX));
    let bound = match fitting {
        0 => Bound::TooLittleMemory,
        fitting if fitting < cores => Bound::Memory,
        _ => Bound::Cores,
    };
    Threads { count: fitting.clamp(1, cores), bound }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_cores_and_memory_allow() {
        let table = [
            // Cores, available memory, memory of one simulation; then the number and the limit.
            (2, None, 16 * GIB, 2, Bound::Cores),
            (0, None, 16 * GIB, 1, Bound::Cores),
            (2, Some(22 * GIB), 16 * GIB, 1, Bound::Memory),
            (2, Some(32 * GIB - 1), 16 * GIB, 1, Bound::Memory),
            (2, Some(32 * GIB), 16 * GIB, 2, Bound::Cores),
            (8, Some(100 * GIB), 16 * GIB, 6, Bound::Memory),
            (8, Some(1 << 50), 16 * GIB, 8, Bound::Cores),
            (1, Some(22 * GIB), 16 * GIB, 1, Bound::Cores),
            (1, Some(10 * GIB), 16 * GIB, 1, Bound::TooLittleMemory),
            (8, Some(0), 16 * GIB, 1, Bound::TooLittleMemory),
            (8, Some(GIB), 0, 8, Bound::Cores),
        ];
        for (cores, available, need, count, bound) in table {
            let expected = Threads { count, bound };
            assert_eq!(threads(cores, available, need), expected, "{cores} {available:?} {need}");
        }
    }

    #[test]
    fn every_reproduction_says_what_a_simulation_needs() {
        let table = [
            (Paper::Pink, Scale::Quick, "300 MiB"),
            (Paper::Pink, Scale::Paper, "17.0 GiB"),
            (Paper::Iter, Scale::Quick, "1.00 GiB"),
            (Paper::Iter, Scale::Paper, "6.00 GiB"),
        ];
        for (paper, scale, text) in table {
            let bytes = bytes_per_simulation(paper, scale);
            assert_eq!(report::units::bytes_text(bytes), text, "{paper:?} {scale:?}");
        }
    }
}
