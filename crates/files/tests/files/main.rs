//! Devices on real files: against a model, with what can go wrong, and under a host's store.

mod model;
mod scratch;
mod store;
mod trouble;
