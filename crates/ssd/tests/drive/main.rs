//! The block drive as its users see it.

mod admin;
mod amplification;
mod arithmetic;
mod determinism;
mod isolation;
mod load;
mod small;
mod window_cases;
mod window_storm;
