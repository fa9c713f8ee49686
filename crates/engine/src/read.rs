//! Gets, and the reads below them.
//!
//! ```text
//!  locate ........ the place of a key's value: memtables, levels, caches
//!  get_outside ... a Get whose read the caller does itself, on its own thread
//!  search ........ the levels from the top, until a page must be read
//!  filter, filter_sizes .. Bloom filters of segments
//!  caches, cache . pages of the index and values that stay in memory
//!  segments ...... checked reads of meta segments
//!  pages ......... checked reads of pages and values
//!  shared ........ several Gets that need one page share its read
//!  value_outside . reads of values outside of the runtime
//!  draw .......... keys drawn at random
//! ```

pub(crate) mod cache;
pub(crate) mod caches;
pub(crate) mod draw;
pub(crate) mod filter;
pub(crate) mod filter_sizes;
pub(crate) mod get_outside;
pub(crate) mod locate;
pub(crate) mod pages;
pub(crate) mod search;
pub(crate) mod segments;
pub(crate) mod shared;
pub(crate) mod value_outside;
