//! What the model knows of a volume.

use std::collections::{BTreeMap, BTreeSet};

use pages::Stream;

/// A stripe as the model knows it.
#[expect(clippy::struct_excessive_bools, reason = "each is true or not whatever the others are")]
#[derive(Clone, Default, Debug)]
pub(super) struct Row {
    pub pages: Vec<Vec<u8>>,
    pub is_acknowledged: bool,
    pub is_synced: bool,
    /// Reads may end with an error: more was lost than the layout stands.
    pub may_fail: bool,
    /// A page of it cannot be read on some member, or has a bit flipped.
    pub is_damaged: bool,
    pub is_flipped: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Filled {
    pub stream: Stream,
    pub rows: BTreeMap<u32, Row>,
    pub next: u32,
    pub is_open: bool,
}

#[derive(Default)]
pub(super) struct Model {
    pub extents: BTreeMap<u32, Filled>,
    pub generations: u64,
    /// Generations that a store knows after a power cut, because something was synced behind them. Others are given
    /// again.
    pub known_generations: u64,
    /// Members that are not known to have everything.
    pub missing: BTreeSet<usize>,
    /// The volume said that it keeps a hole: some stripe is without redundancy.
    pub keeps_holes: bool,
    /// More was lost than the layout stands: nothing can be appended.
    pub is_beyond: bool,
    pub complaints: Vec<String>,
}
