//! Bytes: how pages, segments, objects and pointers are written. Pure; no I/O.

pub(crate) mod bucket;
pub(crate) mod codec;
pub(crate) mod data_page;
pub(crate) mod key_heads;
pub(crate) mod meta_segment;
pub(crate) mod object;
pub(crate) mod outline;
pub(crate) mod packing;
pub(crate) mod page;
pub(crate) mod pointer;
pub(crate) mod value;
