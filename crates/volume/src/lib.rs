//! A volume: a medium made of media.
//!
//! ```text  volume ......... the medium; members, and who is lost                 (volume.rs, medium.rs)   |- reading .... reads, and what is rebuilt from others   |- writing .... stripes, opening   |- noting ..... headers, written again if a member missed something   |- syncing .... syncs and releases   |- recovery ... what a power cut left; survey.rs decides what counts   |- torn ....... members that a power cut left with a hole   |- refill ..... a member is filled in the background   |- extents .... what each member has of each extent                   (decisions)   |- incarnations which of those that were in a member's place counts      (decisions)   |- layout ..... page -> member, stripe, place                         (arithmetic)   |- parity ..... exclusive or                                          (arithmetic)   `- header ..... what each member's extent begins with                 (bytes)  windows ........ all members but one are in their deterministic window  (windows/mod.rs)  block_range .... a range of an NVM set as a medium  one_or_many .... a medium alone, or a volume ``` Extent `e` of a volume is extent `e` of each member, and what is appended is a whole stripe: nothing is ever read in order to be written. Each member's extent begins with a header that says which member of which volume it is, and which members missed some of the extent ([`header`]). Pages are not checksummed here: whoever finds one wrong asks for [`pages::Medium::read_versions`]. docs/decisions/0023 says why.
//!
//! Cost: a read is one read of one member; a rebuilt one is one of each other member, submitted together. A stripe is one append for each append unit of each member, and the exclusive or of its pages. Memory: some tens of bytes for each extent and member.

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
