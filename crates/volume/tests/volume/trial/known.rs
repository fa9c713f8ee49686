//! The model of a volume.

use std::collections::{BTreeMap, BTreeSet};

use engine::Stream;

/// A stripe of the model.
#[expect(clippy::struct_excessive_bools, reason = "each is true or not whatever the others are")]
#[derive(Clone, Default, Debug)]
pub(super) struct Row {
    pub pages: Vec<Vec<u8>>,
    pub is_acknowledged: bool,
    pub is_synced: bool,
    /// Whether reads may fail, because more was lost than the layout tolerates.
    pub may_fail: bool,
    /// Whether a page of it cannot be read on some member, or has a flipped bit.
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
    /// Generations that a store remembers after a power cut, because something was synced after
    /// them. Others are assigned again.
    pub known_generations: u64,
    /// Members that may lack data.
    pub missing: BTreeSet<usize>,
    /// Whether the volume counted a kept hole: some stripe has no redundancy.
    pub keeps_holes: bool,
    /// Whether more members were lost than the layout tolerates, so that nothing can be appended.
    pub is_beyond: bool,
    pub complaints: Vec<String>,
}
