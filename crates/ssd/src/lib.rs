//! A block drive on flash, in virtual time.

#![forbid(unsafe_code)]

pub mod nvme;
