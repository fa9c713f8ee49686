//! Search through the levels of a version, until a page must be read.

use std::ops::Range;

use runtime::PageImage;

use super::filter::key_hash;
use crate::effort::Effort;
use crate::format::entry::Mapping;
use crate::format::group_index::GroupIndex;
use crate::format::meta_segment::{MetaSegment, search_effort};
use crate::format::outline::{Aim, Outline};
use crate::format::pointer::PointerFormat;
use crate::medium::PageNo;
use crate::options::MAX_LEVELS;
use crate::version::Version;
use crate::version::level::{Level, Segment};
use crate::version::location::{Group, IndexKind, IndexPage};

/// The progress of a search.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// The newest entry of the key.
    Found(Mapping),
    /// No level has the key.
    Absent,
    /// Only this page shows whether `level` has the key. If not, the search continues below.
    Read(Pending),
}

/// A search that waits for a page.
#[derive(Clone, Debug)]
pub(crate) struct Pending {
    pub at: IndexPage,
    pub level: usize,
    /// The range pointers' bound of the search in the next level.
    pub below: Option<Range<usize>>,
}

/// Searches for `key` from level `from` (0 is L1) downwards, until a segment that is not in memory
/// must be read. `among` bounds the search in the first of these levels.
pub(crate) fn search(
    version: &Version,
    key: &[u8],
    from: usize,
    mut among: Option<Range<usize>>,
    format: PointerFormat,
    effort: &mut Effort,
) -> Step {
    // The covering segments do not depend on the segments' contents. So all of them are found
    // first, and the expected positions of the key are prefetched into the processor's cache,
    // before the first segment is searched.
    let mut pinned: [Option<Probe<'_>>; MAX_LEVELS] = std::array::from_fn(|_| None);
    let mut found = 0;
    let mut pending = None;
    let mut hash = None;
    for (index, level) in version.levels().iter().enumerate().skip(from) {
        let within = among.take().unwrap_or(0..level.len());
        let covering = level.covering_segment(key, within, effort);
        let Some((at, segment)) = covering else { continue };
        among = version.below(index, at);
        if let Some(image) = segment.location.image() {
            pinned[found] = Some(Probe::begin(segment, image, key));
            found += 1;
            continue;
        }
        let to_read = segment.location.to_read().expect("what is not in memory can be read");
        if may_have(level, at, key, &mut hash, effort) {
            pending = Some(Pending { at: to_read, level: index, below: among });
            break;
        }
    }
    for probe in pinned[..found].iter().flatten() {
        *effort += search_effort(usize::from(probe.entries));
        if let Some(newest) = probe.end(key, format) {
            return Step::Found(newest);
        }
    }
    pending.map_or(Step::Absent, Step::Read)
}

/// The lookup result of a page that a search waited for.
#[derive(Clone, Debug)]
pub(crate) enum Told {
    /// The entry of the segment or columnar table, if it has the key.
    Segment(Option<Mapping>),
    /// The page of the group's segment that may have the key.
    Group(Option<PageNo>),
}

/// Looks up `key` in a page. Requires: the page was checked.
pub(crate) fn look_in(
    at: IndexPage,
    image: &PageImage,
    key: &[u8],
    format: PointerFormat,
    effort: &mut Effort,
) -> Told {
    match at.kind {
        IndexKind::Segment => {
            let segment = MetaSegment::new(image.bytes(), format).expect("it was checked");
            *effort += segment.effort();
            Told::Segment(segment.find(key))
        }
        IndexKind::Columns(_) => unreachable!("a table is looked up in phases"),
        IndexKind::Group(segments) => {
            let index = GroupIndex::new(image.bytes()).expect("it was checked");
            *effort += index.effort();
            let group = Group { first: at.page, segments };
            Told::Group(index.covering(key).map(|place| group.page(place)))
        }
    }
}

impl Pending {
    /// Continues the search with the lookup result of the page it waited for.
    pub(crate) fn go_on(
        self,
        told: Told,
        version: &Version,
        key: &[u8],
        format: PointerFormat,
        effort: &mut Effort,
    ) -> Step {
        match told {
            Told::Segment(Some(newest)) => Step::Found(newest),
            Told::Group(Some(page)) => Step::Read(Self { at: IndexPage::segment(page), ..self }),
            Told::Segment(None) | Told::Group(None) => {
                search(version, key, self.level + 1, self.below, format, effort)
            }
        }
    }
}

/// A search of one segment in memory, from the prefetch hint to the result.
struct Probe<'v> {
    page: &'v [u8],
    entries: u16,
    outline: Option<&'v Outline>,
    /// `None` if the outline shows that the segment does not have the key.
    aim: Option<Aim>,
}

impl<'v> Probe<'v> {
    fn begin(segment: &'v Segment, image: &'v PageImage, key: &[u8]) -> Self {
        let (page, outline) = (image.bytes(), segment.outline.as_ref());
        let aim = outline.and_then(|outline| outline.aim(key));
        match (outline, aim) {
            (Some(outline), Some(aim)) => outline.prefetch(page, aim),
            _ => image.prefetch(),
        }
        Self { page, entries: segment.entries, outline, aim }
    }

    fn end(&self, key: &[u8], format: PointerFormat) -> Option<Mapping> {
        if let Some(outline) = self.outline {
            let at = outline.find(self.page, key, self.aim?)?;
            if !outline.has_values() {
                let pointer = format.decode(&self.page[outline.entry(at, format.bytes)..]);
                return Some(Mapping::of(pointer));
            }
            return Some(self.segment(format).mapping(at));
        }
        self.segment(format).find(key)
    }

    fn segment(&self, format: PointerFormat) -> MetaSegment<'v> {
        MetaSegment::new(self.page, format).expect("pinned segments are made by merges")
    }
}

/// Whether the segment `at` of `level` may have `key`, by its table's last key and its filter. The
/// key is hashed once, for the first filter that is probed.
fn may_have(
    level: &Level,
    at: usize,
    key: &[u8],
    hash: &mut Option<u64>,
    effort: &mut Effort,
) -> bool {
    if level.ends_before(at, key) {
        return false;
    }
    level.filter(at).is_none_or(|filter| {
        effort.filter_probes += 1;
        filter.may_have(*hash.get_or_insert_with(|| key_hash(key)))
    })
}
