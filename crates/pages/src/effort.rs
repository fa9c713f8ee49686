//! Counts of work steps, from which the store charges processor time.

use std::ops::AddAssign;

use catalogue::bounds;
use runtime::Nanos;
use serde::{Deserialize, Serialize};

/// Cost of each step on the processor of a device, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CpuCosts {
    /// Looking up or inserting a key in a memtable.
    pub memtable_ns: f64,
    /// One comparison of prefixes in the search of a level list.
    pub prefix_compare_ns: f64,
    /// One comparison of whole keys in a search.
    pub key_compare_ns: f64,
    /// Passing one entry through a merge.
    pub merge_entry_ns: f64,
    /// Adding one key to a Bloom filter, including its hash.
    pub filter_build_ns: f64,
    /// Probing one Bloom filter, including its share of the key's hash.
    pub filter_probe_ns: f64,
    /// Packing one object into a data page.
    pub pack_object_ns: f64,
    /// Hashing one key. A cache probe is charged the same.
    pub hash_key_ns: f64,
    /// Processing one page that a client's lookup read from the medium: the system call and the
    /// checksum. 0 if hardware does this.
    #[serde(default)]
    pub page_read_ns: f64,
}

/// Steps of a lookup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Memtables searched.
    pub memtables: u32,
    /// Comparisons of prefixes.
    pub prefix_compares: u32,
    /// Comparisons of whole keys.
    pub key_compares: u32,
    /// Keys hashed, and cache probes.
    pub hashes: u32,
    /// Filter probes.
    pub filter_probes: u32,
    /// Pages read from the medium.
    pub page_reads: u32,
}

impl AddAssign for Effort {
    fn add_assign(&mut self, more: Self) {
        self.memtables += more.memtables;
        self.prefix_compares += more.prefix_compares;
        self.key_compares += more.key_compares;
        self.hashes += more.hashes;
        self.filter_probes += more.filter_probes;
        self.page_reads += more.page_reads;
    }
}

impl CpuCosts {
    /// Returns the costs of a processor that is slower by the factor `times`.
    #[must_use]
    pub fn scaled(&self, times: f64) -> Self {
        let Self {
            memtable_ns,
            prefix_compare_ns,
            key_compare_ns,
            merge_entry_ns,
            filter_build_ns,
            filter_probe_ns,
            pack_object_ns,
            hash_key_ns,
            page_read_ns,
        } = self;
        Self {
            memtable_ns: memtable_ns * times,
            prefix_compare_ns: prefix_compare_ns * times,
            key_compare_ns: key_compare_ns * times,
            merge_entry_ns: merge_entry_ns * times,
            filter_build_ns: filter_build_ns * times,
            filter_probe_ns: filter_probe_ns * times,
            pack_object_ns: pack_object_ns * times,
            hash_key_ns: hash_key_ns * times,
            page_read_ns: page_read_ns * times,
        }
    }

    /// Zero cost, for stores whose processor time is not modelled, and for real time, where the
    /// work itself takes the time.
    pub const FREE: Self = Self {
        memtable_ns: 0.0,
        prefix_compare_ns: 0.0,
        key_compare_ns: 0.0,
        merge_entry_ns: 0.0,
        filter_build_ns: 0.0,
        filter_probe_ns: 0.0,
        pack_object_ns: 0.0,
        hash_key_ns: 0.0,
        page_read_ns: 0.0,
    };

    /// Returns the time of the steps of a lookup.
    pub fn of(&self, effort: Effort) -> Nanos {
        let ns = f64::from(effort.memtables) * self.memtable_ns
            + f64::from(effort.prefix_compares) * self.prefix_compare_ns
            + f64::from(effort.key_compares) * self.key_compare_ns
            + f64::from(effort.hashes) * self.hash_key_ns
            + f64::from(effort.filter_probes) * self.filter_probe_ns
            + f64::from(effort.page_reads) * self.page_read_ns;
        Nanos(ns.round() as u64)
    }

    /// Returns the time to pass `entries` entries through a merge.
    pub fn of_merge(&self, entries: usize) -> Nanos {
        Nanos((entries as f64 * self.merge_entry_ns).round() as u64)
    }

    /// Returns the time to add `keys` keys to filters.
    pub fn of_filters(&self, keys: u64) -> Nanos {
        Nanos((keys as f64 * self.filter_build_ns).round() as u64)
    }

    /// Returns the time to pack `objects` objects.
    pub fn of_packing(&self, objects: usize) -> Nanos {
        Nanos((objects as f64 * self.pack_object_ns).round() as u64)
    }

    /// Returns the time to hash `keys` keys.
    pub fn of_hashes(&self, keys: usize) -> Nanos {
        Nanos((keys as f64 * self.hash_key_ns).round() as u64)
    }

    /// Returns a message for each cost that is out of range.
    pub fn problems(&self) -> Vec<String> {
        let costs = [
            ("memtable_ns", self.memtable_ns),
            ("prefix_compare_ns", self.prefix_compare_ns),
            ("key_compare_ns", self.key_compare_ns),
            ("merge_entry_ns", self.merge_entry_ns),
            ("filter_build_ns", self.filter_build_ns),
            ("filter_probe_ns", self.filter_probe_ns),
            ("pack_object_ns", self.pack_object_ns),
            ("hash_key_ns", self.hash_key_ns),
            ("page_read_ns", self.page_read_ns),
        ];
        costs.into_iter().filter_map(|(name, ns)| bounds::cost_ns(name, ns)).collect()
    }
}
