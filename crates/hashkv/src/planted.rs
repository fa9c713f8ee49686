//! Planted faults of the hash table: deliberate bugs that the model tests must catch. Compiled in only with
//! the feature `test-hooks`, which nothing but tests asks for.

/// A bug to plant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The hash table takes a signature for the key.
    HashSkipsKeyCompare,
    /// The dump leaves out bucket pages that were changed in memory.
    HashForgetsDirtyPages,
    /// The hash table does not note which slots garbage collection has taken the object of.
    HashForgetsUprooted,
}

impl Fault {
    /// Every fault there is.
    pub const ALL: [Self; 3] =
        [Self::HashSkipsKeyCompare, Self::HashForgetsDirtyPages, Self::HashForgetsUprooted];
}

/// Which faults are planted, if any.
#[derive(Clone, Copy, Debug, Default)]
pub struct Planted {
    /// In what every index stands on.
    pub pages: pages::Planted,
    /// In the hash table.
    pub table: planted::Planted<Fault>,
}
