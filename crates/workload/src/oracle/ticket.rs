//! Tickets: the state at the start of a Get, for the check of its result.

/// The possible current versions when a Get began.
#[derive(Clone, Debug)]
pub(super) struct ReadTicket {
    pub(super) key: u64,
    /// The newest version issued before.
    pub(super) newest: u32,
    pub(super) deletes: u64,
    pub(super) current: Current,
}

/// The possible current writes.
#[derive(Clone, Debug)]
pub(super) enum Current {
    /// Only the newest version.
    Newest,
    /// Any of these; `is_quiet`: whether no write was in flight.
    OneOf { versions: Vec<u32>, is_quiet: bool },
}
