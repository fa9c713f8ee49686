//! Planted faults of the storage of pairs: deliberate bugs that the model tests must catch.

/// The planted faults, if any.
#[derive(Clone, Copy, Debug, Default)]
pub struct Planted {
    /// Faults in the parts that all indexes use.
    pub pages: pages::Planted,
    /// Faults in an LSM-tree.
    pub tree: planted::Planted<engine::Fault>,
    /// Faults in a hash table.
    pub table: planted::Planted<hashkv::Fault>,
}

impl Planted {
    /// Returns the faults of an index that is an LSM-tree.
    pub(crate) fn of_lsm(self) -> engine::Planted {
        engine::Planted { pages: self.pages, tree: self.tree }
    }

    /// Returns the faults of an index that is a hash table.
    pub(crate) fn of_hash(self) -> hashkv::Planted {
        hashkv::Planted { pages: self.pages, table: self.table }
    }
}
