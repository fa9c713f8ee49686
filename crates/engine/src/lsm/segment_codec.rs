//! Entries of level lists as bytes: in dumps, checkpoints and edits.

use std::rc::Rc;

use runtime::PageImage;

use crate::format::codec::{Reader, Writer};
use crate::lsm::filter::Filter;
use crate::lsm::level::{Location, NamedSegment, Segment};
use crate::lsm::pool::Pool;
use crate::store::medium::PageNo;

/// A segment as a list has it. One that is in memory besides is read again when it is needed.
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
    }
}

pub(crate) fn read_segment(input: &mut Reader<'_>, pool: &Rc<Pool>) -> Option<NamedSegment> {
    let first_key = input.string()?.into();
    let entries = input.u32()? as u16;
    let (location, filter) = match input.u8()? {
        0 => (Location::Stored(PageNo(input.u32()?)), Filter::from_bytes(input.string()?)),
        1 => (Location::Pinned(PageImage::new(input.string()?)), None),
        _ => return None,
    };
    Some(NamedSegment { first_key, segment: Segment::new(location, entries, pool), filter })
}
