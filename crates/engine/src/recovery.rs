//! TODO: recovery.

pub(crate) mod dump;
pub(crate) mod open;
pub(crate) mod parked;
pub(crate) mod reopen;
pub(crate) mod replay;
pub(crate) mod scan;
pub(crate) mod tree_dump;
pub(crate) mod tree_parked;
pub(crate) mod unneeded;
pub(crate) mod unreadable;
