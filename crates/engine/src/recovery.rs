//! Opening of a store that exists.
//!
//! ```text
//!  open ......... a new store, or one whose memory was dumped
//!  reopen ....... from manifest and WAL, where memory was lost
//!  scan, found .. finds both on the medium
//!  replay ....... writes of the WAL become memtables
//!  unreadable, unneeded .. unreadable pages of both, and the proof that they are not needed
//!  dump, tree_dump ....... memory that capacitors save: the common part, and that of a tree
//!  parked, tree_parked ... a store at rest, saved and restored whole
//! ```

pub(crate) mod dump;
pub(crate) mod found;
pub(crate) mod open;
pub(crate) mod parked;
pub(crate) mod reopen;
pub(crate) mod replay;
pub(crate) mod scan;
pub(crate) mod tree_dump;
pub(crate) mod tree_parked;
pub(crate) mod unneeded;
pub(crate) mod unreadable;
