//! How many simulations a machine has cores and memory for at a time.

use super::{Paper, Scale};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Memory that one simulation of a reproduction takes at most, in bytes: what the largest one was
/// measured to take, rounded up.
pub fn bytes_per_simulation(paper: Paper, scale: Scale) -> u64 {
    match (paper, scale) {
        // 257 MiB, all simulations one after the other.
        (Paper::Pink, Scale::Quick) => 300 * MIB,
        // 16.2 GiB for the LSM-tree with all requests; 8.2 GiB with PinK's levels pinned.
        (Paper::Pink, Scale::Paper) => 17 * GIB,
        // 927 MiB, all simulations one after the other.
        (Paper::Iter, Scale::Quick) => GIB,
        // 5.8 GiB, one after the other.
        (Paper::Iter, Scale::Paper) => 6 * GIB,
        // 922 MiB, one after the other: the drive without windows collects for half a minute.
        (Paper::Device, Scale::Quick) => 1100 * MIB,
        // 1.8 GiB.
        (Paper::Device, Scale::Paper) => 2 * GIB,
        // 354 MiB for the first of them, rounded up for those that were not looked at.
        (Paper::Vigil, Scale::Quick) => 600 * MIB,
        // 13.4 GiB for two at a time, of half of them.
        (Paper::Vigil, Scale::Paper) => 8 * GIB,
    }
}

/// How many simulations to run at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Threads {
    /// One at least.
    pub count: usize,
    /// Why not more.
    pub bound: Bound,
}

/// What bounds how many simulations run at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    /// One a core.
    Cores,
    /// There are cores for more, but no memory.
    Memory,
    /// Not even one may find the memory it needs.
    TooLittleMemory,
}

/// As many simulations as there are cores, if as many fit in the memory that is available; where
/// that is not known, the cores alone decide.
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
            // Cores, memory available, what one simulation needs; how many, and why not more.
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
            assert_eq!(crate::bytes_text(bytes), text, "{paper:?} {scale:?}");
        }
    }
}
