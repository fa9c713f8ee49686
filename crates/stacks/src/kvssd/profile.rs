//! Device profiles: the physical parameters of a drive. All designs on a profile use the same
//! numbers.

use std::ops::RangeInclusive;

use catalogue::{CatalogueError, Entry, bounds, unprintable};
use drives::firmware::HostLink;
use drives::nand::FlashProfile;
use engine::{Accelerator, CpuCosts};
use serde::{Deserialize, Serialize};

/// A drive.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceProfile {
    /// Name of the drive in results.
    pub name: String,
    /// Description, one sentence.
    pub description: String,
    /// NAND flash.
    pub flash: FlashProfile,
    /// Processor of the firmware.
    pub controller: Controller,
    /// Merge accelerator, if it has one; designs may leave it unused.
    #[serde(default)]
    pub accelerator: Option<Accelerator>,
    /// Memory.
    pub dram: Dram,
    /// Link to the host.
    pub host: HostLink,
}

/// The processor of the firmware, and the firmware's costs.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Controller {
    /// Processor cores.
    pub cores: usize,
    /// Core time of a command, in microseconds: limits commands per second.
    pub command_us: f64,
    /// Time of a command in pipeline stages that overlap with other commands, in microseconds: adds
    /// to latency only.
    pub pipeline_us: f64,
    /// Longest time for which background work keeps a core, in microseconds.
    pub quantum_us: f64,
    /// Commands that the drive executes at a time; further commands wait outside.
    pub queue_depth: usize,
    /// Costs of engine work.
    pub costs: CpuCosts,
}

/// Memory of the drive.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Dram {
    /// For index structures, in bytes.
    pub index_bytes: u64,
    /// For snapshots and the buffers of iterators, in bytes.
    pub iterator_bytes: u64,
}

impl DeviceProfile {
    /// Loads a built-in profile by name, or one from a TOML file by path.
    ///
    /// # Errors
    /// Returns an error that states the invalid setting and the allowed values.
    pub fn load(name_or_path: &str) -> Result<Self, CatalogueError> {
        catalogue::load(name_or_path)
    }

    /// Returns the names of the built-in profiles.
    pub fn names() -> Vec<&'static str> {
        Self::BUILT_IN.iter().map(|(name, _)| *name).collect()
    }
}

impl Entry for DeviceProfile {
    const KIND: &'static str = "device";
    const BUILT_IN: &'static [(&'static str, &'static str)] = &[
        ("pink-zcu102", include_str!("../../devices/pink-zcu102.toml")),
        ("pink-zcu102-1gib", include_str!("../../devices/pink-zcu102-1gib.toml")),
        ("cosmos-plus", include_str!("../../devices/cosmos-plus.toml")),
        ("cosmos-plus-4ch", include_str!("../../devices/cosmos-plus-4ch.toml")),
        ("datacenter-tlc-1.92tb", include_str!("../../devices/datacenter-tlc-1.92tb.toml")),
    ];

    fn problems(&self) -> Vec<String> {
        let texts = [("name", &self.name), ("description", &self.description)];
        let mut problems: Vec<_> =
            texts.into_iter().filter_map(|(key, text)| unprintable(key, text)).collect();
        problems.extend(self.flash.problems());
        problems.extend(self.controller.problems());
        problems.extend(self.accelerator.iter().flat_map(Accelerator::problems));
        problems.extend(self.dram.problems());
        problems.extend(self.host.problems());
        problems
    }
}

impl Controller {
    fn problems(&self) -> Vec<String> {
        let problems = [
            bounds::range("controller.cores", self.cores, CORES),
            bounds::time_us("controller.command_us", self.command_us),
            bounds::time_us("controller.pipeline_us", self.pipeline_us),
            bounds::slice_us("controller.quantum_us", self.quantum_us),
            bounds::range("controller.queue_depth", self.queue_depth, QUEUE_DEPTH),
        ];
        problems.into_iter().flatten().chain(self.costs.problems()).collect()
    }
}

impl Dram {
    fn problems(&self) -> Vec<String> {
        let problems = [
            bounds::range("dram.index_bytes", self.index_bytes, 0..=MAX_DRAM_BYTES),
            bounds::range("dram.iterator_bytes", self.iterator_bytes, 0..=MAX_DRAM_BYTES),
        ];
        problems.into_iter().flatten().collect()
    }
}

/// Processor cores of a drive.
const CORES: RangeInclusive<usize> = 1..=1024;
/// Commands that a drive executes at a time: at most the entries of an NVMe queue.
const QUEUE_DEPTH: RangeInclusive<usize> = 1..=65_536;
/// Most memory of one kind: 32 TiB, an eighth of a 48-bit address space.
const MAX_DRAM_BYTES: u64 = 1 << 45;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_small_board_is_the_board_divided() {
        let load = |name| DeviceProfile::load(name).expect("it is built in");
        let (mut small, large) = (load("pink-zcu102-1gib"), load("pink-zcu102"));
        let geometry = &mut small.flash.geometry;
        geometry.pages_per_block *= 16;
        geometry.blocks_per_plane *= 4;
        small.flash.timing.erase_us *= 16.0;
        small.dram.index_bytes *= 64;
        (small.name, small.description) = (large.name.clone(), large.description.clone());
        assert_eq!(small, large);
    }

    #[test]
    fn every_time_size_and_count_has_bounds_and_the_message_has_the_line() {
        let text = include_str!("../../devices/pink-zcu102.toml");
        let line = |key: &str| {
            1 + text.lines().position(|line| line.starts_with(key)).expect("it is there")
        };
        for (key, value) in [
            ("read_us", "[1e18, 1e18]"),
            ("program_us", "[1e18, 75.0]"),
            ("erase_us", "1e10"),
            ("channel_mb_per_s", "1e-300"),
            ("cores", "4294967295"),
            ("pipeline_us", "1e16"),
            ("quantum_us", "1e-300"),
            ("queue_depth", "1000000000"),
            ("memtable_ns", "1e16"),
            ("clock_mhz", "1e-300"),
            ("segment_us", "1e16"),
            ("index_bytes", "9223372036854775807"),
            ("latency_us", "1e16"),
            ("read_mb_per_s", "inf"),
        ] {
            let number = line(key);
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines[number - 1] = format!("{key} = {value}");
            let error = catalogue::parse::<DeviceProfile>("rd.toml", &lines.join("\n"));
            let error = error.expect_err(key).to_string();
            assert!(error.starts_with(&format!("device rd.toml:{number}: ")), "{error}");
            assert!(error.contains(key) && error.contains(", must be "), "{error}");
        }
    }

    #[test]
    fn built_in_profiles_are_valid_and_every_number_has_a_source() {
        for (name, text) in DeviceProfile::BUILT_IN {
            let profile = DeviceProfile::load(name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(profile.name, *name);
            assert_eq!(catalogue::numbers_without_source(text), [] as [&str; 0], "{name}");
        }
    }

    #[test]
    fn the_paper_s_drive_has_exactly_64_gib() {
        let profile = DeviceProfile::load("pink-zcu102").expect("built in");
        assert_eq!(profile.flash.geometry.capacity_bytes(), 64 << 30);
    }
}
