//! Counts the steps of the code, to charge the processor time that they would take.

use std::ops::AddAssign;

use catalogue::bounds;
use runtime::Nanos;
use serde::{Deserialize, Serialize};

/// The cost of each step on the processor of a device, in nanoseconds.
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
    /// Probing one Bloom filter, with its share of the key's hash.
    pub filter_probe_ns: f64,
    /// Packing one object into a data page.
    pub pack_object_ns: f64,
    /// Hashing one key. A cache look-up is charged the same.
    pub hash_key_ns: f64,
    /// Processing one page that a client's search read from the medium: the system call and the
    /// checksum. 0 where hardware does it.
    #[serde(default)]
    pub page_read_ns: f64,
}

/// The steps of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Memtables searched.
    pub memtables: u32,
    /// Comparisons of prefixes.
    pub prefix_compares: u32,
    /// Comparisons of whole keys.
    pub key_compares: u32,
    /// Keys hashed, and cache look-ups.
    pub hashes: u32,
    /// Filters probed.
    pub filter_probes: u32,
    /// Pages read and checked.
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
    /// Returns the costs of a processor that needs `times` times as long for each step.
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

    /// Steps that take no time: for stores whose processor time does not count, and for real time,
    /// where work takes as long as it takes.
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

    /// Returns the time that the steps of a search take.
    pub fn of(&self, effort: Effort) -> Nanos {
        let ns = f64::from(effort.memtables) * self.memtable_ns
            + f64::from(effort.prefix_compares) * self.prefix_compare_ns
            + f64::from(effort.key_compares) * self.key_compare_ns
            + f64::from(effort.hashes) * self.hash_key_ns
            + f64::from(effort.filter_probes) * self.filter_probe_ns
            + f64::from(effort.page_reads) * self.page_read_ns;
        Nanos(ns.round() as u64)
    }

    /// Returns the time to merge `entries` entries.
    pub fn of_merge(&self, entries: usize) -> Nanos {
        Nanos((entries as f64 * self.merge_entry_ns).round() as u64)
    }

    /// Returns the time to put `keys` keys into filters.
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

    /// Returns a description of each invalid number.
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
