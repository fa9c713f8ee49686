//! Results of a scan: the parts of a medium that it has found.

use std::collections::{BTreeMap, BTreeSet};

use runtime::PageImage;

use super::unreadable::Unreadable;
use crate::error::OpenError;
use crate::format::page::{Identity, PageKind, StoreId};
use crate::medium::{ExtentId, MediumError, PageNo, Stream};
use crate::planted::{Fault, Planted};
use crate::wal::group_pages;
use crate::wal::group_pages::{FoundGroup, GroupPage, Groups};

/// An extent as found by the scan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    /// Number of written pages, as far as the medium knows.
    pub frontier: u32,
    /// Upper bound of the written pages; a medium may not know a better one than the extent's size.
    pub end: u32,
    /// Identity of the first page, if it is intact.
    pub first: Option<First>,
    /// The error that hides the contents of the extent: a part of the medium is lost, or its first
    /// page is unreadable. The extent holds no valid part of a journal, so it is needed only if the
    /// manifest refers to it.
    pub doubt: Option<MediumError>,
    /// The stream and the missing part of an extent that was opened for WAL or manifest, but of
    /// which too little is readable.
    pub(crate) lost: Option<(Stream, Unreadable)>,
}

/// The kind and identity of an extent's first page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct First {
    pub kind: PageKind,
    pub is: Identity,
}

impl First {
    pub(crate) fn generation(&self) -> u32 {
        self.is.generation as u32
    }

    /// Returns the identity of `page` in the same extent of the journal. All pages of a journal
    /// extent are of one run, because no run continues the journal extents of another run.
    pub(crate) fn sibling(&self, page: PageNo) -> Identity {
        Identity { page, ..self.is }
    }
}

/// The part of the WAL that is not in the index.
#[derive(Debug)]
pub struct FoundLog {
    /// Its groups, in order.
    pub groups: Vec<FoundGroup>,
    /// Extents with needed groups, each with its last group, in group order.
    pub extents: Vec<(ExtentId, u64)>,
}

/// The result of a scan.
#[derive(Debug)]
pub struct Scan {
    pub(crate) extents: Vec<Found>,
    /// The extents of the journal's medium, if it is a separate one.
    pub(crate) apart: Option<Vec<Found>>,
    /// The store that owns the pages.
    pub id: StoreId,
    /// The run that wrote the manifest in force; 0 if extents do not record runs.
    pub noted_run: u32,
    /// The run that this recovery begins.
    pub next_run: u32,
    /// The checkpoint of the epoch in force, followed by its edits.
    pub manifest: Vec<Vec<u8>>,
    /// Extents with pages of that epoch.
    pub(crate) manifest_extents: BTreeSet<ExtentId>,
    /// Pages of the WAL.
    pub(crate) log: Vec<(ExtentId, GroupPage)>,
    /// The runs of the medium in which WAL extents were opened, as far as they are known.
    pub(crate) log_opened_in: BTreeMap<ExtentId, u64>,
    /// Unreadable pages in WAL extents.
    pub(crate) unreadable: Vec<Unreadable>,
    /// Pages of the last groups of WAL and manifest.
    pub(crate) last_groups: [Vec<(PageNo, PageImage)>; 2],
    pub(crate) planted: Planted,
}

impl Scan {
    /// Returns the extents of the manifest in force. Extents of other epochs are released:
    /// checkpoints that power cuts interrupt repeatedly would otherwise use up one extent after
    /// another.
    pub fn manifest_extents(&self) -> Vec<ExtentId> {
        self.manifest_extents.iter().copied().collect()
    }

    /// Removes and returns the WAL from group `from` on. The pages are moved out to save memory:
    /// they can be as large as four memtables, and the index is still to be read.
    ///
    /// # Errors
    /// Returns [`OpenError::DamagedJournal`] if a page is missing; [`OpenError::Damaged`] or
    /// [`MediumError::Gone`] if a page is unreadable that may be part of it.
    pub fn take_log_from(&mut self, from: u64) -> Result<FoundLog, OpenError> {
        let log = std::mem::take(&mut self.log);
        let with_from = log.iter().filter(|(_, page)| page.id.number == from);
        let begun = with_from.map(|(id, _)| self.log_opened_in.get(id).copied()).min().flatten();
        let is_old = |page: &Unreadable| page.is_before_group(from) || page.is_before_run(begun);
        let counts_as_old =
            |page: &Unreadable| Unreadable::counts_as_old(is_old(page), self.planted);
        Unreadable::check_all(&self.unreadable, counts_as_old)?;
        let places: Vec<(ExtentId, u64)> = log.iter().map(|(id, p)| (*id, p.id.number)).collect();
        let pages = log.into_iter().map(|(_, page)| page);
        let Groups { whole, has_gap } =
            group_pages::find(pages, from, self.planted.has(Fault::TakeTornGroup));
        if has_gap {
            return Err(OpenError::DamagedJournal("a page of the log is missing"));
        }
        let end = from + whole.len() as u64;
        let mut last: BTreeMap<ExtentId, u64> = BTreeMap::new();
        for (id, number) in places.into_iter().filter(|(_, n)| (from..end).contains(n)) {
            let group = last.entry(id).or_default();
            *group = number.max(*group);
        }
        let mut extents: Vec<(ExtentId, u64)> = last.into_iter().collect();
        extents.sort_by_key(|(_, group)| *group);
        Ok(FoundLog { groups: whole, extents })
    }
}
