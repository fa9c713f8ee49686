//! A host's store on block drives against a model: random operations, power cuts, lost and stale sets, damage,
//! crash points, planted faults.
//!
//! Trials are numbered by seed. A failure prints the command that replays it:
//! `LEVELHEAD_SEED=N cargo test -p host --test trials model_agrees_over`, or `model_agrees_with` where the journal is apart. `LEVELHEAD_TRIALS=1000` runs more of them than the
//! default, `LEVELHEAD_FIRST=300` begins with that one.

mod client;
mod crash_points;
#[path = "../../../ssd/tests/drive/shape.rs"]
#[expect(dead_code, reason = "these trials have clients of their own")]
mod drives;
mod fault;
mod harm;
mod journal_set;
mod machine;
mod model;
mod planted;
mod rack;
mod shape;
#[path = "../../../ssd/tests/drive/small.rs"]
mod small;
mod store;
mod tally;
mod trial_of_seed;
