//! The mix of operations.

use serde::Serialize;

/// The share of each operation in a run, relative to the others: their sum need not be 1.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Mix {
    /// `readproportion`.
    pub read: f64,
    /// `updateproportion`.
    pub update: f64,
    /// `insertproportion`.
    pub insert: f64,
    /// `scanproportion`.
    pub scan: f64,
    /// `readmodifywriteproportion`.
    pub read_modify_write: f64,
    /// `deleteproportion`, which YCSB does not have.
    pub delete: f64,
}

impl Mix {
    /// Returns the sum of all shares.
    pub fn sum(&self) -> f64 {
        self.shares().into_iter().sum()
    }

    /// Returns the share of inserts in all operations, from 0 to 1.
    pub fn insert_share(&self) -> f64 {
        self.insert / self.sum()
    }

    /// Returns the share of operations that put a value, from 0 to 1.
    pub fn write_share(&self) -> f64 {
        (self.update + self.insert + self.read_modify_write) / self.sum()
    }

    /// Returns the shares in the order of the fields.
    fn shares(&self) -> [f64; 6] {
        let Self { read, update, insert, scan, read_modify_write, delete } = *self;
        [read, update, insert, scan, read_modify_write, delete]
    }
}
