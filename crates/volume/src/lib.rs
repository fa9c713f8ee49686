//! A volume: several media combined into one medium.
//!
//! ```text
//!  volume ......... the medium, its members and their conditions         (volume.rs, medium.rs)
//!   |- reading .... reads, and rebuilds of pages from the other members
//!   |- writing .... stripes, opening of extents
//!   |- noting ..... headers, rewritten when a member missed a write
//!   |- syncing .... syncs and releases
//!   |- recovery ... state after a power cut; survey.rs gives the verdict
//!   |- torn ....... members that a power cut left with a hole
//!   |- refill ..... background rebuild of a member
//!   |- extents .... how much each member has of each extent               (decisions)
//!   |- incarnations which drive in a member's place counts                (decisions)
//!   |- tenure ..... incarnation and last run of a member, in one number    (arithmetic)
//!   |- layout ..... page -> member, stripe, place                         (arithmetic)
//!   |- parity ..... exclusive or                                          (arithmetic)
//!   `- header ..... header at the start of each member's extent           (bytes)
//!  windows ........ all members but one are in their deterministic window  (windows/mod.rs)
//!  block_range .... a range of an NVM set as a medium
//!  one_or_many .... a single medium, or a volume
//! ```
//! Extent `e` of a volume is extent `e` of each member. Every append is a whole stripe, so a write
//! never needs a read first. Each member's extent begins with a header. The header identifies the
//! volume and the member, and lists the members that missed some of the extent ([`header`]). The
//! volume does not checksum pages: a caller that finds a page wrong calls
//! [`engine::Medium::read_versions`]. docs/decisions/0023 gives the reasons.
//!
//! Cost: a read is one read of one member. A rebuilt read is one read of each other member, all
//! submitted together. A stripe costs one append for each append unit of each member, and the
//! exclusive or of its pages. Memory: some tens of bytes for each extent and member.

#![forbid(unsafe_code)]

mod block_range;
mod error;
mod extents;
pub mod header;
mod incarnations;
pub mod layout;
mod medium;
mod noting;
mod one_or_many;
mod options;
pub mod parity;
mod planted;
mod reading;
mod recovery;
mod refill;
mod run;
mod scrub;
mod survey;
mod syncing;
mod tenure;
mod tidying;
mod torn;
mod volume;
pub mod windows;
mod writing;

pub use block_range::{BlockRange, RangeOptions, Reuse};
pub use error::VolumeError;
pub use layout::Layout;
pub use one_or_many::OneOrMany;
pub use options::{Options, Progress, VolumeStats};
pub use planted::{Fault, Planted};
pub use scrub::{Checked, Mismatch, Seen};
pub use volume::{Setup, Volume};

/// Maximum number of members of a volume.
pub const MAX_MEMBERS: usize = 64;
