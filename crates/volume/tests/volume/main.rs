//! Volumes against a model: random appends, reads, releases, losses, replacements and power cuts;
//! planted faults; a store on a volume of NVM sets.
//!
//! Trials are numbered by seed. A failure prints the command that replays it: `LEVELHEAD_SEED=N
//! cargo test -p volume --test volume model`. `LEVELHEAD_TRIALS=1000` sets the number of trials,
//! `LEVELHEAD_FIRST=300` the first seed.

mod degraded;
mod everything;
mod faults;
mod hedged;
mod journal;
mod memory;
mod model;
mod planted;
mod remembered;
mod returned;
mod rotten;
mod store;
mod trial;
mod windows;
