//! Tests of a host's store on block drives against a model: random operations, power cuts, lost and
//! stale sets, damage, crash points, planted faults.
//!
//! Trials are numbered by seed. A failure prints the command that replays it: `LEVELHEAD_SEED=N
//! cargo test -p torture --test trials model_agrees_over`, or `model_agrees_with` for a journal on
//! a set of its own. `LEVELHEAD_TRIALS=1000` runs that many trials; `LEVELHEAD_FIRST=300` starts at
//! that seed.

mod crash_points;
mod journal_set;
mod model;
mod planted;
