//! Planted faults of the hash table: deliberate bugs that the model tests must catch. Compiled in
//! only with the feature `test-hooks`, which only tests enable.

/// A bug to plant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A flush does not compare keys: it changes the first slot with the key's signature, even if
    /// the slot belongs to another key. Gets still compare keys.
    HashSkipsKeyCompare,
    /// The dump omits bucket pages that were changed in memory, and so does the checkpoint.
    HashForgetsDirtyPages,
    /// Garbage collection does not note the slots whose objects it removes.
    HashForgetsUprooted,
}

impl Fault {
    /// All faults.
    pub const ALL: [Self; 3] =
        [Self::HashSkipsKeyCompare, Self::HashForgetsDirtyPages, Self::HashForgetsUprooted];
}

/// The planted faults, if any.
#[derive(Clone, Copy, Debug, Default)]
pub struct Planted {
    /// Faults in the page store and other parts that all indexes share.
    pub pages: pages::Planted,
    /// Faults in the hash table.
    pub table: planted::Planted<Fault>,
}
