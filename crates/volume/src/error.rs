//! Why a volume could not be put together.

use std::fmt;

use pages::MediumError;

/// Why a volume could not be put together, and what to do about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum VolumeError {
    /// The layout needs more members, or there are more than a volume can have.
    Members {
        /// Members it needs at least.
        least: usize,
        /// Members there are.
        found: usize,
    },
    /// A chunk is no whole number of the members' append units.
    ChunkPages {
        /// Pages of a chunk.
        chunk_pages: u32,
        /// Pages of an append unit.
        unit: u32,
    },
    /// A member's extent, of so many pages, does not hold a header and one stripe.
    ExtentTooSmall {
        /// Its pages.
        pages: u32,
    },
    /// There are more pages than numbers for them, of 32 bits.
    TooManyPages {
        /// Pages of data.
        pages: u64,
    },
    /// A member has another shape than the first one.
    Unlike {
        /// The member.
        member: usize,
    },
    /// A member belongs elsewhere in this volume.
    Swapped {
        /// Where it was found.
        member: usize,
        /// What it says it is.
        says: usize,
    },
    /// A member holds another volume, or this one with another layout.
    Foreign {
        /// The member.
        member: usize,
    },
    /// A member failed in a way that nothing stands in for.
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
