//! Locations of segments: in memory, in a page of the medium, or in several pages that the list
//! contains as one entry: a group or a columnar table.

use std::ops::Range;
use std::rc::Rc;

use runtime::PageImage;

use crate::format::columns::ColumnPages;
use crate::medium::PageNo;

/// The location of a meta segment.
#[derive(Clone, Debug)]
pub(crate) enum Location {
    /// In memory only; dumped at a power cut.
    Pinned(PageImage),
    /// In a page of the medium.
    Stored(PageNo),
    /// In a page of the medium and in memory: the form of pinned segments if memory does not
    /// survive a power cut.
    Cached(PageNo, PageImage),
    /// In a group of pages, which is one entry of the list.
    Group(Group),
    /// In a columnar table, which is one entry of the list.
    Columns(Columns),
}

/// Adjacent pages of the medium: an index, followed by segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Group {
    /// The page of the index.
    pub first: PageNo,
    /// The number of segments, one page each.
    pub segments: u16,
}

impl Group {
    /// Returns the page of the segment at `place`.
    pub(crate) fn page(self, place: u16) -> PageNo {
        assert!(place < self.segments, "segment {place} of a group that has {}", self.segments);
        PageNo(self.first.0 + 1 + u32::from(place))
    }
}

/// A columnar table: adjacent pages of the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Columns {
    pub first: PageNo,
    pub pages: ColumnPages,
}

/// A page of the medium that a search reads, or the first of several that it reads together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct IndexPage {
    pub page: PageNo,
    pub kind: IndexKind,
}

/// The contents of an [`IndexPage`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum IndexKind {
    Segment,
    /// The index of a group of that many segments.
    Group(u16),
    /// The first page of a table with these numbers of pages.
    Columns(ColumnPages),
}

impl IndexPage {
    pub(crate) fn segment(page: PageNo) -> Self {
        Self { page, kind: IndexKind::Segment }
    }

    /// Returns the table, if the page begins one.
    pub(crate) fn table(self) -> Option<Columns> {
        let IndexKind::Columns(pages) = self.kind else { return None };
        Some(Columns { first: self.page, pages })
    }
}

impl Columns {
    /// Returns the pages of the filter.
    pub(crate) fn filter(self) -> Range<u32> {
        self.first.0..self.first.0 + u32::from(self.pages.filter)
    }

    /// Returns the pages of keys.
    pub(crate) fn keys(self) -> Range<u32> {
        let first = self.filter().end;
        first..first + u32::from(self.pages.keys)
    }

    /// Returns the pages of addresses.
    pub(crate) fn addresses(self) -> Range<u32> {
        let first = self.keys().end;
        first..first + u32::from(self.pages.addresses)
    }

    /// Returns the pages of keys and addresses.
    pub(crate) fn behind_filter(self) -> Range<u32> {
        self.keys().start..self.addresses().end
    }
}

/// The part of the index that a search has read.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    Page(PageImage),
    /// All segments of a table.
    Table(Rc<[PageImage]>),
}

impl Location {
    /// Returns the pages of the medium that hold it: none, one, or those of a group or table.
    pub(crate) fn pages(&self) -> impl Iterator<Item = PageNo> + use<> {
        let (first, count) = match self {
            Self::Pinned(_) => (0, 0),
            Self::Stored(page) | Self::Cached(page, _) => (page.0, 1),
            Self::Group(group) => (group.first.0, 1 + u32::from(group.segments)),
            Self::Columns(table) => (table.first.0, table.pages.all()),
        };
        (first..first + count).map(PageNo)
    }

    /// Returns the number of segments: more than one only in a group. The number of segments of a
    /// table is known only after it is read.
    pub(crate) fn segments(&self) -> u32 {
        if let Self::Group(group) = self { u32::from(group.segments) } else { 1 }
    }

    /// Returns the number of pages with entries; of a columnar table all pages, including its
    /// filter.
    pub(crate) fn pages_with_entries(&self) -> u32 {
        if let Self::Columns(table) = self { table.pages.all() } else { self.segments() }
    }

    /// Returns the page to read first, if the segment is not in memory.
    pub(crate) fn to_read(&self) -> Option<IndexPage> {
        match self {
            Self::Pinned(_) | Self::Cached(..) => None,
            Self::Stored(page) => Some(IndexPage::segment(*page)),
            Self::Group(Group { first, segments }) => {
                Some(IndexPage { page: *first, kind: IndexKind::Group(*segments) })
            }
            Self::Columns(Columns { first, pages }) => {
                Some(IndexPage { page: *first, kind: IndexKind::Columns(*pages) })
            }
        }
    }

    /// Returns the segment, if it is in memory.
    pub(crate) fn image(&self) -> Option<&PageImage> {
        match self {
            Self::Pinned(image) | Self::Cached(_, image) => Some(image),
            Self::Stored(_) | Self::Group(_) | Self::Columns(_) => None,
        }
    }
}
