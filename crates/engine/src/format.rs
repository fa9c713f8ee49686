//! Bytes of pages, objects, pointers, meta segments and tables. Pure functions; no I/O.

pub(crate) mod codec;
pub(crate) mod columns;
pub(crate) mod data_page;
pub(crate) mod entry;
pub(crate) mod group_index;
pub(crate) mod inlining;
pub(crate) mod key_heads;
pub(crate) mod meta_segment;
pub(crate) mod object;
pub(crate) mod outline;
pub mod page;
pub(crate) mod pointer;
pub(crate) mod table_builder;
pub(crate) mod value;
