//! TODO: read.

pub(crate) mod cache;
pub(crate) mod caches;
pub(crate) mod draw;
pub(crate) mod filter;
pub(crate) mod filter_sizes;
pub(crate) mod get;
pub(crate) mod get_outside;
pub(crate) mod pages;
pub(crate) mod search;
pub(crate) mod segments;
pub(crate) mod shared;
pub(crate) mod value_outside;
