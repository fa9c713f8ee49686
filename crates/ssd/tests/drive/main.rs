//! The block drive as its users see it.

mod latency;
mod small;
