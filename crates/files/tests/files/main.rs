//! Tests of devices on real files: against a model, with injected failures, below a host's store;
//! and the benchmark example.

mod benchmark;
mod holes;
mod model;
mod plm;
mod scratch;
mod store;
mod system;
mod trouble;
