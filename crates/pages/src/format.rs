//! Encodings of pages, objects and pointers. Pure functions; no I/O.

pub mod codec;
pub mod data_page;
pub mod object;
pub(crate) mod packing;
pub mod page;
pub mod pointer;
pub(crate) mod value;
