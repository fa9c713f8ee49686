//! The formats of key-value traces.

use std::fmt;

use serde::Deserialize;

/// A trace format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KvFormat {
    /// CSV of Twitter's caches: timestamp,key,key size,value size,client id,operation,TTL.
    Twitter,
    /// RocksDB's trace in the human-readable form of `trace_analyzer`: key, type, column family,
    /// value size, time.
    Rocksdb,
}

impl KvFormat {
    /// All formats with their names.
    pub const ALL: [(Self, &'static str); 2] =
        [(Self::Twitter, "twitter"), (Self::Rocksdb, "rocksdb")];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        let named = Self::ALL.into_iter().find(|(one, _)| *one == self);
        named.expect("all are listed").1
    }
}

impl fmt::Display for KvFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
