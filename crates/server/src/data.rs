//! Redis's data on a store of pairs in key order.
//!
//! ```text
//!   keys ...... where each thing stands in the store    (data/keys.rs)
//!   records ... what stands there                       (data/records.rs)
//!   batch ..... what a command changes                  (data/batch.rs)
//!   locks ..... one command at a time on a key          (data/locks.rs)
//!   overlay ... what a transaction has changed so far   (data/overlay.rs)
//!   steps ..... how far a command may walk              (data/steps.rs)
//!   Database .. all that, on a store                    (data/database.rs)
//!   names ..... keys of users in order                  (data/names.rs)
//!   count ..... how many there are                      (data/count.rs)
//!   flush ..... all keys go                             (data/flush.rs)
//!   frontier .. how far notes were swept                (data/frontier.rs)
//!   sweep ..... what has expired or was dropped goes    (data/sweep.rs)
//! ```
//!
//! Decision 41 says why it is like that; docs/format.md has the bytes.

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
