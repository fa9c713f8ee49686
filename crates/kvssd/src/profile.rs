//! Device profiles: the physical parameters of a drive. Every design that runs on a profile runs
//! on the same numbers.

use catalogue::{CatalogueError, Entry};
use engine::{Accelerator, CpuCosts};
use firmware::HostLink;
use flash::FlashProfile;
use serde::Deserialize;

/// A drive.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceProfile {
    /// Its name in results.
    pub name: String,
    /// What it is, in a sentence.
    pub description: String,
    /// Its flash.
    pub flash: FlashProfile,
    /// Its firmware's processor.
    pub controller: Controller,
    /// Its merge accelerator, if it has one; designs use it or leave it alone.
    #[serde(default)]
    pub accelerator: Option<Accelerator>,
    /// Its memory.
    pub dram: Dram,
    /// How the host reaches it.
    pub host: HostLink,
}

/// The processor that runs the firmware, and what the firmware costs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Controller {
    /// Processor cores.
    pub cores: usize,
    /// Time that a command occupies a core for, in microseconds: bounds commands per second.
    pub command_us: f64,
    /// Time that a command takes in stages that overlap with others, in microseconds: adds to
    /// latency only.
    pub pipeline_us: f64,
    /// Longest stretch that background work keeps a core, in microseconds.
    pub quantum_us: f64,
    /// Commands the drive holds at a time; more wait outside.
    pub queue_depth: usize,
    /// Costs of engine work.
    pub costs: CpuCosts,
}

/// Memory of the drive.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dram {
    /// For index structures, in bytes.
    pub index_bytes: u64,
    /// For snapshots and the buffers of iterators, in bytes.
    pub iterator_bytes: u64,
}

impl DeviceProfile {
    /// A built-in profile by name, or one from a TOML file by path.
    ///
    /// # Errors
    /// What is wrong and what is allowed, in words.
    pub fn load(name_or_path: &str) -> Result<Self, CatalogueError> {
        catalogue::load(name_or_path)
    }

    /// Names of the built-in profiles.
    pub fn names() -> Vec<&'static str> {
        Self::BUILT_IN.iter().map(|(name, _)| *name).collect()
    }
}

impl Entry for DeviceProfile {
    const KIND: &'static str = "device";
    const BUILT_IN: &'static [(&'static str, &'static str)] = &[
        ("pink-zcu102", include_str!("../devices/pink-zcu102.toml")),
        ("cosmos-plus", include_str!("../devices/cosmos-plus.toml")),
        ("cosmos-plus-4ch", include_str!("../devices/cosmos-plus-4ch.toml")),
        ("datacenter-tlc-1.92tb", include_str!("../devices/datacenter-tlc-1.92tb.toml")),
    ];

    fn problems(&self) -> Vec<String> {
        let mut problems = self.flash.problems();
        problems.extend(self.controller.costs.problems());
        problems.extend(self.accelerator.iter().flat_map(Accelerator::problems));
        let controller = &self.controller;
        if controller.cores == 0 || controller.queue_depth == 0 {
            problems.push("cores and queue_depth must be at least 1".to_owned());
        }
        let times = [controller.command_us, controller.pipeline_us, self.host.latency_us];
        if times.iter().any(|us| !us.is_finite() || *us < 0.0) {
            problems.push("times must be finite and not negative".to_owned());
        }
        let speeds = [self.host.read_mb_per_s, self.host.write_mb_per_s, controller.quantum_us];
        if speeds.iter().any(|speed| !speed.is_finite() || *speed <= 0.0) {
            problems.push("link speeds and quantum_us must be greater than 0".to_owned());
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
