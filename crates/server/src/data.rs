//! Redis's data types on a store of pairs in key order.
//!
//! ```text
//!   keys ........ store keys of each kind of record        (data/keys.rs)
//!   records ..... values of these store keys               (data/records.rs)
//!   batch ....... the writes of a command                  (data/batch.rs)
//!   locks ....... locks of keys                            (data/locks.rs)
//!   overlay ..... the pending writes of a transaction      (data/overlay.rs)
//!   steps ....... the step budget of a command             (data/steps.rs)
//!   Database .... the data in a store, for all commands    (data/database.rs)
//!   Access ...... the data as one command sees it          (data/access.rs)
//!   strings ..... operations on strings                    (data/strings.rs)
//!   collections . operations on hashes                     (data/collections.rs)
//!   sorted_sets . operations on sorted sets                (data/sorted_sets.rs)
//!   selection ... parts of a sorted set                    (data/selection.rs)
//!   rename ...... renaming and copying of keys             (data/rename.rs)
//!   names ....... user keys in order                       (data/names.rs)
//!   count ....... the number of user keys                  (data/count.rs)
//!   flush ....... removal of all keys                      (data/flush.rs)
//!   frontier .... progress of the sweeper                  (data/frontier.rs)
//!   sweep ....... removal of expired and dropped data      (data/sweep.rs)
//! ```
//!
//! Decision 41 has the reasons for this design; docs/format.md has the bytes.

pub(crate) mod access;
pub(crate) mod batch;
pub(crate) mod collections;
pub(crate) mod count;
pub(crate) mod database;
pub(crate) mod flush;
pub(crate) mod frontier;
pub(crate) mod keys;
pub(crate) mod locks;
pub(crate) mod names;
pub(crate) mod overlay;
pub(crate) mod records;
pub(crate) mod rename;
pub(crate) mod selection;
pub(crate) mod sorted_sets;
pub(crate) mod steps;
pub(crate) mod strings;
pub(crate) mod sweep;
#[cfg(test)]
mod tests;
