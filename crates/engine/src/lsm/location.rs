//! Where segments are: in memory, in a page of the medium, or in several that the list has as one: a group, or a table in columns.

use std::ops::Range;
use std::rc::Rc;

use pages::medium::PageNo;
use runtime::PageImage;

use crate::format::columns::ColumnPages;

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
    /// In a table in columns, which the list has as one segment.
    Columns(Columns),
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

/// A table in columns: pages of the medium that follow one another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Columns {
    pub first: PageNo,
    pub pages: ColumnPages,
}

/// A page of the medium that a search goes through, or several that it reads together.
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
    /// The first of so many pages of a table.
    Columns(ColumnPages),
}

impl IndexPage {
    pub(crate) fn segment(page: PageNo) -> Self {
        Self { page, kind: IndexKind::Segment }
    }

    /// The table, if it is one.
    pub(crate) fn table(self) -> Option<Columns> {
        let IndexKind::Columns(pages) = self.kind else { return None };
        Some(Columns { first: self.page, pages })
    }
}

impl Columns {
    /// Pages of the filter.
    pub(crate) fn filter(self) -> Range<u32> {
        self.first.0..self.first.0 + u32::from(self.pages.filter)
    }

    /// Pages of keys.
    pub(crate) fn keys(self) -> Range<u32> {
        let first = self.filter().end;
        first..first + u32::from(self.pages.keys)
    }

    /// Pages of addresses.
    pub(crate) fn addresses(self) -> Range<u32> {
        let first = self.keys().end;
        first..first + u32::from(self.pages.addresses)
    }

    /// Pages of keys and addresses.
    pub(crate) fn behind_filter(self) -> Range<u32> {
        self.keys().start..self.addresses().end
    }
}

/// What was read of the index where a search goes through it.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    Page(PageImage),
    /// All segments of a table.
    Table(Rc<[PageImage]>),
}

impl Location {
    /// Pages of the medium that hold it: none, one, or those of a group or a table.
    pub(crate) fn pages(&self) -> impl Iterator<Item = PageNo> + use<> {
        let (first, count) = match self {
            Self::Pinned(_) => (0, 0),
            Self::Stored(page) | Self::Cached(page, _) => (page.0, 1),
            Self::Group(group) => (group.first.0, 1 + u32::from(group.segments)),
            Self::Columns(table) => (table.first.0, table.pages.all()),
        };
        (first..first + count).map(PageNo)
    }

    /// Segments in it: more than one in a group only. How many a table makes shows when it is read.
    pub(crate) fn segments(&self) -> u32 {
        if let Self::Group(group) = self { u32::from(group.segments) } else { 1 }
    }

    /// Pages with entries, and those of filters beside them.
    pub(crate) fn pages_with_entries(&self) -> u32 {
        if let Self::Columns(table) = self { table.pages.all() } else { self.segments() }
    }

    /// The page to read first, if it has to be read.
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

    /// The segment, if it is in memory.
    pub(crate) fn image(&self) -> Option<&PageImage> {
        match self {
            Self::Pinned(image) | Self::Cached(_, image) => Some(image),
            Self::Stored(_) | Self::Group(_) | Self::Columns(_) => None,
        }
    }
}
