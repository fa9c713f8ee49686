//! Devices on real files: against a model, with what can go wrong, under a host's store; and the example.

mod benchmark;
mod holes;
mod model;
mod plm;
mod scratch;
mod store;
mod system;
mod trouble;
