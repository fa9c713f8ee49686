//! Profiles of hosts. Every design that runs on a host runs on the same numbers.

use std::ops::RangeInclusive;

use block::BLOCK_BYTES;
use catalogue::{CatalogueError, Entry, bounds, unprintable};
use pages::CpuCosts;
use serde::{Deserialize, Serialize};

/// A host.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HostProfile {
    /// Its name in results.
    pub name: String,
    /// What it is, in a sentence.
    pub description: String,
    /// Its processor, and what operations cost on it.
    pub processor: Processor,
    /// Its memory.
    pub memory: Memory,
    /// How the store's files lie on drives.
    pub files: Files,
}

/// The processor, which clients and background work share.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Processor {
    /// Cores.
    pub cores: usize,
    /// Longest stretch that background work keeps a core, in microseconds.
    pub quantum_us: f64,
    /// What a Get takes besides searching and reading, in microseconds.
    pub get_us: f64,
    /// What a Put or Delete takes besides its memtable, in microseconds.
    pub put_us: f64,
    /// What a Seek or Next takes besides searching and reading, in microseconds.
    pub next_us: f64,
    /// Costs of the index's work.
    pub costs: CpuCosts,
}

/// Memory of the host that the store may have.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// For index structures, filters and caches, in bytes.
    pub index_bytes: u64,
    /// For snapshots and the buffers of iterators, in bytes.
    pub iterator_bytes: u64,
}

/// How files lie on drives.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Files {
    /// What one read brings, in bytes: whole blocks of the drive.
    pub page_bytes: u32,
    /// Room that a file is given at a time, in bytes: whole pages.
    pub extent_bytes: u64,
    /// Writes under way at a time.
    pub appends: u32,
    /// Pages of a chunk, in volumes that have some.
    pub chunk_pages: u32,
}

const CORES: RangeInclusive<usize> = 1..=1024;
const MAX_MEMORY_BYTES: u64 = 1 << 45;
/// Pages of the store: a block of the drive at least, and entries count from a page's beginning.
const PAGE_BYTES: RangeInclusive<u32> = BLOCK_BYTES..=64 << 10;
const EXTENT_BYTES: RangeInclusive<u64> = 1 << 16..=1 << 32;
const APPENDS: RangeInclusive<u32> = 1..=65_536;
const CHUNK_PAGES: RangeInclusive<u32> = 1..=65_536;

impl HostProfile {
    /// A built-in host by name, or one from a TOML file by path.
    ///
    /// # Errors
    /// What is wrong and what is allowed, in words.
    pub fn load(name_or_path: &str) -> Result<Self, CatalogueError> {
        catalogue::load(name_or_path)
    }

    /// Names of the built-in hosts.
    pub fn names() -> Vec<&'static str> {
        Self::BUILT_IN.iter().map(|(name, _)| *name).collect()
    }
}

impl Entry for HostProfile {
    const KIND: &'static str = "host";
    const BUILT_IN: &'static [(&'static str, &'static str)] =
        &[("desktop-12-core", include_str!("../hosts/desktop-12-core.toml"))];

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
