//! The scan of a medium for the journal after a power cut.
//!
//! The scan reads the first page of every extent. Extents whose first page belongs to the WAL or
//! the manifest are read to their end. The newest manifest epoch with a complete checkpoint is in
//! force. The scan rejects all signs of damage: a missing page before other pages, edits without
//! their checkpoint, pages of two stores on one medium, or a journal medium combined with the data
//! of another store.

use std::collections::{BTreeMap, BTreeSet};

use runtime::{IoClass, PageImage};

use super::found::{First, Found, Scan};
use super::unreadable::Unreadable;
use crate::error::{EngineError, Failure, OpenError};
use crate::format::page;
use crate::format::page::{Identity, Page, PageFault, PageKind, StoreId, stamp};
use crate::manifest::RunStart;
use crate::medium::{ExtentId, Medium, MediumError, PageNo, Stream};
use crate::planted::Fault;
use crate::space::{MOST_FIRST_RUN, PageStore};
use crate::wal::group_pages;
use crate::wal::group_pages::{GroupPage, Groups};

/// Converts a read error into the reason why the store cannot be opened.
pub(crate) fn of_read(error: MediumError) -> OpenError {
    match error {
        MediumError::Unreadable(page) => OpenError::Damaged(page, PageFault::Unreadable),
        other => other.into(),
    }
}

impl<M: Medium> PageStore<M> {
    /// Scans the whole medium. Returns `None` if nothing was ever written to it.
    ///
    /// # Errors
    /// Returns [`OpenError::NoManifest`], [`OpenError::DamagedJournal`],
    /// [`OpenError::ForeignJournal`], [`OpenError::Medium`], or, if the journal has a separate
    /// medium, [`OpenError::JournalMedium`].
    pub async fn scan(&self) -> Result<Option<Scan>, OpenError> {
        let journal = self.journal();
        let extents = self.found_extents().await?;
        let is_apart = self.has_journal_apart();
        let of_journal = |error: OpenError| if is_apart { error.of_journal() } else { error };
        let apart =
            if is_apart { Some(journal.found_extents().await.map_err(of_journal)?) } else { None };
        let all = || extents.iter().chain(apart.iter().flatten());
        if all().all(|found| found.end == 0) {
            return Ok(None);
        }
        let its_extents = apart.as_ref().unwrap_or(&extents);
        let manifest = journal.journal_pages(its_extents, PageKind::Manifest).await;
        let FoundPages { pages: manifest, unreadable } = manifest.map_err(of_journal)?;
        let log = journal.journal_pages(its_extents, PageKind::Log).await;
        let FoundPages { pages: mut log, unreadable: unreadable_log } = log.map_err(of_journal)?;
        let takes_torn = self.planted.has(Fault::TakeTornGroup);
        let newest = newest_epoch(&manifest, takes_torn);
        // Without a manifest in force, unneeded pages cannot be identified.
        let in_force = newest.as_ref().ok().and_then(Option::as_ref).map(|(epoch, _)| *epoch);
        let checked = journal.check_manifest(its_extents, &manifest, &unreadable, in_force).await;
        checked.map_err(of_journal)?;
        let Some((epoch, groups)) = newest? else {
            // A new store that lost power while it wrote its first checkpoint holds nothing else.
            let is_first =
                |page: &GroupPage| page.id.epoch <= MOST_FIRST_RUN && page.id.number == 0;
            let is_new = manifest.iter().all(|(_, page)| is_first(page));
            let is_other = |first: First| first.kind != PageKind::Manifest;
            if !is_new || all().any(|found| found.first.is_some_and(is_other)) {
                return Err(OpenError::NoManifest);
            }
            Unreadable::check_all(&unreadable_log, |_| false).map_err(of_journal)?;
            // The extents in doubt may be readable later: an absent member of the volume may have
            // them, or the unreadable page.
            return all().find_map(|found| found.doubt).map_or(Ok(None), |why| Err(of_read(why)));
        };
        let id = store_of(its_extents)?;
        let is_foreign = |found: &Found| found.first.is_some_and(|first| first.is.store != id);
        if apart.is_some() && extents.iter().any(is_foreign) {
            return Err(OpenError::ForeignJournal);
        }
        // Pages of dead groups remain until their extents are erased. A run number above all that
        // were found distinguishes them from new pages.
        let epochs = manifest.iter().chain(&log).map(|(_, page)| page.id.epoch);
        let runs = all().filter_map(|found| found.first).map(|first| first.is.run);
        let next_run = self.run_after(epochs.chain(runs).max().unwrap_or(0));
        let next_run =
            next_run.ok_or(OpenError::DamagedJournal("it counts epochs beyond all bounds"))?;
        let (start, manifest_edits) = split_off_run_start(groups.whole)?;
        log.retain(|(_, page)| start.counts(page.id));
        let extent_of = |(at, _): &(PageNo, GroupPage)| journal.shape.extent_of(*at);
        let mut in_force = manifest;
        in_force.retain(|(_, page)| page.id.epoch == epoch);
        let manifest_extents = in_force.iter().map(extent_of).collect();
        let last_groups = [last_group(&log), last_group(&in_force)];
        let log: Vec<_> = log.into_iter().map(|found| (extent_of(&found), found.1)).collect();
        let log_opened_in = journal.opened_in(&log);
        Ok(Some(Scan {
            extents,
            apart,
            id,
            noted_run: if self.medium.is_written_anywhere() { start.run } else { 0 },
            next_run,
            manifest: manifest_edits,
            manifest_extents,
            log,
            log_opened_in,
            unreadable: unreadable_log,
            last_groups,
            planted: self.planted,
        }))
    }

    /// Reads the first page of each extent of the medium. On a medium that holds a journal, a lost
    /// part may contain the newest checkpoint. The store then cannot be opened, unless the medium
    /// knows that the extent was opened for another stream; such an extent is only in doubt. The
    /// same holds for any extent of a data medium whose journal is on a separate medium.
    async fn found_extents(&self) -> Result<Vec<Found>, OpenError> {
        let mut extents = Vec::with_capacity(self.shape.extents as usize);
        for id in (0..self.shape.extents).map(ExtentId) {
            let frontier = self.medium.frontier(id).await?;
            let is_anywhere = self.medium.is_written_anywhere();
            let is_empty = frontier == 0 && !is_anywhere;
            let first = if is_empty { Ok(None) } else { self.first_of(id).await };
            let is_gone = matches!(first, Err(OpenError::Medium(MediumError::Gone)));
            let is_damaged = matches!(first, Err(OpenError::Damaged(_, PageFault::Unreadable)));
            let known = if is_gone || is_damaged { self.medium.opened_for(id) } else { None };
            let lost = known.filter(|known| known.stream.is_journal()).map(|known| {
                let unreadable = Unreadable::extent(self.shape.page(id, 0), known.run, is_gone);
                (known.stream, unreadable)
            });
            let doubt = if is_gone && (known.is_some() || self.has_journal_apart()) {
                Some(MediumError::Gone)
            } else if is_damaged && known.is_some() && lost.is_none() {
                Some(MediumError::Unreadable(self.shape.page(id, 0)))
            } else {
                None
            };
            let first = if doubt.is_some() || lost.is_some() { None } else { first? };
            let is_known = doubt.is_some() || lost.is_some() || first.is_some();
            let is_filled = is_anywhere && is_known;
            let end = if is_filled { self.shape.pages_per_extent } else { frontier };
            extents.push(Found { frontier, end, first, doubt, lost });
        }
        Ok(extents)
    }

    /// Returns the identity of an extent's first page; `None` if it is not intact. On a medium with
    /// in-place writes, a lost write leaves an intact page of an earlier opening; redundancy may
    /// then hold a newer one. Generations of an extent grow within a run, but a later run may not
    /// know the last generation, so runs are compared first.
    async fn first_of(&self, id: ExtentId) -> Result<Option<First>, OpenError> {
        let page = self.shape.page(id, 0);
        let read = self.medium.read(page, IoClass::Journal).await;
        let is_unreadable = matches!(read, Err(MediumError::Unreadable(_)));
        let is_blank = read.as_ref().is_ok_and(|image| image.bytes().is_empty());
        let own = read_whole(read, |image| whole(image, page))?;
        if own.is_some() && !self.medium.is_written_anywhere() {
            return Ok(own);
        }
        let versions = self.medium.read_versions(page, IoClass::Journal).await;
        self.check_lost(page, is_unreadable && versions.is_empty())?;
        let others = versions.iter().filter_map(|image| whole(image, page));
        let age = |first: &First| (first.is.run, first.is.generation);
        let newest = others.max_by_key(age);
        let is_newer = newest.as_ref().map(age) > own.as_ref().map(age);
        self.count_rebuilt(u64::from(is_newer));
        let first = if is_newer { newest } else { own };
        let is_damaged = first.is_none() && !is_blank && self.medium.unreadable_is_lost(id);
        if is_damaged { Box::pin(self.first_of_journal(id)).await } else { Ok(first) }
    }

    /// Reconstructs the identity of the damaged first page of a WAL or manifest extent from the
    /// next intact page. Without it the whole extent would count as never written. With it, the
    /// groups show whether the page is missing or belongs to the last group, which a power cut
    /// tore.
    async fn first_of_journal(&self, id: ExtentId) -> Result<Option<First>, OpenError> {
        for index in 1..self.shape.pages_per_extent {
            let page = self.shape.page(id, index);
            let read = self.medium.read(page, IoClass::Journal).await;
            if let Some(found) = read_whole(read, |image| whole(image, page))? {
                let is_journal = matches!(found.kind, PageKind::Log | PageKind::Manifest);
                let is = Identity { page: self.shape.page(id, 0), ..found.is };
                return Ok(is_journal.then_some(First { kind: found.kind, is }));
            }
        }
        Ok(None)
    }

    /// Rejects the loss of a page that is unreadable and not recoverable from redundancy, if it may
    /// have been written and acknowledged. Opening without it would silently restore an earlier
    /// state of the store. On other media an unreadable page may also be one that was never
    /// acknowledged: half programmed, or part of a torn stripe.
    fn check_lost(&self, page: PageNo, is_lost: bool) -> Result<(), OpenError> {
        if is_lost && self.medium.unreadable_is_lost(self.shape.extent_of(page)) {
            return Err(OpenError::Damaged(page, PageFault::Unreadable));
        }
        Ok(())
    }

    /// Returns the result of `decode` for a page or for its copies from redundancy; `None` if none
    /// is intact. Blank pages are also rebuilt, because their write may have been lost.
    async fn whole_or_rebuilt<T>(
        &self,
        page: PageNo,
        read: Result<PageImage, MediumError>,
        decode: impl Fn(&PageImage) -> Option<T>,
    ) -> Result<Option<T>, OpenError> {
        let is_unreadable = matches!(read, Err(MediumError::Unreadable(_)));
        let own = read_whole(read, &decode)?;
        if own.is_some() {
            return Ok(own);
        }
        let versions = self.medium.read_versions(page, IoClass::Journal).await;
        self.check_lost(page, is_unreadable && versions.is_empty())?;
        let decoded = versions.iter().find_map(decode);
        self.count_rebuilt(u64::from(decoded.is_some()));
        Ok(decoded)
    }

    /// Rewrites the `needed` pages of the last groups of WAL and manifest, on media with in-place
    /// writes. All earlier groups were durable when the last ones were written. The last groups may
    /// have reached only some members of a volume and not its redundancy: the loss of one member
    /// would then lose data that this recovery relies on.
    ///
    /// # Errors
    /// Returns [`OpenError`] if a neighbouring page is unreadable; nothing is written then.
    pub(crate) async fn write_last_groups(
        &self,
        scan: &Scan,
        needed: &BTreeSet<ExtentId>,
    ) -> Result<(), OpenError> {
        let journal = self.journal();
        if !journal.medium.is_written_anywhere() {
            return Ok(());
        }
        let extents = scan.apart.as_ref().unwrap_or(&scan.extents);
        let unit = journal.shape.append_unit;
        // Pages that the scan found are not read again: their only member may be unreadable by now.
        let found: BTreeMap<PageNo, PageImage> =
            scan.last_groups.iter().flatten().cloned().collect();
        let units: BTreeSet<(ExtentId, u32)> = found
            .keys()
            .map(|page| (*page, journal.shape.extent_of(*page)))
            .filter(|(_, id)| needed.contains(id))
            .map(|(page, id)| (id, (page.0 - journal.shape.page(id, 0).0) / unit))
            .collect();
        // Reads all pages before the first write: a member that rejects a write is not read again.
        let mut images = Vec::with_capacity(units.len() * unit as usize);
        for (id, number) in &units {
            for at in number * unit..(number + 1) * unit {
                let page = journal.shape.page(*id, at);
                images.push(match found.get(&page) {
                    Some(image) => image.clone(),
                    None => journal.best_image(page, extents[id.0 as usize].first).await?,
                });
            }
        }
        for ((id, number), images) in units.iter().zip(images.chunks(unit as usize)) {
            let first = journal.shape.page(*id, number * unit);
            // If too few members accept the write, the redundancy stays as it is.
            let _ = journal.medium.append(first, images.to_vec(), IoClass::Journal).await;
        }
        for stream in [Stream::Log, Stream::Manifest] {
            let _ = journal.medium.sync(stream).await;
        }
        Ok(())
    }

    /// Returns an intact image of a page, own or from redundancy, in an extent that begins with
    /// `first`; else the stored page.
    async fn best_image(&self, page: PageNo, first: Option<First>) -> Result<PageImage, OpenError> {
        let found = self.medium.read(page, IoClass::Journal).await;
        let own = first.map(|first| first.sibling(page));
        let whole = |image: &PageImage| {
            let is_whole = own.is_some_and(|own| page::check(image, own).is_ok());
            is_whole.then(|| image.clone())
        };
        let there = found.clone();
        match self.whole_or_rebuilt(page, found, whole).await? {
            Some(best) => Ok(best),
            // A blank page written over an unreadable one would make its loss permanent.
            None => there.map_err(of_read),
        }
    }

    /// Returns all intact pages of groups of `kind`, from extents that begin with one, and the
    /// unreadable pages of these extents.
    async fn journal_pages(
        &self,
        extents: &[Found],
        kind: PageKind,
    ) -> Result<FoundPages, OpenError> {
        let mut all = FoundPages::default();
        let stream = if kind == PageKind::Manifest { Stream::Manifest } else { Stream::Log };
        for (id, found) in (0..).map(ExtentId).zip(extents) {
            all.unreadable.extend(found.lost.filter(|(of, _)| *of == stream).map(|(_, lost)| lost));
            let Some(first) = found.first.filter(|first| first.kind == kind) else { continue };
            let opened_in = self.medium.opened_for(id).map(|known| known.run);
            let begin = self.shape.page(id, 0);
            match self.groups_in(id, found.end, first).await {
                Err(OpenError::Medium(MediumError::Gone)) if opened_in.is_some() => {
                    let lost = opened_in.map(|run| Unreadable::extent(begin, run, true));
                    all.unreadable.extend(lost);
                }
                groups => {
                    let (mut pages, unreadable) = groups?;
                    let lost = Unreadable::among(begin, &pages, &unreadable, opened_in);
                    all.unreadable.extend(lost);
                    all.pages.append(&mut pages);
                }
            }
        }
        Ok(all)
    }

    /// Returns the intact pages of groups up to `end` in an extent that begins with `first`, and
    /// its unreadable pages.
    async fn groups_in(
        &self,
        id: ExtentId,
        end: u32,
        first: First,
    ) -> Result<(Vec<(PageNo, GroupPage)>, Vec<PageNo>), OpenError> {
        let (mut pages, mut unreadable) = (Vec::new(), Vec::new());
        let mut blank = 0;
        for from in (0..end).step_by(self.batch_pages() as usize) {
            let to = end.min(from + self.batch_pages());
            let numbers = (from..to).map(|index| self.shape.page(id, index));
            let read = |page| (page, self.medium.read(page, IoClass::Journal));
            let reads: Vec<_> = numbers.map(read).collect();
            for (page, read) in reads {
                let read = read.await;
                // No data exists after a whole append unit that is blank and not recoverable from
                // redundancy.
                let is_blank = read.as_ref().is_ok_and(|image| image.bytes().is_empty());
                if is_blank && blank >= self.shape.append_unit {
                    continue;
                }
                let whole = |image: &PageImage| {
                    page::check(image, first.sibling(page)).ok().map(|_| image.clone())
                };
                let image = match self.whole_or_rebuilt(page, read, whole).await {
                    Err(OpenError::Damaged(page, PageFault::Unreadable)) => {
                        unreadable.push(page);
                        None
                    }
                    other => other?,
                };
                blank = if image.is_some() { 0 } else { blank + u32::from(is_blank) };
                let decoded = image.and_then(|image| group_pages::decode(&image, first.kind));
                pages.extend(decoded.map(|part| (page, part)));
            }
        }
        Ok((pages, unreadable))
    }
}

/// Pages of WAL or manifest.
#[derive(Default)]
struct FoundPages {
    pages: Vec<(PageNo, GroupPage)>,
    unreadable: Vec<Unreadable>,
}

/// Returns the result of `decode` for a page that was read; `None` if it is unreadable or not
/// intact.
fn read_whole<T>(
    read: Result<PageImage, MediumError>,
    decode: impl Fn(&PageImage) -> Option<T>,
) -> Result<Option<T>, OpenError> {
    match read {
        Ok(image) => Ok(decode(&image)),
        Err(MediumError::Unreadable(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the kind and identity of an intact page.
pub(crate) fn whole(image: &PageImage, page: PageNo) -> Option<First> {
    let is = Identity { page, ..stamp(image.bytes())? };
    page::check(image, is).ok()?;
    let kind = Page::parse(image.bytes())?.kind;
    Some(First { kind, is })
}

/// Returns the store that owns the manifest in these extents.
fn store_of(extents: &[Found]) -> Result<StoreId, OpenError> {
    let of_manifest = |first: &First| first.kind == PageKind::Manifest;
    let firsts = extents.iter().filter_map(|found| found.first);
    let mut ids = firsts.filter(of_manifest).map(|first| first.is.store);
    let id = ids.next().ok_or(OpenError::NoManifest)?;
    if ids.any(|other| other != id) {
        return Err(OpenError::DamagedJournal("pages of two stores"));
    }
    Ok(id)
}

/// Returns the pages of the last group.
fn last_group(pages: &[(PageNo, GroupPage)]) -> Vec<(PageNo, PageImage)> {
    let order = |page: &GroupPage| (page.id.number, page.id.epoch);
    let last = pages.iter().map(|(_, page)| order(page)).max();
    let of_last = pages.iter().filter(|(_, page)| Some(order(page)) == last);
    of_last.map(|(at, page)| (*at, page.image().clone())).collect()
}

/// Returns the newest epoch with a complete checkpoint, and its groups.
fn newest_epoch(
    pages: &[(PageNo, GroupPage)],
    takes_torn: bool,
) -> Result<Option<(u32, Groups)>, OpenError> {
    let mut epochs: BTreeMap<u32, Vec<GroupPage>> = BTreeMap::new();
    for (_, page) in pages {
        epochs.entry(page.id.epoch).or_default().push(page.clone());
    }
    while let Some((epoch, pages)) = epochs.pop_last() {
        let groups = group_pages::assemble(pages, 0, takes_torn);
        if groups.has_gap {
            return Err(OpenError::DamagedJournal("a page of the manifest is missing"));
        }
        if !groups.whole.is_empty() {
            return Ok(Some((epoch, groups)));
        }
        // A power cut interrupted this checkpoint: the previous one is still in force.
    }
    Ok(None)
}

/// Removes the [`RunStart`] from the checkpoint at the start of a manifest.
fn split_off_run_start(mut manifest: Vec<Vec<u8>>) -> Result<(RunStart, Vec<Vec<u8>>), OpenError> {
    let checkpoint = manifest.first_mut().ok_or(OpenError::NoManifest)?;
    let (start, rest) = RunStart::split_off(checkpoint).ok_or(OpenError::BadDump)?;
    *checkpoint = rest.to_vec();
    Ok((start, manifest))
}

impl From<EngineError> for OpenError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Corrupt(page, fault) => Self::Damaged(page, fault),
            // Errors of writes during the opening, or of concurrent background work.
            EngineError::Medium(error) | EngineError::ReadOnly(Failure::Medium(error)) => {
                Self::Medium(error)
            }
            EngineError::ReadOnly(Failure::JournalMedium(error)) => Self::JournalMedium(error),
            EngineError::ReadOnly(Failure::Damaged(page)) => {
                Self::Damaged(page, PageFault::Unreadable)
            }
            EngineError::ReadOnly(Failure::Inconsistent(what)) => Self::DamagedJournal(what),
            other => unreachable!("opening a store cannot meet this: {other}"),
        }
    }
}
