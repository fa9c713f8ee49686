//! The block drive as its users see it.

mod admin;
mod latency;
mod small;
