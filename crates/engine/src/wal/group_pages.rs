//! Groups: pages of a journal that are valid together or not at all.
//! ```text
//! header (28..32: epoch)
//! number of the group, u64 | index of the page in the group, u32 | pages of the group, u32
//! CRC-32C of the whole contents of the group, u32 | this page's part of the contents
//! ```
//! Groups of a journal are numbered without gaps, from the first needed one on. They are written
//! one after the other, so only the last one can be torn. A missing page before other pages is
//! damage.
//!
//! A recovery that found no page of a torn checkpoint may write another checkpoint of the same
//! epoch; power cuts may leave parts of both. The checksum of the contents distinguishes them.
//!
//! A group with synthetic values has as many pages as with the values in full; the stored bytes are
//! in the first ones.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use runtime::PageImage;

use crate::format::page;
use crate::format::page::{HEADER_BYTES, Page, PageKind, u32_at, u64_at};

/// Bytes of group number, page index, page count and checksum.
const PREFIX_BYTES: usize = 20;

/// A WAL group with this many pages accepts no more writes. A single write has far fewer.
pub(crate) const LONG_GROUP: u32 = 1 << 15;

/// The identity of a group. For a manifest the epoch counts checkpoints; for a WAL it is the run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct GroupId {
    pub epoch: u32,
    pub number: u64,
}

/// Returns the bytes of a group's contents per page.
pub(crate) fn room(payload_bytes: u32) -> usize {
    payload_bytes as usize - HEADER_BYTES - PREFIX_BYTES
}

/// Returns the pages of a group with this many bytes.
pub(crate) fn pages_of(bytes: u64, payload_bytes: u32) -> u32 {
    bytes.div_ceil(room(payload_bytes) as u64).max(1) as u32
}

/// Encodes a group as unsealed pages. `stored` is its contents; it has as many pages as
/// `full_bytes` need.
pub(crate) fn encode(
    kind: PageKind,
    id: GroupId,
    stored: &[u8],
    full_bytes: u64,
    payload_bytes: u32,
) -> Vec<Vec<u8>> {
    let pages = pages_of(full_bytes.max(stored.len() as u64), payload_bytes);
    let checksum = crc32c::crc32c(stored);
    let mut parts = stored.chunks(room(payload_bytes));
    let page = |place: u32| {
        let part = parts.next().unwrap_or_default();
        let mut bytes = page::start(kind, 0, 0, id.epoch, PREFIX_BYTES + part.len());
        bytes.extend_from_slice(&id.number.to_le_bytes());
        bytes.extend_from_slice(&place.to_le_bytes());
        bytes.extend_from_slice(&pages.to_le_bytes());
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes.extend_from_slice(part);
        bytes
    };
    (0..pages).map(page).collect()
}

/// A page of a group.
#[derive(Clone, Debug)]
pub(crate) struct GroupPage {
    pub id: GroupId,
    place: u32,
    pages: u32,
    /// Checksum of the whole contents of the group.
    checksum: u32,
    /// The page as it was read.
    image: PageImage,
    part: PageImage,
}

impl GroupPage {
    /// Returns the index of the page in its group.
    pub(crate) fn place(&self) -> u32 {
        self.place
    }

    /// Returns the group's page count and checksum, which distinguish two groups of one number.
    pub(crate) fn content(&self) -> (u32, u32) {
        (self.pages, self.checksum)
    }

    /// Drops the contents, for callers that only need the location.
    pub(crate) fn without_part(self) -> Self {
        let nothing = PageImage::new(&[]);
        Self { image: nothing.clone(), part: nothing, ..self }
    }

    /// Returns the whole page as it was read.
    pub(crate) fn image(&self) -> &PageImage {
        &self.image
    }
}

/// Joins the contents of a group from its pages, in order. Returns `None` if pages are missing or
/// belong to another group.
pub(crate) fn joined(pages: &[GroupPage]) -> Option<Vec<u8>> {
    let first = pages.first()?;
    let is_one = |(place, page): (u32, &GroupPage)| {
        page.place == place && page.id == first.id && page.content() == first.content()
    };
    let are_all = pages.len() == first.pages as usize && (0..).zip(pages).all(is_one);
    let bytes: Vec<u8> = pages.iter().flat_map(|page| page.part.bytes().iter().copied()).collect();
    (are_all && crc32c::crc32c(&bytes) == first.checksum).then_some(bytes)
}

/// Decodes a page of a group of `kind`. Returns `None` if `image` is not one.
pub(crate) fn decode(image: &PageImage, kind: PageKind) -> Option<GroupPage> {
    let page = Page::parse(image.bytes()).filter(|page| page.kind == kind)?;
    let (prefix, part) = page.body().split_at_checked(PREFIX_BYTES)?;
    let id = GroupId { epoch: page.large, number: u64_at(prefix, 0) };
    let (place, pages, checksum) = (u32_at(prefix, 8), u32_at(prefix, 12), u32_at(prefix, 16));
    let end = page.bytes.len();
    let part = image.slice(end - part.len()..end);
    (place < pages).then(|| GroupPage { id, place, pages, checksum, image: image.clone(), part })
}

/// Pages of a group by their index.
type Pages = BTreeMap<u32, GroupPage>;

/// The pages found of all groups with one number, in the latest epoch. At most one of these groups
/// is complete; the others are torn.
#[derive(Default)]
struct Writings {
    epoch: u32,
    /// By page count and checksum.
    by_content: BTreeMap<(u32, u32), Pages>,
}

impl Writings {
    fn add(&mut self, page: GroupPage) {
        // After a recovery the number of a torn group is reused, in a later epoch.
        match page.id.epoch.cmp(&self.epoch) {
            Ordering::Less => return,
            Ordering::Greater => *self = Self { epoch: page.id.epoch, ..Self::default() },
            Ordering::Equal => {}
        }
        let content = (page.pages, page.checksum);
        self.by_content.entry(content).or_default().insert(page.place, page);
    }

    /// Returns the group that is complete or lacks the fewest pages.
    fn fullest(self) -> Pages {
        let writings = self.by_content.into_iter();
        let lacks = |((pages, _), found): &((u32, u32), Pages)| *pages as usize - found.len();
        writings.min_by_key(lacks).map(|(_, pages)| pages).unwrap_or_default()
    }
}

/// A complete group as found: its pages, in order.
#[derive(Debug)]
pub struct FoundGroup(Vec<GroupPage>);

impl FoundGroup {
    /// Returns the contents, and drops the pages. Cost: a copy.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        let parts = || self.0.iter().map(|page| page.part.bytes());
        let mut bytes = Vec::with_capacity(parts().map(<[u8]>::len).sum());
        parts().for_each(|part| bytes.extend_from_slice(part));
        bytes
    }
}

/// The groups of a journal that a power cut left.
#[derive(Debug, PartialEq)]
pub(crate) struct Groups<G = Vec<u8>> {
    /// The complete groups in order, up to the first incomplete one; by default as their contents.
    pub whole: Vec<G>,
    /// Whether groups exist after the incomplete one, so that data in between is damaged.
    pub has_gap: bool,
}

impl<G> Default for Groups<G> {
    fn default() -> Self {
        Self { whole: Vec::new(), has_gap: false }
    }
}

/// Assembles groups from their pages, given in any order, from number `first` on.
pub(crate) fn assemble(
    pages: impl IntoIterator<Item = GroupPage>,
    first: u64,
    takes_torn: bool,
) -> Groups {
    let Groups { whole, has_gap } = find(pages, first, takes_torn);
    Groups { whole: whole.into_iter().map(FoundGroup::into_bytes).collect(), has_gap }
}

/// As [`assemble`], but leaves each group in its pages, for callers that process many long groups.
pub(crate) fn find(
    pages: impl IntoIterator<Item = GroupPage>,
    first: u64,
    takes_torn: bool,
) -> Groups<FoundGroup> {
    let mut by_number: BTreeMap<u64, Writings> = BTreeMap::new();
    for page in pages.into_iter().filter(|page| page.id.number >= first) {
        by_number.entry(page.id.number).or_default().add(page);
    }
    let by_number: BTreeMap<u64, Pages> =
        by_number.into_iter().map(|(number, writings)| (number, writings.fullest())).collect();
    let last = by_number.last_key_value().map(|(last, _)| *last);
    let mut groups = Groups::default();
    for (expected, (number, pages)) in (first..).zip(by_number) {
        let of = pages.values().next().map_or(0, |page| page.pages as usize);
        let is_whole = number == expected && (pages.len() == of || takes_torn);
        if !is_whole {
            // A torn group must be the last group found and have the next number; otherwise there
            // is a gap.
            groups.has_gap = number != expected || last != Some(expected);
            break;
        }
        groups.whole.push(FoundGroup(pages.into_values().collect()));
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::page::finish;
    use proptest::prelude::*;

    const PAYLOAD: u32 = 108;

    fn pages(number: u64, bytes: &[u8], full: u64) -> Vec<GroupPage> {
        let id = GroupId { epoch: 3, number };
        let pages = encode(PageKind::Log, id, bytes, full, PAYLOAD).into_iter();
        pages
            .map(|page| decode(&PageImage::new(&finish(page)), PageKind::Log).expect("a page"))
            .collect()
    }

    #[test]
    fn a_group_takes_the_pages_of_its_full_length() {
        assert_eq!(pages(1, &[7; 10], 0).len(), 1);
        assert_eq!(pages(1, &[7; 130], 0).len(), 3);
        let long = pages(1, &[7; 100], 1000);
        assert_eq!(long.len(), 18);
        assert_eq!(assemble(long, 1, false).whole, [vec![7; 100]]);
    }

    #[test]
    fn a_checkpoint_may_take_more_pages_than_16_bits_count() {
        let bytes: Vec<u8> = (0..70_000_u32 * 56).map(|at| (at / 56) as u8).collect();
        let long = pages(1, &bytes, 0);
        assert_eq!(long.len(), 70_000);
        assert!(assemble(long, 1, false).whole == [bytes]);
    }

    #[test]
    fn a_torn_group_at_the_end_is_left_out_and_a_gap_is_noticed() {
        let all = || (5..9).flat_map(|number| pages(number, &[number as u8; 200], 0));
        let without = |gone: usize| all().enumerate().filter(move |(i, _)| *i != gone);
        let found = |gone| assemble(without(gone).map(|(_, page)| page), 5, false);
        assert_eq!(assemble(all(), 5, false).whole.len(), 4);
        assert_eq!(assemble(all(), 7, false).whole, [vec![7; 200], vec![8; 200]]);
        let torn = found(14);
        assert_eq!((torn.whole.len(), torn.has_gap), (3, false));
        let damaged = found(5);
        assert_eq!((damaged.whole.len(), damaged.has_gap), (1, true));
        let late = assemble(all(), 4, false);
        assert_eq!((late.whole.len(), late.has_gap), (0, true));
    }

    #[test]
    fn parts_of_two_groups_of_one_number_are_not_put_together() {
        let (first, second) = (pages(0, &[1; 200], 0), pages(0, &[2; 200], 0));
        let parts = || first[..1].iter().chain(&second[1..]).cloned();
        assert_eq!(assemble(parts(), 0, false), Groups::default());
        let whole = assemble(parts().chain(second[..1].iter().cloned()), 0, false);
        assert_eq!(whole.whole, [vec![2; 200]]);
    }

    proptest! {
        #[test]
        fn groups_come_back_whatever_the_order(
            lengths in prop::collection::vec(0..500_usize, 1..12),
            seed in any::<u64>(),
        ) {
            let group = |number: usize| vec![number as u8; lengths[number]];
            let mut all: Vec<GroupPage> =
                (0..lengths.len()).flat_map(|n| pages(n as u64, &group(n), 0)).collect();
            all.sort_by_key(|page| runtime::mix64(seed ^ page.id.number ^ u64::from(page.place) << 32));
            let found = assemble(all, 0, false);
            prop_assert!(!found.has_gap);
            prop_assert_eq!(found.whole, (0..lengths.len()).map(group).collect::<Vec<_>>());
        }
    }
}
