//! Planted faults of what pairs are stored in: deliberate bugs that the model tests must catch.

/// Which faults are planted, if any.
#[derive(Clone, Copy, Debug, Default)]
pub struct Planted {
    /// In what every index stands on.
    pub pages: pages::Planted,
    /// In an LSM-tree.
    pub tree: planted::Planted<engine::Fault>,
    /// In a hash table.
    pub table: planted::Planted<hashkv::Fault>,
}

impl Planted {
    /// Those of an index that is an LSM-tree.
    pub(crate) fn of_lsm(self) -> engine::Planted {
        engine::Planted { pages: self.pages, tree: self.tree }
    }

    /// Those of an index that is a hash table.
    pub(crate) fn of_hash(self) -> hashkv::Planted {
        hashkv::Planted { pages: self.pages, table: self.table }
    }
}
