//! The store as people embed it, on real files.

mod batches;
mod damage;
mod ends;
mod model;
mod scratch;
mod threads;
