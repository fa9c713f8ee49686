//! Unreadable pages of WAL and manifest that are not needed according to the medium's record of
//! their extents.

use std::collections::{BTreeMap, BTreeSet};

use runtime::IoClass;

use super::found::{First, Found};
use super::scan::whole;
use super::unreadable::Unreadable;
use crate::error::OpenError;
use crate::format::page::PageKind;
use crate::medium::{ExtentId, Medium, PageNo};
use crate::space::PageStore;
use crate::wal::group_pages;
use crate::wal::group_pages::GroupPage;

impl<M: Medium> PageStore<M> {
    /// Checks that the unreadable pages of the manifest belong to earlier epochs than the one in
    /// force, of which some pages were found.
    ///
    /// # Errors
    /// As [`Unreadable::check_all`].
    pub(crate) async fn check_manifest(
        &self,
        extents: &[Found],
        manifest: &[(PageNo, GroupPage)],
        unreadable: &[Unreadable],
        in_force: Option<u32>,
    ) -> Result<(), OpenError> {
        let is_in_force = |page: &GroupPage| Some(page.id.epoch) == in_force;
        let begun = self.opened_first(manifest, is_in_force);
        let of_force = manifest.iter().find(|(_, page)| is_in_force(page));
        let first =
            of_force.and_then(|(at, _)| extents[self.shape.extent_of(*at).0 as usize].first);
        let is_old = |page: &Unreadable| {
            in_force.is_some_and(|epoch| page.is_before_epoch(epoch)) || page.is_before_run(begun)
        };
        let counts_as_old = |is_old| Unreadable::counts_as_old(is_old, self.planted);
        // The extent is read only for the few pages about which nothing else is known.
        for lost in unreadable.iter().filter(|page| !counts_as_old(is_old(page))) {
            let is_older = match (first, in_force) {
                (Some(first), Some(epoch)) => self.is_of_older_epoch(lost.page, first, epoch).await,
                _ => false,
            };
            Unreadable::check_all(&[*lost], |_| counts_as_old(is_older))?;
        }
        Ok(())
    }

    /// Returns the runs of the medium in which extents with WAL pages were opened, as far as they
    /// are known.
    pub(crate) fn opened_in(&self, log: &[(ExtentId, GroupPage)]) -> BTreeMap<ExtentId, u64> {
        let extents: BTreeSet<ExtentId> = log.iter().map(|(id, _)| *id).collect();
        let opened_in = |id: ExtentId| Some((id, self.medium.opened_for(id)?.run));
        extents.into_iter().filter_map(opened_in).collect()
    }

    /// Whether the extent of a page was opened by the run that wrote the manifest in force, which
    /// begins with `first`, for an earlier epoch. Any readable page of that opening shows this.
    async fn is_of_older_epoch(&self, page: PageNo, first: First, epoch: u32) -> bool {
        let id = self.shape.extent_of(page);
        let Some(known) = self.medium.opened_for(id) else { return false };
        // Within a run each generation of an extent is used once.
        let is_of_opening = |found: &First| {
            found.kind == PageKind::Manifest
                && found.is.run == first.is.run
                && found.is.store == first.is.store
                && found.generation() == known.generation as u32
        };
        for page in (0..self.shape.pages_per_extent).map(|index| self.shape.page(id, index)) {
            let Ok(image) = self.medium.read(page, IoClass::Journal).await else { continue };
            if whole(&image, page).is_some_and(|found| is_of_opening(&found)) {
                let own = group_pages::decode(&image, PageKind::Manifest);
                return own.is_some_and(|own| own.id.epoch < epoch);
            }
        }
        false
    }

    /// Returns the first run of the medium in which an extent with such pages was opened; `None` if
    /// the run of any of them is unknown.
    fn opened_first(
        &self,
        pages: &[(PageNo, GroupPage)],
        is_such: impl Fn(&GroupPage) -> bool,
    ) -> Option<u64> {
        let such = pages.iter().filter(|(_, page)| is_such(page));
        let run = |(at, _): &(PageNo, GroupPage)| {
            self.medium.opened_for(self.shape.extent_of(*at)).map(|known| known.run)
        };
        such.map(run).min().flatten()
    }
}
