//! What every page of a medium says by itself: for a store whose journal cannot be believed.
//!
//! A survey reads all pages and believes those that are whole and of the store, whatever extents, generations and runs they are
//! of. Objects and groups of the log say which write they are; of each key the newest one counts ([`Versions`]). Nothing is
//! written. Cost: the medium is read twice, objects once more when they are taken out; memory for each key ([`Versions`]), for each page
//! of the log some 40 bytes, and the manifest.
//!
//! A page without anything on it was never written. On a medium with redundancy an extent of which nothing can be read is one
//! that was never opened.

mod versions;

use std::collections::BTreeMap;

use runtime::{IoClass, PageImage};

pub use versions::{Standing, Versions};

use crate::format::codec::Reader;
use crate::format::data_page::{self, tail_part};
use crate::format::object::{MAX_VALUE_BYTES, ObjectHead};
use crate::format::page::{self, Identity, Page, PageFault, PageKind, StoreId, stamp};
use crate::format::value::Value;
use crate::journal::groups::{self, GroupId, GroupPage};
use crate::journal::manifest::RunStart;
use crate::medium::{ExtentId, Medium, MediumError, PageNo};
use crate::records::read_record;
use crate::salvage::versions::{Place, Version};
use crate::store::PageStore;

/// Pages that are read at a time.
const BATCH: u32 = 64;

/// What a page is by itself.
enum Seen {
    /// Never written, or another store's.
    Nothing,
    Whole(Identity, PageImage),
    Damaged(PageFault),
}

/// Groups of the log that are whole, by number and epoch, and where their pages are, in order.
type LogGroups = BTreeMap<GroupId, Vec<PageNo>>;

/// A group of the manifest.
#[derive(Clone, Debug)]
pub struct ManifestGroup {
    /// The epoch it is of.
    pub epoch: u32,
    /// Its number in the epoch: 0 is the checkpoint, the others are one edit each.
    pub number: u64,
    /// What it holds; nothing if that is not whole. A checkpoint goes without its run.
    pub bytes: Option<Vec<u8>>,
    /// Of a checkpoint: the run that wrote it.
    pub run: u32,
}

/// What pages say.
#[derive(Debug, Default)]
pub struct Survey {
    log: LogGroups,
    /// Numbers of groups of which only a part was found.
    torn: Vec<u64>,
    /// Groups of the manifest, whole or not, by epoch and number.
    pub manifest: Vec<ManifestGroup>,
    /// Pages that are not what was written, and what is wrong.
    pub damaged: Vec<(PageNo, PageFault)>,
}

/// A pair that was saved.
pub type Saved = (Box<[u8]>, Value);

impl Survey {
    /// Groups of the log from number `from` on that are missing in front of others, or of which a part is.
    pub fn missing_log_groups(&self, from: u64) -> u64 {
        let whole = self.log.keys().map(|id| id.number);
        let mut there: Vec<u64> = whole.filter(|number| *number >= from).collect();
        there.sort_unstable();
        there.dedup();
        let torn = self.torn.iter().copied().filter(|number| *number >= from);
        let last = there.last().copied().max(torn.max());
        last.map_or(0, |last| last + 1 - from - there.len() as u64)
    }

    /// How many groups of the log are whole.
    pub fn log_groups(&self) -> usize {
        self.log.len()
    }
}

impl<M: Medium> PageStore<M> {
    /// Reads every page. `progress` hears the pages read so far.
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
            // What was never opened cannot be read either, where several members have it, and what was given up may be there in part.
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

    /// What a page is, or what redundancy says that it is.
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

    /// The page, if it is whole and of the store, whatever it holds.
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

    /// The pages of the `step`th part of the medium that are whole and of the store, each with the run that wrote it; nothing behind the last part.
    pub async fn whole_pages(&self, step: u32) -> Option<Vec<(PageNo, u32, PageImage)>> {
        let (id, from) = self.part(step)?;
        let seen = self.see_batch(id, from).await.into_iter();
        let whole = |(page, seen)| match seen {
            Seen::Whole(is, image) => Some((page, is.run, image)),
            Seen::Nothing | Seen::Damaged(_) => None,
        };
        Some(seen.filter_map(whole).collect())
    }

    /// Where the `step`th part of the medium begins that is read at a time.
    fn part(&self, step: u32) -> Option<(ExtentId, u32)> {
        let batches = self.shape.pages_per_extent.div_ceil(BATCH);
        let id = ExtentId(step / batches);
        (id.0 < self.shape.extents).then_some((id, step % batches * BATCH))
    }

    /// Notes where each run began, as its log tells.
    pub async fn note_runs(&self, survey: &Survey, versions: &mut Versions) {
        for (id, pages) in &survey.log {
            let Some(bytes) = self.group(pages).await else { continue };
            let input = &mut Reader::new(&bytes);
            if let Some(first) = read_record(input, MAX_VALUE_BYTES) {
                versions.note_run(id.epoch, first.sequence);
            }
        }
    }

    /// Takes down every write in whole groups of the log, and every object. What a run that ended has left behind that nobody was told of is told by
    /// [`Self::note_runs`].
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

    /// The version of `key` in `page`, if one is there: what an index says that the key has.
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

    /// The value of an object that was found in a page, with the pages behind it if it takes more.
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

    /// What a group of the log holds, if its pages are of one.
    async fn group(&self, pages: &[PageNo]) -> Option<Vec<u8>> {
        let mut found = Vec::with_capacity(pages.len());
        for page in pages {
            let image = self.whole_page(*page).await?;
            found.push(groups::decode(&image, PageKind::Log)?);
        }
        groups::joined(&found)
    }

    /// Pairs of the `step`th part of all there is, and whether more follow: first what the log alone has, group by group, then what lies among
    /// the data, in the order of places.
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

/// The store whose page this is, if it is whole and lies where it belongs.
pub fn store_of(bytes: &[u8], page: PageNo) -> Option<StoreId> {
    let is = stamp(bytes)?;
    page::check(&PageImage::new(bytes), Identity { page, ..is }).ok()?;
    Some(is.store)
}

/// Takes a page of the journal down. Of the log no more than where it is.
fn add_journal(
    page: PageNo,
    image: &PageImage,
    log: &mut Vec<(PageNo, GroupPage)>,
    manifest: &mut Vec<GroupPage>,
) {
    if let Some(part) = groups::decode(image, PageKind::Log) {
        log.push((page, part.without_part()));
    } else if let Some(part) = groups::decode(image, PageKind::Manifest) {
        manifest.push(part);
    }
}

/// Groups of which all pages are there, and the numbers of the others.
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

/// The manifest as it can be read.
fn manifest_groups(pages: Vec<GroupPage>) -> Vec<ManifestGroup> {
    let mut by_id: BTreeMap<GroupId, BTreeMap<_, BTreeMap<u32, GroupPage>>> = BTreeMap::new();
    for page in pages {
        let writings = by_id.entry(page.id).or_default();
        writings.entry(page.content()).or_default().insert(page.place(), page);
    }
    let group = |(id, writings): (GroupId, BTreeMap<_, BTreeMap<u32, GroupPage>>)| {
        let joined = |pages: BTreeMap<u32, GroupPage>| {
            groups::joined(&pages.into_values().collect::<Vec<_>>())
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
