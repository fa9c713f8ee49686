//! Address arithmetic: the member that has a page, and the place of the page on it.
//!
//! Extent `e` of a volume is extent `e` of each of its members. The first append unit of a member's
//! extent is its header; after it come chunks, one for each stripe. So the chunks of a stripe are
//! at the same place on all members, and arithmetic alone finds a page.
//!
//! ```text
//!            member 0    member 1    member 2
//!            header      header      header
//! stripe 0   data 0      data 1      parity       extent 0: the parity rotates over the members.
//! stripe 1   data 1      parity      data 0       The data chunks start after the parity chunk,
//! stripe 2   parity      data 0      data 1       so consecutive chunks are on different members.
//! ```
//! The rotation is shifted by the number of the extent. Otherwise extents with few stripes would
//! have their parity on the same members.

use engine::{ExtentId, PageNo, Shape};

use crate::error::VolumeError;

/// How pages are distributed over the members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// Chunks rotate over the members, without redundancy.
    Striped {
        /// Pages per chunk.
        chunk_pages: u32,
    },
    /// Each stripe has a chunk of parity; one member may be lost. Needs at least three members.
    Parity {
        /// Pages per chunk.
        chunk_pages: u32,
    },
    /// Each page is on all members; all but one may be lost. Needs at least two members.
    Mirrored,
}

/// The stripes of a volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stripes {
    layout: Layout,
    members: u32,
    member: Shape,
    chunk_pages: u32,
    rows: u32,
}

/// The position of a page of a volume.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Spot {
    /// The extent.
    pub extent: ExtentId,
    /// The stripe in the extent.
    pub row: u32,
    /// The index of the data chunk in the stripe.
    pub column: u32,
    /// The page in the chunk.
    pub offset: u32,
}

impl Stripes {
    /// Returns the stripes over `members` members of the shape `member`.
    ///
    /// # Errors
    /// Returns [`VolumeError`] if the number of members is out of range, if a chunk is not a
    /// multiple of the append unit, if an extent is too small, or if the volume has too many pages.
    pub fn new(layout: Layout, members: usize, member: Shape) -> Result<Self, VolumeError> {
        let least = match layout {
            Layout::Striped { .. } => 1,
            Layout::Mirrored => 2,
            Layout::Parity { .. } => 3,
        };
        if !(least..=crate::MAX_MEMBERS).contains(&members) {
            return Err(VolumeError::Members { least, found: members });
        }
        let unit = member.append_unit;
        let chunk_pages = match layout {
            Layout::Striped { chunk_pages } | Layout::Parity { chunk_pages } => chunk_pages,
            Layout::Mirrored => unit,
        };
        if chunk_pages == 0 || !chunk_pages.is_multiple_of(unit) {
            return Err(VolumeError::ChunkPages { chunk_pages, unit });
        }
        let rows = member.pages_per_extent.saturating_sub(unit) / chunk_pages;
        if rows == 0 {
            return Err(VolumeError::ExtentTooSmall { pages: member.pages_per_extent });
        }
        let stripes = Self { layout, members: members as u32, member, chunk_pages, rows };
        let of_extent = u64::from(rows) * u64::from(chunk_pages) * u64::from(stripes.columns());
        let pages = of_extent * u64::from(member.extents);
        if u32::try_from(pages).is_err() {
            return Err(VolumeError::TooManyPages { pages });
        }
        Ok(stripes)
    }

    /// How pages are distributed over the members.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Number of members of the volume.
    pub fn members(&self) -> usize {
        self.members as usize
    }

    /// The shape of each member.
    pub fn member_shape(&self) -> Shape {
        self.member
    }

    /// Pages per chunk.
    pub fn chunk_pages(&self) -> u32 {
        self.chunk_pages
    }

    /// Stripes per extent.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Data chunks per stripe.
    pub fn columns(&self) -> u32 {
        match self.layout {
            Layout::Striped { .. } => self.members,
            Layout::Parity { .. } => self.members - 1,
            Layout::Mirrored => 1,
        }
    }

    /// Number of members that may be lost without losing data.
    pub fn spares(&self) -> usize {
        match self.layout {
            Layout::Striped { .. } => 0,
            Layout::Parity { .. } => 1,
            Layout::Mirrored => self.members() - 1,
        }
    }

    /// Data pages per stripe, which are appended together.
    pub fn stripe_pages(&self) -> u32 {
        self.columns() * self.chunk_pages
    }

    /// The shape of the volume.
    pub fn shape(&self) -> Shape {
        Shape {
            pages_per_extent: self.rows * self.stripe_pages(),
            append_unit: self.stripe_pages(),
            parallelism: self.columns() * self.member.parallelism,
            ..self.member
        }
    }

    /// Returns the position of a page.
    pub fn spot(&self, page: PageNo) -> Spot {
        let (per, stripe) = (self.rows * self.stripe_pages(), self.stripe_pages());
        let place = page.0 % per;
        Spot {
            extent: ExtentId(page.0 / per),
            row: place / stripe,
            column: place % stripe / self.chunk_pages,
            offset: place % self.chunk_pages,
        }
    }

    /// Returns the member that has the page; in a mirrored volume, the member that is read first.
    pub fn home(&self, spot: Spot) -> usize {
        let turn = (spot.extent.0 % self.members + spot.row % self.members) % self.members;
        let member = match self.layout {
            Layout::Striped { .. } => spot.column,
            Layout::Parity { .. } => self.parity_at(turn) + 1 + spot.column,
            Layout::Mirrored => turn,
        };
        (member % self.members) as usize
    }

    /// Returns the member that has the parity of a stripe; `None` without parity.
    pub fn parity_member(&self, extent: ExtentId, row: u32) -> Option<usize> {
        let turn = (extent.0 % self.members + row % self.members) % self.members;
        matches!(self.layout, Layout::Parity { .. }).then(|| self.parity_at(turn) as usize)
    }

    fn parity_at(&self, turn: u32) -> u32 {
        self.members - 1 - turn
    }

    /// Returns the page number, on its member, of the page at `offset` of a chunk of the stripe.
    /// The number is the same on all members.
    pub fn place(&self, extent: ExtentId, row: u32, offset: u32) -> PageNo {
        let index = self.member.append_unit + row * self.chunk_pages + offset;
        self.member.page(extent, index)
    }

    /// Returns the page number of a member's header.
    pub fn header_place(&self, extent: ExtentId) -> PageNo {
        self.member.page(extent, 0)
    }

    /// Returns the offset, in pages of a member's extent, of the end of the first `rows` stripes.
    pub fn end_of_rows(&self, rows: u32) -> u32 {
        self.member.append_unit + rows * self.chunk_pages
    }

    /// Returns the number of stripes that a member has completely if its extent is written up to
    /// `frontier` (pages).
    pub fn rows_whole(&self, frontier: u32) -> u32 {
        (frontier.saturating_sub(self.member.append_unit) / self.chunk_pages).min(self.rows)
    }

    /// Returns the number of stripes that a member has at least partly if its extent is written up
    /// to `frontier` (pages).
    pub fn rows_begun(&self, frontier: u32) -> u32 {
        let behind_header = frontier.saturating_sub(self.member.append_unit);
        behind_header.div_ceil(self.chunk_pages).min(self.rows)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn shape(unit: u32, pages_per_extent: u32) -> Shape {
        Shape {
            payload_bytes: 1024,
            page_bytes: 1024,
            pages_per_extent,
            extents: 7,
            grows_to: 0,
            append_unit: unit,
            parallelism: 2,
        }
    }

    #[test]
    fn parity_rotates() {
        let stripes = Stripes::new(Layout::Parity { chunk_pages: 2 }, 3, shape(1, 8)).unwrap();
        assert_eq!((stripes.rows(), stripes.shape().pages_per_extent), (3, 12));
        let by_row = |extent: u32| {
            (0..3).map(move |row| stripes.parity_member(ExtentId(extent), row).unwrap())
        };
        assert!(by_row(0).eq([2, 1, 0]) && by_row(1).eq([1, 0, 2]));
        let homes = (0..12).map(|page| stripes.home(stripes.spot(PageNo(page))));
        assert!(homes.eq([0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2]));
        assert_eq!(stripes.place(ExtentId(1), 2, 1), PageNo(8 + 1 + 4 + 1));
        assert_eq!([0, 1, 2, 3, 4, 8].map(|f| stripes.rows_begun(f)), [0, 0, 1, 1, 2, 3]);
        assert_eq!([0, 1, 2, 3, 4, 8].map(|f| stripes.rows_whole(f)), [0, 0, 0, 1, 1, 3]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let new = |layout, members| Stripes::new(layout, members, shape(2, 8)).is_ok();
        assert!(!new(Layout::Parity { chunk_pages: 2 }, 2) && !new(Layout::Mirrored, 1));
        assert!(!new(Layout::Striped { chunk_pages: 3 }, 2));
        assert!(!new(Layout::Striped { chunk_pages: 0 }, 2));
        assert!(!new(Layout::Striped { chunk_pages: 8 }, 2), "the header needs a unit");
        assert!(new(Layout::Striped { chunk_pages: 6 }, 1) && !new(Layout::Mirrored, 65));
    }

    fn any_stripes() -> impl Strategy<Value = Stripes> {
        (0..3_u32, 3..9_usize, 1..4_u32, 1..4_u32, 1..40_u32, 0..3_u32).prop_map(
            |(kind, members, unit, chunk, rows, left_over)| {
                let chunk_pages = unit * chunk;
                let layout = match kind {
                    0 => Layout::Striped { chunk_pages },
                    1 => Layout::Parity { chunk_pages },
                    _ => Layout::Mirrored,
                };
                let pages = unit + rows * chunk_pages + left_over.min(unit - 1);
                Stripes::new(layout, members, shape(unit, pages)).expect("it fits")
            },
        )
    }

    proptest! {
        #[test]
        fn no_two_pages_share_a_place(stripes in any_stripes()) {
            let shape = stripes.shape();
            let mut taken = BTreeSet::new();
            for page in (0..shape.extents * shape.pages_per_extent).map(PageNo) {
                let spot = stripes.spot(page);
                prop_assert_eq!(spot.extent, shape.extent_of(page));
                let place = stripes.place(spot.extent, spot.row, spot.offset);
                prop_assert_eq!(stripes.member_shape().extent_of(place), spot.extent);
                prop_assert!(place != stripes.header_place(spot.extent));
                prop_assert!(taken.insert((stripes.home(spot), place)));
            }
            for extent in (0..shape.extents).map(ExtentId) {
                for row in 0..stripes.rows() {
                    if let Some(member) = stripes.parity_member(extent, row) {
                        prop_assert!(taken.insert((member, stripes.place(extent, row, 0))));
                    }
                }
            }
        }

        #[test]
        fn chunks_of_a_stripe_lie_apart(stripes in any_stripes(), extent in 0..7_u32) {
            let extent = ExtentId(extent);
            for row in 0..stripes.rows() {
                let columns = (0..stripes.columns())
                    .map(|column| stripes.home(Spot { extent, row, column, offset: 0 }));
                let parity = stripes.parity_member(extent, row);
                let all: BTreeSet<_> = columns.chain(parity).collect();
                let parities = usize::from(parity.is_some());
                prop_assert_eq!(all.len(), stripes.columns() as usize + parities);
            }
        }

        #[test]
        fn parity_is_spread_evenly(members in 3..9_usize, rounds in 1..6_u32, extent in 0..7_u32) {
            let layout = Layout::Parity { chunk_pages: 1 };
            let rows = rounds * members as u32;
            let stripes = Stripes::new(layout, members, shape(1, 1 + rows)).expect("it fits");
            let mut counts = vec![0; members];
            for row in 0..rows {
                counts[stripes.parity_member(ExtentId(extent), row).expect("it has parity")] += 1;
            }
            prop_assert!(counts.iter().all(|count| *count == rounds));
        }
    }
}
