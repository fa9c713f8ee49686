//! The store as people embed it, on real files.

mod damage;
mod ends;
mod kills;
mod model;
mod power;
mod scratch;
mod threads;
