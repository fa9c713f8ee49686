//! The drive compared with an ordered map: random commands, power cuts, crash points, planted
//! faults.
//!
//! Trials are numbered by seed. A failure prints the command that replays it: `LEVELHEAD_SEED=N
//! cargo test -p stacks --test kvssd model`. `LEVELHEAD_TRIALS=1000` runs more trials than the
//! default.

mod accelerator;
mod answers;
mod caches;
mod client;
mod commands;
mod conditions;
mod crash_points;
mod damage;
mod fault;
mod filters;
mod fuzz;
mod harness;
mod iterator_memory;
mod iterators;
mod long_groups;
mod long_keys;
mod model;
mod planted;
mod random_shape;
mod reading_ahead;
mod scanner;
mod script;
mod shape;
mod tally;
mod trial;
mod wild_shape;
mod write_stalls;
