//! The store as people embed it, on real files.

mod damage;
mod ends;
mod model;
mod power;
mod scratch;
mod threads;
