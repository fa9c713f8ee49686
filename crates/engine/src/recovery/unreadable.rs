//! Unreadable pages of WAL and manifest, and the proof that some of them are not needed.
//!
//! On media that treat releases as hints, extents that the journal has released keep their pages.
//! An unreadable page there would make every opening fail. The pages after it bound its group:
//! within one opening of an extent, places are assigned in order, each group follows the one before
//! it, and no run continues a journal extent of another run. So a page belongs to no later group
//! than any intact page after it of the same opening. If that group is before the start of the
//! replay, or its epoch is before the one in force, the page is not needed either.
//!
//! The later page must be of the same opening *as the unreadable page*. The first page of the
//! extent identifies the newest opening, because it is written before any later page is
//! acknowledged. So this proof does not work for first pages, nor for a page without pages after
//! it.

use crate::error::OpenError;
use crate::format::page::PageFault;
use crate::medium::{MediumError, PageNo};
use crate::planted::{Fault, Planted};
use crate::wal::group_pages::{GroupId, GroupPage};

/// An unreadable page of a WAL or manifest extent. If it is the first page, the rest of the extent
/// is unreadable too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Unreadable {
    pub page: PageNo,
    /// The page belongs to this group or an earlier one; `None` if that is unknown.
    latest: Option<GroupId>,
    /// The run of the medium in which the extent was opened, if known.
    opened_in: Option<u64>,
    /// Whether the part of the medium that holds the page is gone.
    is_gone: bool,
}

impl Unreadable {
    /// Returns the unreadable `pages` of an extent that begins with page `first`. `found` are all
    /// its intact pages. Both are in order.
    pub(crate) fn among(
        first: PageNo,
        found: &[(PageNo, GroupPage)],
        pages: &[PageNo],
        opened_in: Option<u64>,
    ) -> Vec<Self> {
        let has_first = found.first().is_some_and(|(page, _)| *page == first);
        let is_sound = has_first && are_of_one_writer(found);
        let behind = |page: PageNo| found.iter().find(|(at, _)| *at > page).map(|(_, own)| own.id);
        let with_latest = |&page: &PageNo| {
            let latest = if is_sound { behind(page) } else { None };
            Self { page, latest, opened_in, is_gone: false }
        };
        pages.iter().map(with_latest).collect()
    }

    /// Returns the entry of an extent that begins with page `first` and of which too little is
    /// readable.
    pub(crate) fn extent(first: PageNo, opened_in: u64, is_gone: bool) -> Self {
        Self { page: first, latest: None, opened_in: Some(opened_in), is_gone }
    }

    /// Checks that all these pages are old enough to be unneeded.
    ///
    /// # Errors
    /// Returns [`OpenError::Damaged`] with the first page that is not, or [`MediumError::Gone`].
    pub(crate) fn check_all(all: &[Self], is_old: impl Fn(&Self) -> bool) -> Result<(), OpenError> {
        match all.iter().find(|page| !is_old(page)) {
            Some(lost) if lost.is_gone => Err(MediumError::Gone.into()),
            Some(lost) => Err(OpenError::Damaged(lost.page, PageFault::Unreadable)),
            None => Ok(()),
        }
    }

    /// Whether a page counts as old, given that the rules find it old or not; planted faults
    /// override them.
    pub(crate) fn counts_as_old(is_old: bool, planted: Planted) -> bool {
        is_old && !planted.has(Fault::UnreadableIsNeeded) || planted.has(Fault::UnreadableIsOld)
    }

    /// Whether the extent was opened before `run`, the run of the medium in which the needed data
    /// begins. A run writes WAL and manifest only to extents that it has opened itself.
    pub(crate) fn is_before_run(&self, run: Option<u64>) -> bool {
        self.opened_in.zip(run).is_some_and(|(opened_in, run)| opened_in < run)
    }

    /// Whether the page belongs to a WAL group before `number`.
    pub(crate) fn is_before_group(&self, number: u64) -> bool {
        self.latest.is_some_and(|latest| latest.number < number)
    }

    /// Whether the page belongs to an epoch before `epoch`.
    pub(crate) fn is_before_epoch(&self, epoch: u32) -> bool {
        self.latest.is_some_and(|latest| latest.epoch < epoch)
    }
}

/// Whether these pages can be the output of one run. Two runs may have drawn the same number.
fn are_of_one_writer(found: &[(PageNo, GroupPage)]) -> bool {
    let follows = |pair: &[(PageNo, GroupPage)]| {
        let ((_, before), (_, next)) = (&pair[0], &pair[1]);
        let is_same = before.content() == next.content() && before.place() < next.place();
        before.id.epoch == next.id.epoch
            && (before.id.number < next.id.number || before.id.number == next.id.number && is_same)
    };
    found.windows(2).all(follows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::page::{PageKind, finish};
    use crate::wal::group_pages::{decode, encode};
    use runtime::PageImage;

    const PAYLOAD: u32 = 108;

    /// Returns the pages of groups with these numbers and lengths in bytes, from place 0 on.
    fn written(epoch: u32, groups: &[(u64, usize)]) -> Vec<(PageNo, GroupPage)> {
        let pages = groups.iter().flat_map(|&(number, bytes)| {
            let (id, bytes) = (GroupId { epoch, number }, vec![number as u8; bytes]);
            encode(PageKind::Log, id, &bytes, 0, PAYLOAD)
        });
        let pages = pages.map(|page| PageImage::new(&finish(page)));
        (0..).map(PageNo).zip(pages.filter_map(|page| decode(&page, PageKind::Log))).collect()
    }

    fn one(found: &[(PageNo, GroupPage)], lost: u32) -> Unreadable {
        Unreadable::among(PageNo(0), found, &[PageNo(lost)], Some(7))[0]
    }

    /// Whether the page at `lost` is proved to be of a group before `from` by the other pages.
    fn is_before(mut found: Vec<(PageNo, GroupPage)>, lost: u32, from: u64) -> bool {
        found.retain(|(page, _)| page.0 != lost);
        one(&found, lost).is_before_group(from)
    }

    #[test]
    fn a_page_is_of_no_later_group_than_what_is_behind_it() {
        let log = || written(3, &[(5, 10), (6, 200), (8, 10), (9, 10)]);
        assert_eq!(log().len(), 7);
        assert!(is_before(log(), 1, 7) && is_before(log(), 2, 9) && is_before(log(), 4, 9));
        assert!(!is_before(log(), 1, 6), "it is of a group that is needed");
        assert!(!is_before(log(), 4, 8), "what is behind it is needed, and so it may be");
        assert!(!is_before(log(), 6, 100), "nothing is behind it");
        assert!(!is_before(log(), 0, 100), "a later opening may have begun with it");
        assert!(!is_before(log().split_off(1), 2, 100), "it may be of a later opening");
    }

    #[test]
    fn what_two_runs_left_in_an_extent_says_nothing() {
        // The second run wrote two short groups over the long first one, and its second group is
        // lost.
        let (first, second) = (written(3, &[(5, 300), (6, 10)]), written(3, &[(5, 10), (6, 10)]));
        let both = || second.iter().cloned().chain(first[2..].iter().cloned()).collect::<Vec<_>>();
        assert!(!is_before(both(), 1, 6), "it is of group 6");
        let other_run = written(2, &[(1, 10), (2, 10), (3, 10)]).split_off(2);
        let both = written(3, &[(5, 10), (6, 10)]).into_iter().chain(other_run).collect();
        assert!(!is_before(both, 1, 6), "it is of group 6");
    }

    #[test]
    fn what_was_opened_before_the_run_that_is_needed_is_old() {
        let page = one(&written(3, &[(5, 10)]), 0);
        let extent = Unreadable::extent(PageNo(0), 7, true);
        for unreadable in [page, extent] {
            assert!(unreadable.is_before_run(Some(8)));
            assert!(!unreadable.is_before_run(Some(7)) && !unreadable.is_before_run(None));
        }
        let error = |unreadable| Unreadable::check_all(&[unreadable], |_| false).unwrap_err();
        assert_eq!(error(extent), OpenError::Medium(MediumError::Gone));
        assert_eq!(error(page), OpenError::Damaged(PageNo(0), PageFault::Unreadable));
    }

    #[test]
    fn an_epoch_is_over_when_a_later_one_is_in_force() {
        let mut found = written(3, &[(0, 10), (1, 10), (2, 10)]);
        found.remove(1);
        let unreadable = one(&found, 1);
        assert!(unreadable.is_before_epoch(4) && !unreadable.is_before_epoch(3));
    }
}
