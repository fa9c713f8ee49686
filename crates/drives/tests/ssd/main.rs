//! The block drive as its users see it: latencies, and random commands, power cuts, crash points
//! and planted faults, all compared with a model.
//!
//! Trials are numbered by seed. A failure prints the command that replays it: `LEVELHEAD_SEED=N
//! cargo test -p drives --test ssd model`. `LEVELHEAD_TRIALS=1000` runs more trials than the
//! default.

mod admin;
mod agreement;
mod amplification;
mod arithmetic;
mod client;
mod crash_points;
mod damage;
mod determinism;
mod discards;
mod erases;
mod failure;
mod forced;
mod harness;
mod isolation;
mod load;
mod model;
mod paced;
mod paging;
mod planted;
mod real;
mod referee;
mod starvation;
mod tally;
mod trial;
mod window_cases;
mod window_client;
mod window_storm;
mod world;
