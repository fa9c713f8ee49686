//! What a power cut left of the journal.
//!
//! The first page of every extent is read: those that say they are of the log or the manifest are read
//! to their end. Of the manifest's epochs the newest one with a whole checkpoint counts. Nothing is
//! believed that could be damage: a page that is missing in front of others, edits without their
//! checkpoint, two stores on one medium, or a journal's medium beside the data of another store.

use std::collections::{BTreeMap, BTreeSet};

use runtime::{IoClass, PageImage};

use crate::error::{EngineError, Failure, OpenError};
use crate::format::page::{self, Identity, Page, PageFault, PageKind, StoreId, stamp};
use crate::journal::groups::{self, FoundGroup, GroupPage, Groups};
use crate::journal::manifest::RunStart;
use crate::journal::unreadable::Unreadable;
use crate::medium::{ExtentId, Medium, MediumError, PageNo, Stream};
use crate::planted::{Fault, Planted};
use crate::store::{MOST_FIRST_RUN, PageStore};

/// An extent as it was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    /// Pages written, as far as the medium can tell.
    pub frontier: u32,
    /// Where pages may be up to; a medium may tell nothing.
    pub end: u32,
    /// What the first page is, if it is whole.
    pub first: Option<First>,
    /// Why nobody could tell what it holds: a part of the medium is lost, or its first page. It has nothing of a journal that
    /// counts, so it is needed only if the manifest says so.
    pub doubt: Option<MediumError>,
    /// What it was opened for, if that is the log or the manifest, and not enough of it is there.
    pub(crate) lost: Option<(Stream, Unreadable)>,
}

/// What the first page of an extent says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct First {
    pub kind: PageKind,
    pub is: Identity,
}

impl First {
    pub(crate) fn generation(&self) -> u32 {
        self.is.generation as u32
    }

    /// Page `page` of the same extent, if that is of the journal: no run fills extents of others' journals further.
    fn sibling(&self, page: PageNo) -> Identity {
        Identity { page, ..self.is }
    }
}

/// What was found on a medium.
#[derive(Debug)]
pub struct Scan {
    pub(crate) extents: Vec<Found>,
    /// The extents of the journal's medium, if it has one of its own.
    pub(crate) apart: Option<Vec<Found>>,
    /// The store that its pages are of.
    pub id: StoreId,
    /// The run that wrote the manifest in force; 0 where extents do not note runs.
    pub noted_run: u32,
    /// The run that the recovery begins.
    pub next_run: u32,
    /// The checkpoint of the epoch in force, and the edits behind it.
    pub manifest: Vec<Vec<u8>>,
    /// Extents with pages of that epoch.
    pub(crate) manifest_extents: BTreeSet<ExtentId>,
    /// Pages of the log.
    log: Vec<(ExtentId, GroupPage)>,
    /// The runs of the medium in which extents of the log were opened, as far as they are known.
    log_opened_in: BTreeMap<ExtentId, u64>,
    /// Pages of extents of the log that cannot be read.
    unreadable: Vec<Unreadable>,
    /// Pages of the last groups of log and manifest.
    last_groups: [Vec<(PageNo, PageImage)>; 2],
    planted: Planted,
}

/// Writes that were not in the index.
#[derive(Debug)]
pub struct FoundLog {
    /// Its groups, in order.
    pub groups: Vec<FoundGroup>,
    /// Extents with groups that are needed, and the last group in each, in the order of groups.
    pub extents: Vec<(ExtentId, u64)>,
}

/// What keeps a store from opening of which something cannot be read.
pub(super) fn of_read(error: MediumError) -> OpenError {
    match error {
        MediumError::Unreadable(page) => OpenError::Damaged(page, PageFault::Unreadable),
        other => other.into(),
    }
}

impl<M: Medium> PageStore<M> {
    /// Looks at the whole medium. `None` if nothing was ever written to it.
    ///
    /// # Errors
    /// [`OpenError::NoManifest`], [`OpenError::DamagedJournal`], [`OpenError::ForeignJournal`],
    /// [`OpenError::Medium`], or [`OpenError::JournalMedium`] where the journal has a medium of its own.
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
        // Without a manifest in force nobody knows what is not needed.
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
            // What is in doubt a member knows that is away, or a page that cannot be read.
            return all().find_map(|found| found.doubt).map_or(Ok(None), |why| Err(of_read(why)));
        };
        let id = store_of(its_extents)?;
        let is_foreign = |found: &Found| found.first.is_some_and(|first| first.is.store != id);
        if apart.is_some() && extents.iter().any(is_foreign) {
            return Err(OpenError::ForeignJournal);
        }
        // What lies about until its extents are erased is told from what is written next: no run gets its epoch again.
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

    /// What lies in each extent of the medium. Where that has a journal in it, a part that is lost may have the newest
    /// checkpoint: then there is no going on, unless the medium knows that there is something else in it. Such an extent is in doubt, and that
    /// is all, as is any beside a journal of its own.
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

    /// What the first page of an extent is; `None` if it is not whole. Where any place can be written, a lost write
    /// leaves a page of an earlier opening, which is as whole: then redundancy may say a newer one. Generations of an
    /// extent grow within a run; the next one may not know how far they had.
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

    /// What the first page of an extent of log or manifest was, by the next page that is whole. Without it all that the extent holds would count as never
    /// written; with it the groups say whether the page is missing, or belongs to the last one, which a power cut tore.
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

    /// A page that cannot be read and not be rebuilt either may be one that was written and acknowledged: what is opened without it would be
    /// the store of an earlier time, and nobody were told. Other media have pages that nobody was told of and that cannot be read
    /// either: half programmed, or of a torn stripe.
    fn check_lost(&self, page: PageNo, is_lost: bool) -> Result<(), OpenError> {
        if is_lost && self.medium.unreadable_is_lost(self.shape.extent_of(page)) {
            return Err(OpenError::Damaged(page, PageFault::Unreadable));
        }
        Ok(())
    }

    /// What `decode` makes of a page, or of what redundancy says that it is; `None` if neither is whole. A page
    /// on which there is nothing may be one whose write was lost.
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

    /// Writes what is `needed` of the last groups of log and manifest again, where any place can be written. All groups before them were
    /// durable when they were written; they may have come to some members of a volume only, and not to what
    /// is redundant of it: then the loss of a member would take what a recovery counts on.
    ///
    /// # Errors
    /// [`OpenError`] if a page beside them cannot be read; then nothing was written.
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
        // What was found is not read again: it may be of one member that cannot be read by now.
        let found: BTreeMap<PageNo, PageImage> =
            scan.last_groups.iter().flatten().cloned().collect();
        let units: BTreeSet<(ExtentId, u32)> = found
            .keys()
            .map(|page| (*page, journal.shape.extent_of(*page)))
            .filter(|(_, id)| needed.contains(id))
            .map(|(page, id)| (id, (page.0 - journal.shape.page(id, 0).0) / unit))
            .collect();
        // All are read before any is written: a member that takes no writes is not asked any more after one.
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
            // Where too few members take it, it stays as redundant as it is.
            let _ = journal.medium.append(first, images.to_vec(), IoClass::Journal).await;
        }
        for stream in [Stream::Log, Stream::Manifest] {
            let _ = journal.medium.sync(stream).await;
        }
        Ok(())
    }

    /// A page of an extent that begins with `first`, if it or what redundancy says is whole; else what is there.
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
            // To write nothing over what cannot be read would be to lose it.
            None => there.map_err(of_read),
        }
    }

    /// Every whole page of groups of `kind`, from extents that begin with one, and those pages there that cannot be read.
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

    /// Every whole page of groups up to `end` of an extent that begins with `first`, and the pages there that cannot be read.
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
                // Behind a unit with nothing on it, and nothing to be rebuilt, nothing was written.
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
                let decoded = image.and_then(|image| groups::decode(&image, first.kind));
                pages.extend(decoded.map(|part| (page, part)));
            }
        }
        Ok((pages, unreadable))
    }
}

/// Pages of log or manifest.
#[derive(Default)]
struct FoundPages {
    pages: Vec<(PageNo, GroupPage)>,
    unreadable: Vec<Unreadable>,
}

/// What `decode` makes of a page that was read; `None` if it cannot be read, or is not whole.
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

/// What a whole page says of itself.
pub(super) fn whole(image: &PageImage, page: PageNo) -> Option<First> {
    let is = Identity { page, ..stamp(image.bytes())? };
    page::check(image, is).ok()?;
    let kind = Page::parse(image.bytes())?.kind;
    Some(First { kind, is })
}

/// The store that a manifest in these extents is of.
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

/// The pages of the last group.
fn last_group(pages: &[(PageNo, GroupPage)]) -> Vec<(PageNo, PageImage)> {
    let order = |page: &GroupPage| (page.id.number, page.id.epoch);
    let last = pages.iter().map(|(_, page)| order(page)).max();
    let of_last = pages.iter().filter(|(_, page)| Some(order(page)) == last);
    of_last.map(|(at, page)| (*at, page.image().clone())).collect()
}

/// The newest epoch whose checkpoint is whole, and its groups.
fn newest_epoch(
    pages: &[(PageNo, GroupPage)],
    takes_torn: bool,
) -> Result<Option<(u32, Groups)>, OpenError> {
    let mut epochs: BTreeMap<u32, Vec<GroupPage>> = BTreeMap::new();
    for (_, page) in pages {
        epochs.entry(page.id.epoch).or_default().push(page.clone());
    }
    while let Some((epoch, pages)) = epochs.pop_last() {
        let groups = groups::assemble(pages, 0, takes_torn);
        if groups.has_gap {
            return Err(OpenError::DamagedJournal("a page of the manifest is missing"));
        }
        if !groups.whole.is_empty() {
            return Ok(Some((epoch, groups)));
        }
        // Power failed while this checkpoint was written: the one before it still holds.
    }
    Ok(None)
}

/// Takes the run, and where its log begins, off the checkpoint that a manifest begins with.
fn split_off_run_start(mut manifest: Vec<Vec<u8>>) -> Result<(RunStart, Vec<Vec<u8>>), OpenError> {
    let checkpoint = manifest.first_mut().ok_or(OpenError::NoManifest)?;
    let (start, rest) = RunStart::split_off(checkpoint).ok_or(OpenError::BadDump)?;
    *checkpoint = rest.to_vec();
    Ok((start, manifest))
}

impl Scan {
    /// Extents of the manifest in force. Those of other epochs are not kept: checkpoints that power cuts
    /// end again and again would use up one extent after another.
    pub fn manifest_extents(&self) -> Vec<ExtentId> {
        self.manifest_extents.iter().copied().collect()
    }

    /// The log from group `from` on. This has no pages of the log any more then: they may be as much as four memtables, and the
    /// index is yet to be read.
    ///
    /// # Errors
    /// [`OpenError::DamagedJournal`]; [`OpenError::Damaged`] or [`MediumError::Gone`] if a page cannot be read that may be of it.
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
            groups::find(pages, from, self.planted.has(Fault::TakeTornGroup));
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

impl From<EngineError> for OpenError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Corrupt(page, fault) => Self::Damaged(page, fault),
            // Writes of the opening itself, or what has failed beside them.
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
