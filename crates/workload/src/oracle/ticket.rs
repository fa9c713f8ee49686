//! What a Get takes along, to be judged by when it returns.

/// What could be current when a Get began.
#[derive(Clone, Debug)]
pub(super) struct ReadTicket {
    pub(super) key: u64,
    /// The newest version that was issued before.
    pub(super) newest: u32,
    pub(super) deletes: u64,
    pub(super) current: Current,
}

/// Which writes those are.
#[derive(Clone, Debug)]
pub(super) enum Current {
    /// The newest version and no other.
    Newest,
    /// Any of these; quiet if no write was under way.
    OneOf { versions: Vec<u32>, is_quiet: bool },
}
