//! Groups: segments of the last level that are adjacent in an extent and follow a page with their
//! index. The level list has one entry for a whole group, so that a short list in memory is enough
//! for many short pairs; a Get pays one read of the group's index (docs/decisions/0031).

use runtime::IoClass;

use super::sliced::merge::BuiltSegment;
use crate::engine::Inner;
use crate::error::EngineError;
use crate::format::group_index;
use crate::format::group_index::entry_bytes;
use crate::gc::copying::in_extents;
use crate::medium::{Medium, PageNo, Shape};
use crate::options::Options;
use crate::space::handing_out::Group as PagesTogether;
use crate::space::promise::Promise;
use crate::version::level::{NamedSegment, Segment};
use crate::version::location::{Group, Location};

/// A group takes at most this fraction (1/8) of an extent: the end of an extent that is too short
/// for a group stays empty.
pub(crate) const LARGEST_PART: u32 = 8;

/// Pages of the smallest group: an index and two segments.
const LEAST_PAGES: u32 = 3;

/// The size of the groups of a level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupForm {
    /// Maximum number of segments of a group.
    segments: usize,
    payload_bytes: u32,
    append_unit: u32,
}

impl GroupForm {
    /// Returns the form of a design's groups on that medium; `None` if it has no groups.
    pub(crate) fn new(options: &Options, shape: &Shape) -> Option<Self> {
        let pages = options.group_pages.min(shape.pages_per_extent / LARGEST_PART);
        let Shape { payload_bytes, append_unit, .. } = *shape;
        let segments = pages.saturating_sub(1) as usize;
        (pages >= LEAST_PAGES).then_some(Self { segments, payload_bytes, append_unit })
    }

    /// Returns the number of segments that fit in a group in any case: an index has room for them
    /// with the longest keys, and their entries can be counted.
    fn least_full(&self) -> usize {
        let room = group_index::room(self.payload_bytes);
        let of_keys = room / entry_bytes(&[0; crate::format::object::MAX_KEY_BYTES]);
        // An entry takes at least a pointer, an offset and a byte of key.
        let of_entries = usize::from(u16::MAX) / (self.payload_bytes as usize / 6).max(1);
        self.segments.min(of_keys).min(of_entries).max(1)
    }

    /// Returns the maximum number of pages that `segments` segments take in groups, including
    /// indexes and the pages that each group may leave empty at the end of an extent and of an
    /// append unit.
    pub(crate) fn most_pages(&self, segments: u32) -> u32 {
        let of = |each: usize| segments.div_ceil(each as u32);
        let least = self.least_full();
        let cut_short = if least < self.segments { of(least) } else { 0 };
        let groups = of(self.segments) + cut_short;
        segments + groups * besides_segments(self.segments as u32, self.append_unit)
    }

    /// Returns the maximum number of pages by which a level of groups grows if `segments` segments
    /// are added, including indexes and the empty ends of extents.
    pub(crate) fn grown_by(&self, segments: u32) -> u32 {
        let pages = segments + segments.div_ceil(self.least_full() as u32);
        pages + pages.div_ceil(LARGEST_PART - 1)
    }

    /// Returns the maximum number of pages of extents occupied by `pages` pages of groups. Extents
    /// with so much in use that a copy would not save space are not collected.
    pub(crate) fn in_extents(&self, pages: u32, shape: &Shape) -> u32 {
        in_extents(pages, self.largest(), shape)
    }

    /// Returns the number of pages of the largest group.
    pub(crate) fn largest(&self) -> u32 {
        1 + self.segments as u32
    }

    /// Distributes segments over groups of about equal size.
    pub(crate) fn share(&self, segments: Vec<BuiltSegment>) -> Vec<Vec<BuiltSegment>> {
        let groups = segments.len().div_ceil(self.segments).max(1);
        let share = segments.len().div_ceil(groups);
        let room = group_index::room(self.payload_bytes);
        let mut all: Vec<Vec<BuiltSegment>> = Vec::with_capacity(groups);
        let (mut bytes, mut entries) = (0, 0_u32);
        for segment in segments {
            bytes += entry_bytes(&segment.first_key);
            entries += u32::from(segment.entries);
            let fits = |group: &&mut Vec<BuiltSegment>| {
                group.len() < share && bytes <= room && u16::try_from(entries).is_ok()
            };
            if let Some(group) = all.last_mut().filter(fits) {
                group.push(segment);
            } else {
                (bytes, entries) = (entry_bytes(&segment.first_key), u32::from(segment.entries));
                all.push(vec![segment]);
            }
        }
        all
    }
}

/// Returns the pages that a group takes besides its segments: its index, and the pages it may leave
/// empty.
fn besides_segments(segments: u32, append_unit: u32) -> u32 {
    1 + segments + append_unit
}

/// Returns the pages of a group in order. A single segment has no index.
pub(crate) fn pages_of(group: &mut [BuiltSegment]) -> PagesTogether {
    let index = (group.len() > 1).then(|| {
        group_index::build(group.iter().map(|segment| (&segment.first_key[..], segment.entries)))
    });
    let segments = group.iter_mut().map(|segment| std::mem::take(&mut segment.bytes));
    index.into_iter().chain(segments).collect()
}

/// Returns the location of `segments` segments whose pages begin at `first`.
pub(crate) fn location_of(first: PageNo, segments: usize) -> Location {
    match segments {
        1 => Location::Stored(first),
        _ => Location::Group(Group { first, segments: segments as u16 }),
    }
}

impl<M: Medium> Inner<M> {
    /// Writes merged segments in groups and returns the level entries for them.
    pub(crate) async fn place_in_groups(
        &self,
        mut groups: Vec<Vec<BuiltSegment>>,
        promise: Promise<'_>,
        class: IoClass,
        urgency: impl Fn() -> f64,
    ) -> Result<Vec<NamedSegment>, EngineError> {
        let together = groups.iter_mut().map(|group| pages_of(group)).collect();
        let firsts = self.store.write_groups(together, promise, class, urgency).await?;
        let is_group = |group: &&Vec<BuiltSegment>| group.len() > 1;
        self.stats.borrow_mut().groups_written += groups.iter().filter(is_group).count() as u64;
        let named = groups.into_iter().zip(firsts).map(|(group, first)| {
            let entries = group.iter().map(|segment| segment.entries).sum();
            let location = location_of(first, group.len());
            let first_key = group.into_iter().next().expect("a group has segments").first_key;
            let segment = Segment::new(location, entries, &self.pool);
            NamedSegment { first_key, segment, filter: None }
        });
        Ok(named.collect())
    }

    /// Returns the form of the groups that merges into `level` write, if they write groups.
    pub(crate) fn groups_of(&self, level: usize) -> Option<GroupForm> {
        let is_last = level + 1 == self.options.levels as usize;
        let has_groups = is_last && self.writes_groups.get() && !self.is_pinned(level);
        self.groups.filter(|_| has_groups)
    }

    /// Returns the maximum number of pages that `segments` of `level` take on the medium.
    pub(crate) fn most_pages_for(&self, level: usize, segments: u32) -> u32 {
        self.groups_of(level).map_or(segments, |groups| groups.most_pages(segments))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FORM: GroupForm = GroupForm { segments: 31, payload_bytes: 8192, append_unit: 2 };

    fn segments(keys: &[usize]) -> Vec<BuiltSegment> {
        let segment = |(n, len): (usize, &usize)| BuiltSegment {
            first_key: [&(n as u32).to_be_bytes()[..], &vec![b'k'; *len]].concat().into(),
            bytes: vec![n as u8],
            entries: 300,
        };
        keys.iter().enumerate().map(segment).collect()
    }

    proptest! {
        #[test]
        fn groups_have_all_segments_in_order_and_take_no_more_than_was_said(
            keys in prop::collection::vec(0..=251_usize, 1..200),
            (most, payload_bytes) in
                prop_oneof![Just((31, 8192_u32)), Just((255, 1024)), Just((2, 4096))],
        ) {
            let form = GroupForm { segments: most, payload_bytes, ..FORM };
            let groups = form.share(segments(&keys));
            let numbers = groups.iter().flatten().map(|segment| segment.bytes[0]);
            prop_assert!(numbers.eq((0..keys.len()).map(|n| n as u8)));
            let mut pages = 0;
            for mut group in groups {
                let (first, len) = (group[0].first_key.clone(), group.len());
                let together = pages_of(&mut group);
                pages += together.len() as u32 + form.largest() - 1 + form.append_unit - 1;
                prop_assert!(together.iter().all(|page| page.len() <= payload_bytes as usize));
                if len > 1 {
                    prop_assert!(group_index::GroupIndex::is_sound(&together[0], len as u16));
                    let index = group_index::GroupIndex::new(&together[0]).unwrap();
                    prop_assert_eq!(index.first_key(0), &first[..]);
                }
            }
            prop_assert!(pages <= form.most_pages(keys.len() as u32));
        }
    }

    #[test]
    fn shares_are_even() {
        let lengths: Vec<usize> = FORM.share(segments(&[12; 33])).iter().map(Vec::len).collect();
        assert_eq!(lengths, [17, 16]);
    }
}
