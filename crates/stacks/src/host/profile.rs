//! Profiles of hosts. All designs that run on a host use the same numbers.

use std::ops::RangeInclusive;

use block::BLOCK_BYTES;
use catalogue::{CatalogueError, Entry, bounds, unprintable};
use engine::CpuCosts;
use serde::{Deserialize, Serialize};

/// A host.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HostProfile {
    /// The host's name in results.
    pub name: String,
    /// A description in one sentence.
    pub description: String,
    /// The processor, with the costs of operations on it.
    pub processor: Processor,
    /// The memory.
    pub memory: Memory,
    /// The layout of the store's files on drives.
    pub files: Files,
}

/// The processor, shared by clients and background work.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Processor {
    /// Cores.
    pub cores: usize,
    /// Longest time for which background work occupies a core, in microseconds.
    pub quantum_us: f64,
    /// Processor time of a Get besides search and reads, in microseconds.
    pub get_us: f64,
    /// Processor time of a Put or Delete besides its memtable, in microseconds.
    pub put_us: f64,
    /// Processor time of a Seek or Next besides search and reads, in microseconds.
    pub next_us: f64,
    /// Costs of index operations.
    pub costs: CpuCosts,
}

/// The host's memory that is available to the store.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Memory for index structures, filters and caches, in bytes.
    pub index_bytes: u64,
    /// Memory for snapshots and buffers of iterators, in bytes.
    pub iterator_bytes: u64,
}

/// The layout of files on drives.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Files {
    /// Bytes of a read: whole blocks of the drive.
    pub page_bytes: u32,
    /// Allocation unit of files, in bytes: whole pages.
    pub extent_bytes: u64,
    /// Maximum number of concurrent writes.
    pub appends: u32,
    /// Pages of a chunk, in volumes with chunks.
    pub chunk_pages: u32,
}

const CORES: RangeInclusive<usize> = 1..=1024;
const MAX_MEMORY_BYTES: u64 = 1 << 45;
/// Pages of the store: at least a block of the drive.
const PAGE_BYTES: RangeInclusive<u32> = BLOCK_BYTES..=64 << 10;
const EXTENT_BYTES: RangeInclusive<u64> = 1 << 16..=1 << 32;
const APPENDS: RangeInclusive<u32> = 1..=65_536;
const CHUNK_PAGES: RangeInclusive<u32> = 1..=65_536;

impl HostProfile {
    /// Loads a built-in host by name, or a host from a TOML file by path.
    ///
    /// # Errors
    /// Returns an error with the problem and the allowed values, in words.
    pub fn load(name_or_path: &str) -> Result<Self, CatalogueError> {
        catalogue::load(name_or_path)
    }

    /// Returns the names of the built-in hosts.
    pub fn names() -> Vec<&'static str> {
        Self::BUILT_IN.iter().map(|(name, _)| *name).collect()
    }
}

impl Entry for HostProfile {
    const KIND: &'static str = "host";
    const BUILT_IN: &'static [(&'static str, &'static str)] =
        &[("desktop-12-core", include_str!("../../hosts/desktop-12-core.toml"))];

    fn problems(&self) -> Vec<String> {
        let texts = [("name", &self.name), ("description", &self.description)];
        let texts = texts.into_iter().filter_map(|(key, text)| unprintable(key, text));
        let sections = [self.processor.problems(), self.memory.problems(), self.files.problems()];
        texts.chain(sections.into_iter().flatten()).collect()
    }
}

impl Processor {
    fn problems(&self) -> Vec<String> {
        let problems = [
            bounds::range("processor.cores", self.cores, CORES),
            bounds::slice_us("processor.quantum_us", self.quantum_us),
            bounds::time_us("processor.get_us", self.get_us),
            bounds::time_us("processor.put_us", self.put_us),
            bounds::time_us("processor.next_us", self.next_us),
        ];
        problems.into_iter().flatten().chain(self.costs.problems()).collect()
    }
}

impl Memory {
    fn problems(&self) -> Vec<String> {
        let problems = [
            bounds::range("memory.index_bytes", self.index_bytes, 0..=MAX_MEMORY_BYTES),
            bounds::range("memory.iterator_bytes", self.iterator_bytes, 0..=MAX_MEMORY_BYTES),
        ];
        problems.into_iter().flatten().collect()
    }
}

impl Files {
    fn problems(&self) -> Vec<String> {
        let bounds = [
            bounds::range("files.page_bytes", self.page_bytes, PAGE_BYTES),
            bounds::range("files.extent_bytes", self.extent_bytes, EXTENT_BYTES),
            bounds::range("files.appends", self.appends, APPENDS),
            bounds::range("files.chunk_pages", self.chunk_pages, CHUNK_PAGES),
        ];
        let mut problems: Vec<String> = bounds.into_iter().flatten().collect();
        if !self.page_bytes.is_power_of_two() {
            problems
                .push(format!("files.page_bytes is {}, must be a power of two", self.page_bytes));
        }
        if problems.is_empty() && !self.extent_bytes.is_multiple_of(self.page_bytes.into()) {
            let (extent, page) = (self.extent_bytes, self.page_bytes);
            problems.push(format!("files.extent_bytes is {extent}, must be whole pages of {page}"));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_hosts_are_valid_and_every_number_has_a_source() {
        for (name, text) in HostProfile::BUILT_IN {
            let profile = HostProfile::load(name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(profile.name, *name);
            assert_eq!(catalogue::numbers_without_source(text), [] as [&str; 0], "{name}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_line() {
        let (_, text) = HostProfile::BUILT_IN[0];
        for (key, value, word) in [
            ("cores", "0", "processor.cores is 0"),
            ("page_bytes", "12288", "power of two"),
            ("extent_bytes", "8388609", "whole pages of 8192"),
            ("index_bytes", "9223372036854775807", "memory.index_bytes"),
            ("get_us", "1e18", "processor.get_us"),
            ("page_read_ns", "-1.0", "page_read_ns"),
        ] {
            let line = |line: &str| {
                if line.starts_with(key) { format!("{key} = {value}") } else { line.to_owned() }
            };
            let changed: Vec<String> = text.lines().map(line).collect();
            let error = catalogue::parse::<HostProfile>("x.toml", &changed.join("\n"));
            let error = error.expect_err(key).to_string();
            assert!(error.starts_with("host x.toml:") && error.contains(word), "{error}");
        }
    }
}
