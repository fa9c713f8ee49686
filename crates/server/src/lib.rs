//! A store, served over the protocol of Redis.
#![forbid(unsafe_code)]

pub mod resp;
