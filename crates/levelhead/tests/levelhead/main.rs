//! The store as people embed it, on real files.

mod away;
mod batches;
mod care;
mod compact;
mod damage;
mod drives;
mod ends;
mod extremes;
mod failing;
mod failures;
mod flips;
mod forks;
mod inline;
mod kills;
mod members;
mod memory;
mod model;
mod power;
mod ranges;
mod salvage;
mod scratch;
mod settled;
mod strangers;
mod threads;
mod turns;
mod windows;
