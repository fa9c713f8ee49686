//! The space that copying the segments and groups of an extent takes, and the batches they are
//! written in.

use crate::medium::Shape;
use crate::version::location::Location;

/// The size of a batch is at least this multiple of the pages that may be left empty for it.
const MOST_LEFT_EMPTY: u32 = 8;

/// Segments and groups that are written by one operation.
#[derive(Default)]
pub(crate) struct Batch {
    pub locations: Vec<Location>,
    pages: u32,
    /// Pages of the largest segment or group.
    largest: u32,
}

impl Batch {
    fn push(&mut self, location: Location) {
        let pages = location.pages().count() as u32;
        self.pages += pages;
        self.largest = self.largest.max(pages);
        self.locations.push(location);
    }

    pub(crate) fn has_groups(&self) -> bool {
        self.largest > 1
    }
}

/// The parameters of copying segments and groups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copying {
    append_unit: u32,
    /// Pages of a batch in whole units; a batch may be somewhat larger.
    batch_pages: u32,
    /// Maximum number of pages left empty for a batch.
    pub left_empty: u32,
}

impl Copying {
    /// Returns the parameters for groups of at most `largest_group` pages, with about `batch_pages`
    /// pages in flight.
    pub(crate) fn new(largest_group: u32, batch_pages: u32, append_unit: u32) -> Self {
        // Single segments fill whole units, regardless of the number of batches.
        let left_empty = if largest_group > 1 { largest_group - 1 + append_unit - 1 } else { 0 };
        let batch_pages = batch_pages.max(MOST_LEFT_EMPTY * left_empty);
        Self { append_unit, batch_pages: batch_pages.next_multiple_of(append_unit), left_empty }
    }

    /// Splits `locations` into batches.
    pub(crate) fn batches(&self, locations: Vec<Location>) -> Vec<Batch> {
        let mut batches: Vec<Batch> = Vec::new();
        for location in locations {
            if batches.last().is_none_or(|batch| batch.pages >= self.batch_pages) {
                batches.push(Batch::default());
            }
            batches.last_mut().expect("there is one").push(location);
        }
        batches
    }

    /// Returns the maximum number of pages that writing a batch takes: the end of one extent may be
    /// left empty because a group does not fit there, and the last unit is padded.
    pub(crate) fn most_pages_of(&self, batch: &Batch) -> u32 {
        (batch.pages + batch.largest.saturating_sub(1)).next_multiple_of(self.append_unit)
    }

    /// Returns the maximum number of pages that all batches of `pages` pages take together.
    pub(crate) fn most_pages(&self, pages: u32) -> u32 {
        let left_empty = pages.div_ceil(self.batch_pages) * self.left_empty;
        (pages + left_empty).next_multiple_of(self.append_unit)
    }
}

/// Returns the maximum number of pages of extents occupied by `pages` pages of groups, the largest
/// of `largest` pages. Extents with so much in use that a copy would not save space are not
/// collected.
pub(crate) fn in_extents(pages: u32, largest: u32, shape: &Shape) -> u32 {
    let unit = shape.append_unit;
    let left_empty = Copying::new(largest, 0, unit).left_empty;
    let usable = shape.pages_per_extent.saturating_sub(left_empty + unit).max(unit);
    let in_extents = u64::from(pages) * u64::from(shape.pages_per_extent) / u64::from(usable);
    in_extents.min(u64::from(shape.extents * shape.pages_per_extent)) as u32
}

#[cfg(test)]
mod tests {
    use crate::medium::PageNo;
    use proptest::prelude::*;

    use super::*;
    use crate::version::location::Group;

    /// Returns the pages that a writer of whole groups takes, including those left empty, if `room`
    /// pages of the open extent are free.
    fn taken(batch: &Batch, room: u32, shape: &Shape) -> u32 {
        let (mut left, mut taken) = (room, 0);
        for location in &batch.locations {
            let pages = location.pages().count() as u32;
            if pages > left {
                taken += left;
                left = shape.pages_per_extent;
            }
            taken += pages;
            left -= pages;
        }
        taken + left % shape.append_unit
    }

    proptest! {
        #[test]
        fn what_was_reckoned_is_enough(
            lengths in prop::collection::vec(0..32_u16, 1..300),
            unit in prop::sample::select(vec![1, 2, 3, 6, 48]),
            units in 4..600_u32,
            parallelism in 1..64_u32,
            room in 0..600_u32,
            most in 0..32_u16,
        ) {
            let shape = Shape {
                payload_bytes: 4096,
                page_bytes: 4096,
                pages_per_extent: unit * units,
                extents: 9,
                grows_to: 0,
                append_unit: unit,
                parallelism,
            };
            let longest = (shape.pages_per_extent / 8).min(u32::from(most)) as u16;
            let mut end = 0;
            let mut locations = Vec::new();
            for length in lengths {
                let first = PageNo(end);
                let location = match length.min(longest.saturating_sub(1)) {
                    0 => Location::Stored(first),
                    segments => Location::Group(Group { first, segments }),
                };
                end += location.pages().count() as u32;
                if end > shape.pages_per_extent {
                    break;
                }
                locations.push(location);
            }
            let pages = locations.iter().flat_map(Location::pages).count() as u32;
            let largest = locations.iter().map(|at| at.pages().count()).max().unwrap_or(0) as u32;
            let copying = Copying::new(largest, 4 * parallelism, unit);
            let batches = copying.batches(locations);
            let all: u32 = batches.iter().map(|batch| copying.most_pages_of(batch)).sum();
            prop_assert!(all <= copying.most_pages(pages));
            let room = room % units * unit;
            for batch in &batches {
                prop_assert!(taken(batch, room, &shape) <= copying.most_pages_of(batch));
            }
        }
    }
}
