//! Errors of assembling a volume.

use std::fmt;

use engine::MediumError;

/// The reason why a volume could not be assembled. Some messages name the remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum VolumeError {
    /// The layout needs more members, or there are more than the maximum.
    Members {
        /// Minimum number of members.
        least: usize,
        /// Number of members given.
        found: usize,
    },
    /// The chunk is not a whole number of the members' append units.
    ChunkPages {
        /// Pages of a chunk.
        chunk_pages: u32,
        /// Pages of an append unit.
        unit: u32,
    },
    /// A member's extent does not hold a header and one stripe.
    ExtentTooSmall {
        /// Pages of the extent.
        pages: u32,
    },
    /// The volume has more pages than 32-bit page numbers allow.
    TooManyPages {
        /// Pages of data.
        pages: u64,
    },
    /// A member's shape differs from that of the first one.
    Unlike {
        /// The member.
        member: usize,
    },
    /// A member belongs in another place of this volume.
    Swapped {
        /// The place it was found in.
        member: usize,
        /// The place that its headers record.
        says: usize,
    },
    /// A member holds another volume, or this one with another layout.
    Foreign {
        /// The member.
        member: usize,
    },
    /// A member failed, and no redundancy replaces it.
    Medium(MediumError),
}

impl fmt::Display for VolumeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Members { least, found } => write!(
                f,
                "the layout needs {least} to {} members, and there are {found}",
                crate::MAX_MEMBERS
            ),
            Self::ChunkPages { chunk_pages, unit } => write!(
                f,
                "a chunk of {chunk_pages} pages is no whole number of append units of {unit} pages"
            ),
            Self::ExtentTooSmall { pages } => {
                write!(f, "an extent of {pages} pages does not hold a header and a stripe")
            }
            Self::TooManyPages { pages } => {
                write!(f, "there are {pages} pages of data, and less than 2^32 have numbers")
            }
            Self::Unlike { member } => {
                write!(f, "member {member} has another shape than the first one")
            }
            Self::Swapped { member, says } => write!(
                f,
                "what stands as member {member} says it is member {says}: put them in order"
            ),
            Self::Foreign { member } => write!(
                f,
                "member {member} holds another volume; empty it if it is to stand in for a lost one"
            ),
            Self::Medium(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for VolumeError {}

impl From<MediumError> for VolumeError {
    fn from(error: MediumError) -> Self {
        Self::Medium(error)
    }
}
