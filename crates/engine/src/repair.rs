//! Salvage: reads a store from its pages alone, if its journal cannot be trusted.
//!
//! A survey reads all pages. It accepts every intact page of the store, whatever its extent,
//! generation and run. Objects and log groups contain the identity of their write; the newest
//! version of each key counts ([`Versions`]). Nothing is written. Cost: the medium is read twice,
//! and objects once more when they are extracted. Memory: an entry for each key ([`Versions`]),
//! about 40 bytes for each log page, and the manifest.
//!
//! An empty page was never written. On a medium with redundancy, an extent whose pages are all
//! unreadable was never opened.

mod asking;
pub(crate) mod tree;
pub(crate) mod versions;

use std::collections::BTreeMap;

use runtime::{IoClass, PageImage};

pub(crate) use crate::repair::versions::{Standing, Versions};

use crate::format::codec::Reader;
use crate::format::data_page;
use crate::format::data_page::tail_part;
use crate::format::object::{MAX_VALUE_BYTES, ObjectHead};
use crate::format::page;
use crate::format::page::{Identity, Page, PageFault, PageKind, StoreId, stamp};
use crate::format::value::Value;
use crate::manifest::RunStart;
use crate::medium::{ExtentId, Medium, MediumError, PageNo};
use crate::repair::versions::{Place, Version};
use crate::space::PageStore;
use crate::wal::group_pages;
use crate::wal::group_pages::{GroupId, GroupPage};
use crate::wal::records::read_record;

/// The number of pages read at a time.
const BATCH: u32 = 64;

/// The state of a page, judged by its own contents.
enum Seen {
    /// Never written, or a page of another store.
    Nothing,
    Whole(Identity, PageImage),
    Damaged(PageFault),
}

/// Complete groups of the log, by number and epoch, with their pages in order.
type LogGroups = BTreeMap<GroupId, Vec<PageNo>>;

/// A group of the manifest.
#[derive(Clone, Debug)]
pub struct ManifestGroup {
    /// The epoch of the group.
    pub epoch: u32,
    /// The number in the epoch: 0 is the checkpoint, each other group is one edit.
    pub number: u64,
    /// The contents; `None` if the group is incomplete. The run is removed from a checkpoint.
    pub bytes: Option<Vec<u8>>,
    /// For a checkpoint: the run that wrote it.
    pub run: u32,
}

/// The result of a survey.
#[derive(Debug, Default)]
pub struct Survey {
    log: LogGroups,
    /// Numbers of groups that were found only in part.
    torn: Vec<u64>,
    /// Groups of the manifest, complete or not, by epoch and number.
    pub manifest: Vec<ManifestGroup>,
    /// Damaged pages, with the fault of each.
    pub damaged: Vec<(PageNo, PageFault)>,
}

/// A pair that was saved.
pub(crate) type Saved = (Box<[u8]>, Value);

impl Survey {
    /// Returns the number of log groups from `from` on that are missing before later groups, or
    /// exist only in part.
    pub fn missing_log_groups(&self, from: u64) -> u64 {
        let whole = self.log.keys().map(|id| id.number);
        let mut there: Vec<u64> = whole.filter(|number| *number >= from).collect();
        there.sort_unstable();
        there.dedup();
        let torn = self.torn.iter().copied().filter(|number| *number >= from);
        let last = there.last().copied().max(torn.max());
        last.map_or(0, |last| last + 1 - from - there.len() as u64)
    }

    /// Returns the number of complete log groups.
    pub fn log_groups(&self) -> usize {
        self.log.len()
    }
}

impl<M: Medium> PageStore<M> {
    /// Reads every page. Calls `progress` with the number of pages read so far.
    pub async fn survey(&self, progress: &mut dyn FnMut(u64)) -> Survey {
        let mut survey = Survey::default();
        let (mut log, mut manifest) = (Vec::new(), Vec::new());
        for id in (0..self.shape.extents).map(ExtentId) {
            let (mut damaged, mut is_read) = (Vec::new(), self.medium.unreadable_is_lost(id));
            let is_known = self.medium.knows(id);
            for from in (0..self.shape.pages_per_extent).step_by(BATCH as usize) {
                for (page, seen) in self.see_batch(id, from).await {
                    is_read |= !matches!(seen, Seen::Damaged(_));
                    match seen {
                        Seen::Damaged(fault) => damaged.push((page, fault)),
                        Seen::Whole(_, image) => add_journal(page, &image, &mut log, &mut manifest),
                        Seen::Nothing => {}
                    }
                }
            }
            // If several members hold an extent, one that was never opened is unreadable too. An
            // extent that was given up may still exist in part. Neither counts as damage.
            survey.damaged.extend(damaged.into_iter().filter(|_| is_read && is_known));
            progress(u64::from(self.shape.page(id, 0).0) + u64::from(self.shape.pages_per_extent));
        }
        (survey.log, survey.torn) = whole_groups(&log);
        survey.manifest = manifest_groups(manifest);
        survey
    }

    async fn see_batch(&self, id: ExtentId, from: u32) -> Vec<(PageNo, Seen)> {
        let pages = BATCH.min(self.shape.pages_per_extent - from);
        self.see_run(self.shape.page(id, from), pages).await
    }

    async fn see_run(&self, first: PageNo, pages: u32) -> Vec<(PageNo, Seen)> {
        let reads = self.medium.read_run(first, pages, IoClass::GcRead).await;
        let mut seen = Vec::with_capacity(reads.len());
        for (page, read) in (first.0..).map(PageNo).zip(reads) {
            seen.push((page, self.see(page, read).await));
        }
        seen
    }

    /// Returns the state of a page, using redundancy if the page itself is damaged.
    async fn see(&self, page: PageNo, read: Result<PageImage, MediumError>) -> Seen {
        let own = self.seen(page, read);
        let Seen::Damaged(fault) = own else { return own };
        let versions = self.medium.read_versions(page, IoClass::GcRead).await;
        let others = versions.into_iter().map(|image| self.seen(page, Ok(image)));
        others
            .into_iter()
            .find(|seen| matches!(seen, Seen::Whole(..)))
            .unwrap_or(Seen::Damaged(fault))
    }

    fn seen(&self, page: PageNo, read: Result<PageImage, MediumError>) -> Seen {
        let Ok(image) = read else { return Seen::Damaged(PageFault::Unreadable) };
        if image.bytes().is_empty() {
            return Seen::Nothing;
        }
        let Some(is) = stamp(image.bytes()) else { return Seen::Damaged(PageFault::Short) };
        match page::check(&image, Identity { page, ..is }) {
            Ok(_) if is.store != self.id.get() => Seen::Nothing,
            Ok(_) => Seen::Whole(is, page::without_padding(image)),
            Err(fault) => Seen::Damaged(fault),
        }
    }

    /// Returns the page if it is intact and of this store, whatever it contains.
    pub async fn whole_page(&self, page: PageNo) -> Option<PageImage> {
        if self.shape.extent_of(page).0 >= self.shape.extents {
            return None;
        }
        let read = self.medium.read(page, IoClass::GcRead).await;
        match self.see(page, read).await {
            Seen::Whole(_, image) => Some(image),
            Seen::Nothing | Seen::Damaged(_) => None,
        }
    }

    /// Returns the intact pages of this store in part `step` of the medium, each with the run that
    /// wrote it; `None` after the last part.
    pub async fn whole_pages(&self, step: u32) -> Option<Vec<(PageNo, u32, PageImage)>> {
        let (id, from) = self.part(step)?;
        let seen = self.see_batch(id, from).await.into_iter();
        let whole = |(page, seen)| match seen {
            Seen::Whole(is, image) => Some((page, is.run, image)),
            Seen::Nothing | Seen::Damaged(_) => None,
        };
        Some(seen.filter_map(whole).collect())
    }

    /// Returns the start of part `step` of the medium. A part is read at a time.
    fn part(&self, step: u32) -> Option<(ExtentId, u32)> {
        let batches = self.shape.pages_per_extent.div_ceil(BATCH);
        let id = ExtentId(step / batches);
        (id.0 < self.shape.extents).then_some((id, step % batches * BATCH))
    }

    /// Notes the first write of each run, as found in its log.
    pub async fn note_runs(&self, survey: &Survey, versions: &mut Versions) {
        for (id, pages) in &survey.log {
            let Some(bytes) = self.group(pages).await else { continue };
            let input = &mut Reader::new(&bytes);
            if let Some(first) = read_record(input, MAX_VALUE_BYTES) {
                versions.note_run(id.epoch, first.sequence);
            }
        }
    }

    /// Notes every write in complete log groups, and every object. Requires: [`Self::note_runs`]
    /// was called before, which makes it possible to recognise unacknowledged writes that an
    /// interrupted run left.
    pub async fn note_versions(&self, survey: &Survey, versions: &mut Versions) {
        for (id, pages) in &survey.log {
            let Some(bytes) = self.group(pages).await else { continue };
            let input = &mut Reader::new(&bytes);
            while let Some(record) = read_record(input, MAX_VALUE_BYTES) {
                let place = record.entry.map_or(Place::Deleted, |_| Place::Log);
                versions.offer(record.key, Version::new(id.epoch, record.sequence, place));
            }
        }
        for id in (0..self.shape.extents).map(ExtentId) {
            for from in (0..self.shape.pages_per_extent).step_by(BATCH as usize) {
                for (page, seen) in self.see_batch(id, from).await {
                    let Seen::Whole(is, image) = seen else { continue };
                    self.offer_objects(page, is, &image, versions).await;
                }
            }
        }
    }

    async fn offer_objects(
        &self,
        page: PageNo,
        is: Identity,
        image: &PageImage,
        versions: &mut Versions,
    ) {
        for (_, head) in data_page::objects(image.bytes()).unwrap_or_default() {
            let version = Version::new(is.run, head.sequence, Place::Object(page));
            if versions.is_newer(head.key, &version)
                && self.value_of(page, is, image, &head).await.is_some()
            {
                versions.offer(head.key, version);
            }
        }
    }

    /// Replaces the version of `key` by the one stored in `page`, where an index says it is.
    /// Returns whether `page` has one.
    pub async fn offer_from(&self, page: PageNo, key: &[u8], versions: &mut Versions) -> bool {
        let read = self.medium.read(page, IoClass::GcRead).await;
        let Seen::Whole(is, image) = self.see(page, read).await else { return false };
        let objects = data_page::objects(image.bytes()).unwrap_or_default();
        for (_, head) in objects.into_iter().filter(|(_, head)| head.key == key) {
            if self.value_of(page, is, &image, &head).await.is_some() {
                versions.replace(key, Version::new(is.run, head.sequence, Place::Object(page)));
                return true;
            }
        }
        false
    }

    /// Returns the value of an object found in a page. Reads the further pages of a large object.
    async fn value_of(
        &self,
        page: PageNo,
        is: Identity,
        image: &PageImage,
        head: &ObjectHead<'_>,
    ) -> Option<Value> {
        let first = Page::parse(image.bytes())?;
        if first.kind == PageKind::Data {
            return head.value();
        }
        let pages = data_page::pages_if_placed(&self.shape, 0, head)
            .filter(|pages| *pages == first.large)?;
        let left = self.shape.pages_per_extent - page.0 % self.shape.pages_per_extent;
        if pages > left || pages < 2 {
            return None;
        }
        let mut tails = Vec::new();
        for (_, seen) in self.see_run(PageNo(page.0 + 1), pages - 1).await {
            match seen {
                Seen::Whole(tail, image) if tail.generation == is.generation => tails.push(image),
                Seen::Whole(..) | Seen::Nothing | Seen::Damaged(_) => return None,
            }
        }
        let parts = (1..).zip(&tails).map(|(number, tail)| tail_part(tail.bytes(), number));
        head.value_with(&parts.collect::<Option<Vec<&[u8]>>>()?)
    }

    /// Returns the contents of a log group, if its pages belong together.
    async fn group(&self, pages: &[PageNo]) -> Option<Vec<u8>> {
        let mut found = Vec::with_capacity(pages.len());
        for page in pages {
            let image = self.whole_page(*page).await?;
            found.push(group_pages::decode(&image, PageKind::Log)?);
        }
        group_pages::joined(&found)
    }

    /// Returns the pairs of part `step`; `None` after the last part. The first parts are the log
    /// groups, with pairs that only the log has. The others are the data pages, in order of page
    /// numbers.
    pub async fn saved(
        &self,
        survey: &Survey,
        versions: &Versions,
        step: usize,
    ) -> Option<Vec<Saved>> {
        if let Some((id, pages)) = survey.log.iter().nth(step) {
            return Some(self.saved_from_log(id.epoch, pages, versions).await);
        }
        let step = u32::try_from(step - survey.log.len()).ok()?;
        let (id, from) = self.part(step)?;
        let mut saved = Vec::new();
        for (page, seen) in self.see_batch(id, from).await {
            let Seen::Whole(is, image) = seen else { continue };
            for (_, head) in data_page::objects(image.bytes()).unwrap_or_default() {
                let version = Version::new(is.run, head.sequence, Place::Object(page));
                if versions.counts(head.key, &version)
                    && let Some(value) = self.value_of(page, is, &image, &head).await
                {
                    saved.push((head.key.into(), value));
                }
            }
        }
        Some(saved)
    }

    async fn saved_from_log(
        &self,
        epoch: u32,
        pages: &[PageNo],
        versions: &Versions,
    ) -> Vec<Saved> {
        let mut saved = Vec::new();
        let Some(bytes) = self.group(pages).await else { return saved };
        let input = &mut Reader::new(&bytes);
        while let Some(record) = read_record(input, MAX_VALUE_BYTES) {
            let Some(value) = record.entry else { continue };
            let version = Version::new(epoch, record.sequence, Place::Log);
            if versions.counts(record.key, &version) {
                saved.push((record.key.into(), value));
            }
        }
        saved
    }
}

/// Returns the identity of the store that wrote the page, if the page is intact and at its proper
/// place.
pub fn store_of(bytes: &[u8], page: PageNo) -> Option<StoreId> {
    let is = stamp(bytes)?;
    page::check(&PageImage::new(bytes), Identity { page, ..is }).ok()?;
    Some(is.store)
}

/// Notes a journal page. For a log page only the place and the identity are kept.
fn add_journal(
    page: PageNo,
    image: &PageImage,
    log: &mut Vec<(PageNo, GroupPage)>,
    manifest: &mut Vec<GroupPage>,
) {
    if let Some(part) = group_pages::decode(image, PageKind::Log) {
        log.push((page, part.without_part()));
    } else if let Some(part) = group_pages::decode(image, PageKind::Manifest) {
        manifest.push(part);
    }
}

/// Returns the complete groups, and the numbers of the incomplete ones.
fn whole_groups(pages: &[(PageNo, GroupPage)]) -> (LogGroups, Vec<u64>) {
    let mut writings: BTreeMap<_, BTreeMap<u32, PageNo>> = BTreeMap::new();
    for (at, page) in pages {
        writings.entry((page.id, page.content())).or_default().insert(page.place(), *at);
    }
    let (mut whole, mut torn) = (LogGroups::new(), Vec::new());
    for ((id, (count, _)), places) in writings {
        if places.len() == count as usize {
            whole.insert(id, places.into_values().collect());
        } else {
            torn.push(id.number);
        }
    }
    (whole, torn)
}

/// Returns the groups of the manifest, with the contents of those that can be read.
fn manifest_groups(pages: Vec<GroupPage>) -> Vec<ManifestGroup> {
    let mut by_id: BTreeMap<GroupId, BTreeMap<_, BTreeMap<u32, GroupPage>>> = BTreeMap::new();
    for page in pages {
        let writings = by_id.entry(page.id).or_default();
        writings.entry(page.content()).or_default().insert(page.place(), page);
    }
    let group = |(id, writings): (GroupId, BTreeMap<_, BTreeMap<u32, GroupPage>>)| {
        let joined = |pages: BTreeMap<u32, GroupPage>| {
            group_pages::joined(&pages.into_values().collect::<Vec<_>>())
        };
        let mut bytes = writings.into_values().find_map(joined);
        let mut run = 0;
        if let (0, Some(checkpoint)) = (id.number, &bytes) {
            let start =
                RunStart::split_off(checkpoint).map(|(start, rest)| (start.run, rest.to_vec()));
            run = start.as_ref().map_or(0, |start| start.0);
            bytes = start.map(|start| start.1);
        }
        ManifestGroup { epoch: id.epoch, number: id.number, bytes, run }
    };
    by_id.into_iter().map(group).collect()
}
