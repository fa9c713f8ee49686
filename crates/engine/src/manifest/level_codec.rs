//! The encoding of level list entries in dumps, checkpoints and edits.

use std::rc::Rc;

use runtime::PageImage;

use crate::format::codec::{Reader, Writer};
use crate::format::columns::ColumnPages;
use crate::format::inlining::Inlining;
use crate::format::meta_segment::MetaSegment;
use crate::format::object::MAX_KEY_BYTES;
use crate::format::pointer::PointerFormat;
use crate::medium::{PageNo, Shape};
use crate::read::filter::Filter;
use crate::version::level::{NamedSegment, Segment};
use crate::version::location::{Columns, Group, Location};
use crate::version::pool::Pool;

/// Bytes of a segment besides its first key and its filter, unless it is in memory only.
pub(crate) const SEGMENT_BYTES: u64 = 4 + 4 + 1 + 4 + 4;

/// Encodes a list entry. A segment that is on the medium and in memory is encoded as on the medium
/// only.
pub(crate) fn write_segment(
    out: &mut Writer,
    first_key: &[u8],
    segment: &Segment,
    filter: Option<&Filter>,
) {
    out.string(first_key);
    out.u32(u32::from(segment.entries));
    match &segment.location {
        Location::Stored(page) | Location::Cached(page, _) => {
            out.u8(0);
            out.u32(page.0);
            out.string(filter.map_or(&[], Filter::bytes));
        }
        Location::Pinned(image) => {
            out.u8(1);
            out.string(image.bytes());
        }
        Location::Group(group) => {
            out.u8(2);
            out.u32(group.first.0);
            out.u32(u32::from(group.segments));
        }
        Location::Columns(table) => {
            out.u8(3);
            out.u32(table.first.0);
            out.u32(table.pages.to_number());
        }
    }
}

/// The store to which decoded segments belong.
pub(crate) struct Home<'a> {
    pub shape: Shape,
    pub format: PointerFormat,
    pub inlining: Inlining,
    /// Whether levels are made of tables.
    pub is_leveled: bool,
    pub pool: &'a Rc<Pool>,
}

impl Home<'_> {
    /// Decodes the next segment; `None` if it is invalid or its location is impossible.
    pub(crate) fn read_segment(&self, input: &mut Reader<'_>) -> Option<NamedSegment> {
        let first_key = input.string().filter(|key| (1..=MAX_KEY_BYTES).contains(&key.len()))?;
        let entries = u16::try_from(input.u32()?).ok()?;
        let (location, filter) = match input.u8()? {
            0 => {
                let page = PageNo(input.u32()?);
                (self.shape.extent_of(page).0 < self.shape.extents).then_some(())?;
                (Location::Stored(page), Filter::from_bytes(input.string()?))
            }
            1 => {
                let image = PageImage::new(input.string()?);
                self.is_listed(&image, first_key, entries).then_some(())?;
                (Location::Pinned(image), None)
            }
            2 => {
                let (first, segments) = (PageNo(input.u32()?), u16::try_from(input.u32()?).ok()?);
                let group = Group { first, segments };
                (segments > 0).then_some(())?;
                self.is_in_an_extent(first, 1 + u32::from(segments)).then_some(())?;
                (Location::Group(group), None)
            }
            3 => {
                let (first, pages) = (PageNo(input.u32()?), ColumnPages::of_number(input.u32()?)?);
                self.is_in_an_extent(first, pages.all()).then_some(())?;
                (Location::Columns(Columns { first, pages }), None)
            }
            _ => return None,
        };
        let segment = Segment::new(location, entries, self.pool);
        Some(NamedSegment { first_key: first_key.into(), segment, filter })
    }

    /// Whether `pages` pages from `first` on are in one extent.
    fn is_in_an_extent(&self, first: PageNo, pages: u32) -> bool {
        let last = first.0.checked_add(pages - 1).map(PageNo);
        let extent = self.shape.extent_of(first);
        extent.0 < self.shape.extents
            && last.is_some_and(|last| self.shape.extent_of(last) == extent)
    }

    fn is_listed(&self, image: &PageImage, first_key: &[u8], entries: u16) -> bool {
        let is_sound = MetaSegment::is_sound(image.bytes(), self.format, &self.inlining);
        let segment = MetaSegment::new(image.bytes(), self.format).filter(|_| is_sound);
        segment.is_some_and(|segment| segment.is_listed(entries, first_key, None))
    }
}
