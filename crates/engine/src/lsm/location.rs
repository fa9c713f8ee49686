//! Where segments are: in memory, in a page of the medium, or in a group of pages.

use pages::medium::PageNo;
use runtime::PageImage;

/// Where a meta segment is.
#[derive(Clone, Debug)]
pub(crate) enum Location {
    /// In memory only; a power cut dumps it.
    Pinned(PageImage),
    /// In a page of the medium.
    Stored(PageNo),
    /// In a page of the medium, and in memory: pinned where memory does not survive.
    Cached(PageNo, PageImage),
    /// In a group of pages, which the list has as one segment.
    Group(Group),
}

/// Pages of the medium that follow one another: an index, and segments behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Group {
    /// The index.
    pub first: PageNo,
    /// Segments, one page each.
    pub segments: u16,
}

impl Group {
    /// The page of the segment at `place`.
    pub(crate) fn page(self, place: u16) -> PageNo {
        assert!(place < self.segments, "segment {place} of a group that has {}", self.segments);
        PageNo(self.first.0 + 1 + u32::from(place))
    }
}

/// A page of the medium that a search goes through.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct IndexPage {
    pub page: PageNo,
    pub kind: IndexKind,
}

/// What such a page holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum IndexKind {
    Segment,
    /// The index of a group of so many segments.
    Group(u16),
}

impl IndexPage {
    pub(crate) fn segment(page: PageNo) -> Self {
        Self { page, kind: IndexKind::Segment }
    }
}

impl Location {
    /// Pages of the medium that hold it: none, one, or those of a group.
    pub(crate) fn pages(&self) -> impl Iterator<Item = PageNo> + use<> {
        let (first, count) = match self {
            Self::Pinned(_) => (0, 0),
            Self::Stored(page) | Self::Cached(page, _) => (page.0, 1),
            Self::Group(group) => (group.first.0, 1 + u32::from(group.segments)),
        };
        (first..first + count).map(PageNo)
    }

    /// Segments in it: more than one in a group only.
    pub(crate) fn segments(&self) -> u32 {
        if let Self::Group(group) = self { u32::from(group.segments) } else { 1 }
    }

    /// The page to read first, if it has to be read.
    pub(crate) fn to_read(&self) -> Option<IndexPage> {
        match self {
            Self::Pinned(_) | Self::Cached(..) => None,
            Self::Stored(page) => Some(IndexPage::segment(*page)),
            Self::Group(Group { first, segments }) => {
                Some(IndexPage { page: *first, kind: IndexKind::Group(*segments) })
            }
        }
    }

    /// The segment, if it is in memory.
    pub(crate) fn image(&self) -> Option<&PageImage> {
        match self {
            Self::Pinned(image) | Self::Cached(_, image) => Some(image),
            Self::Stored(_) | Self::Group(_) => None,
        }
    }
}
