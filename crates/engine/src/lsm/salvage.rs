//! Saving what is left of a store that does not open.
//!
//! All pages say what they hold ([`pages::salvage`]): objects and groups of the log say which write they are, and the newest of each key
//! counts. What they do not say is what was deleted, once the log does not have it any more: the index does. So what can be read of
//! the manifest is replayed, from the newest whole checkpoint up to the first edit that is missing. The index that comes out
//! was in force once: what it does not lead to was deleted or replaced by then, if it is no later
//! write. Behind a gap the first level's new segments are believed when they say that a key is deleted. A key in a part of the index
//! that is damaged is given the benefit of the doubt: it is saved.
//!
//! Values that stand beside their keys are in the index alone, once the log does not have them any more. Where it can be read it says which of them count. For
//! parts that cannot, all pages that look like a part of an index are asked, also those that were replaced long ago: of such values nobody knows when they were
//! written, but in which run at the latest.
//!
//! Nothing is written to the medium. Memory: see [`Versions`], and the keys that have to be named.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::vec;

use pages::Value;
use pages::error::OpenError;
use pages::format::page::PageFault;
use pages::medium::{Medium, PageNo};
use pages::salvage::{ManifestGroup, Saved, Standing, Survey, Versions};
use runtime::PageImage;

use crate::format::entry::Mapping;
use crate::format::meta_segment::MetaSegment;
use crate::lsm::location::Location;
use crate::lsm::open::Setup;
use crate::lsm::snapshot_reads::IndexPart;
use crate::lsm::version::Version;
use crate::lsm::{Engine, Inner, dump, edit_codec};

/// How much of the index could be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IndexState {
    /// All edits that there are.
    Whole,
    /// It is that of an earlier time: later edits are missing.
    Earlier,
    /// No checkpoint is whole.
    #[default]
    Lost,
}

/// What is left of a store, until it has been taken out.
pub struct Salvage<M: Medium> {
    inner: Rc<Inner<M>>,
    survey: Survey,
    versions: Versions,
    step: usize,
    /// Pages of the index that have values beside keys and were not taken out yet.
    beside: vec::IntoIter<PageNo>,
    /// Keys with a value that stood beside them in a page of the index of which nobody knows whether it is the newest.
    pub unordered: u64,
    /// How much of the index could be read.
    pub index: IndexState,
    /// Groups of the log that are missing or damaged; the last one may have been torn by a power cut.
    pub missing_log_groups: u64,
    /// Keys that the index has and no readable page has a version of.
    pub lost: Vec<Box<[u8]>>,
    /// Keys of which an older version than the index has is saved, because that cannot be read.
    pub older: Vec<Box<[u8]>>,
}

/// What the manifest came to.
#[derive(Default)]
struct Replayed {
    state: IndexState,
    version: Option<Version>,
    /// Writes that are in it.
    flushed: u64,
    log_from: u64,
    /// New segments of the first level in edits behind a gap, each with the writes that are in the index by then.
    later: Vec<(Listed, u64)>,
}

/// A segment, a group of them or a table in columns, as a list has it.
struct Listed {
    location: Location,
    first_key: Box<[u8]>,
    entries: u16,
}

/// A segment that could be read: where it lies (of a table in columns, where that begins), and its first key.
struct ReadSegment {
    page: PageNo,
    image: PageImage,
    first_key: Box<[u8]>,
}

/// What an index comes to that is asked from the top.
#[derive(Default)]
struct Asking {
    /// Keys without a version that can be read, and what the first level says that has them.
    missing: BTreeMap<Box<[u8]>, Said>,
    /// Keys of which an older version is left.
    older: Vec<Box<[u8]>>,
    /// Parts that are damaged in levels that were asked.
    unknown: Vec<IndexPart>,
}

/// What a level says of a key.
#[derive(Clone, Copy)]
struct Said {
    is_live: bool,
    /// Whether all levels above were asked.
    is_certain: bool,
}

impl Asking {
    /// Whether a level that was asked may have had the key, and cannot be read there.
    fn is_unknown(&self, key: &[u8]) -> bool {
        self.unknown.iter().any(|part| part.covers(key))
    }
}

impl<M: Medium> Engine<M> {
    /// Looks for what is left of the store that a medium holds, which need not open. `setup` is what it would be opened with, identity
    /// included. `progress` hears the pages read so far, of those that the medium has.
    ///
    /// Cost: all of the medium is read twice, and once more to take out what was found.
    ///
    /// # Errors
    /// [`OpenError`] if no engine can be made with the setup. Damage is none.
    pub async fn salvage(
        setup: Setup<M>,
        mut progress: impl FnMut(u64),
    ) -> Result<Salvage<M>, OpenError> {
        let inner = Self::build(setup)?.inner;
        let survey = inner.store.survey(&mut progress).await;
        let mut versions = Versions::default();
        let replayed = inner.replay_what_is_left(&survey.manifest, &mut versions);
        inner.store.note_runs(&survey, &mut versions).await;
        inner.store.note_versions(&survey, &mut versions).await;
        let missing_log_groups = survey.missing_log_groups(replayed.log_from);
        let (index, step) = (replayed.state, 0);
        let (lost, older) = inner.ask_index(&replayed, &mut versions).await;
        let (beside, unordered) = versions.in_index();
        let beside = Vec::from_iter(beside).into_iter();
        Ok(Salvage {
            inner,
            survey,
            versions,
            step,
            beside,
            unordered,
            index,
            missing_log_groups,
            lost,
            older,
        })
    }
}

impl<M: Medium> Salvage<M> {
    /// More of the pairs, in no order; nothing behind the last ones.
    pub async fn next(&mut self) -> Option<Vec<Saved>> {
        self.step += 1;
        match self.inner.store.saved(&self.survey, &self.versions, self.step - 1).await {
            Some(saved) => Some(saved),
            None => self.next_beside().await,
        }
    }

    /// What counts of the values that the next page of the index has beside keys.
    async fn next_beside(&mut self) -> Option<Vec<Saved>> {
        let (inner, page) = (&self.inner, self.beside.next()?);
        let image = inner.store.whole_page(page).await;
        let mut saved = Vec::new();
        inner.each_beside(image.as_ref().map_or(&[], PageImage::bytes), |key, value| {
            if self.versions.is_in_index(key, page) {
                saved.push((key.into(), value));
            }
        });
        Some(saved)
    }

    /// Pages that are not what was once written there.
    pub fn damaged(&self) -> &[(PageNo, PageFault)] {
        &self.survey.damaged
    }

    /// Whether anything of the store was found.
    pub fn is_empty(&self) -> bool {
        self.survey.manifest.is_empty()
            && self.survey.log_groups() == 0
            && self.versions.count(|_| true) == 0
    }

    /// Pairs that the index was not there to be asked for: they may have been deleted.
    pub fn unsure(&self) -> u64 {
        let is_unsure = |standing| matches!(standing, Standing::Unasked | Standing::Unknown);
        self.versions.count(is_unsure)
    }
}

impl<M: Medium> Inner<M> {
    /// The index that can be made of the manifest.
    fn replay_what_is_left(&self, groups: &[ManifestGroup], versions: &mut Versions) -> Replayed {
        let mut replayed = Replayed::default();
        let is_whole = |group: &&ManifestGroup| group.number == 0 && group.bytes.is_some();
        let newest = groups.iter().rposition(|group| is_whole(&group));
        let mut rest = groups;
        if let Some(at) = newest
            && self.restore_checkpoint(&groups[at], &mut replayed, versions)
        {
            rest = &groups[at + 1..];
            let edits = (1..).zip(rest).take_while(|(number, group)| {
                group.epoch == groups[at].epoch
                    && group.number == *number
                    && self.replay_edit(group, &mut replayed)
            });
            rest = &rest[edits.count()..];
            // The last edit, or a checkpoint that was being written, may be what a power cut tore: nobody can tell.
            replayed.state = if rest.is_empty() { IndexState::Whole } else { IndexState::Earlier };
        }
        self.note_later(rest, &mut replayed);
        replayed
    }

    fn restore_checkpoint(
        &self,
        group: &ManifestGroup,
        replayed: &mut Replayed,
        versions: &mut Versions,
    ) -> bool {
        let empty = Rc::clone(&self.version.borrow());
        let bytes = group.bytes.as_deref().unwrap_or_default();
        let restored = dump::restore(bytes, &empty, &self.home());
        // Tables are listed apart, and are not read here.
        let Some(restored) = restored.filter(|restored| restored.tables.is_none()) else {
            return false;
        };
        if group.run == group.epoch {
            versions.note_run(group.run, restored.sequence + 1);
        }
        replayed.flushed = restored.flushed.sequence;
        replayed.log_from = restored.flushed.log_from;
        replayed.version = Some(restored.version);
        true
    }

    /// Whether an edit could be replayed.
    fn replay_edit(&self, group: &ManifestGroup, replayed: &mut Replayed) -> bool {
        let bytes = group.bytes.as_deref().unwrap_or_default();
        let edit = edit_codec::decode(bytes, &self.home());
        let Some((edit, version)) = edit.zip(replayed.version.as_ref()) else { return false };
        let Some(version) = version.replay(edit.levels) else { return false };
        replayed.version = Some(version);
        if let Some(flushed) = edit.flushed {
            (replayed.flushed, replayed.log_from) = (flushed.sequence, flushed.log_from);
        }
        true
    }

    /// What edits bring into the first level that cannot be replayed.
    fn note_later(&self, groups: &[ManifestGroup], replayed: &mut Replayed) {
        let mut flushed = replayed.flushed;
        let edits = groups.iter().filter(|group| group.number > 0);
        for bytes in edits.filter_map(|group| group.bytes.as_deref()) {
            let Some(edit) = edit_codec::decode(bytes, &self.home()) else { continue };
            flushed = edit.flushed.map_or(flushed, |it| it.sequence.max(flushed));
            for level in edit.levels.into_iter().filter(|level| level.level == 0) {
                for named in level.new {
                    let location = named.segment.location.clone();
                    let (first_key, entries) = (named.first_key, named.segment.entries);
                    replayed.later.push((Listed { location, first_key, entries }, flushed));
                }
            }
        }
    }

    /// Takes out what the index says is deleted. Keys that are lost, and keys of which an older version is left.
    async fn ask_index(
        &self,
        replayed: &Replayed,
        versions: &mut Versions,
    ) -> (Vec<Box<[u8]>>, Vec<Box<[u8]>>) {
        let mut asking = Asking::default();
        if replayed.version.is_none() {
            asking.unknown.push(IndexPart { first: Box::default(), end: None });
        }
        if let Some(version) = &replayed.version {
            for level in version.levels() {
                let listed: Vec<_> = level.iter().collect();
                for (index, (first_key, segment)) in listed.iter().enumerate() {
                    let next = listed.get(index + 1).map(|(key, _)| *key);
                    let location = segment.location.clone();
                    if location.pages().next().is_none() {
                        continue;
                    }
                    let (first_key, entries) = ((*first_key).into(), segment.entries);
                    let listed = Listed { location, first_key, entries };
                    self.ask_part(&listed, next, replayed.flushed, versions, &mut asking).await;
                }
            }
            versions.judge(&[], None, |_| Standing::Dead);
            versions.drop_dead(replayed.flushed);
        }
        for (listed, flushed) in &replayed.later {
            self.take_later(listed, *flushed, versions).await;
        }
        if self.inlining.is_on() && !asking.unknown.is_empty() {
            self.ask_all_pages(&asking, versions).await;
        }
        let Asking { missing, older, .. } = asking;
        let lost = missing.into_iter().filter(|(key, said)| said.is_live && !versions.has(key));
        (lost.map(|(key, _)| key).collect(), older)
    }

    /// Takes down what any page of an index has beside keys that the index may have in a part that is damaged.
    async fn ask_all_pages(&self, asking: &Asking, versions: &mut Versions) {
        for step in 0.. {
            let Some(pages) = self.store.whole_pages(step).await else { return };
            for (page, run, image) in pages {
                self.each_beside(image.bytes(), |key, _| {
                    let is_known = || asking.missing.get(key).is_some_and(|said| said.is_certain);
                    if asking.is_unknown(key) && !is_known() {
                        versions.offer_from_index(key, run, page);
                    }
                });
            }
        }
    }

    /// Shows the values that a page has beside keys, if it is a segment.
    fn each_beside(&self, bytes: &[u8], mut show: impl FnMut(&[u8], Value)) {
        if !MetaSegment::is_sound(bytes, self.store.format, &self.inlining) {
            return;
        }
        let Some(segment) = MetaSegment::new(bytes, self.store.format) else { return };
        for index in 0..segment.len() {
            if let Mapping::Value(value) = segment.mapping(index) {
                show(segment.key(index), value);
            }
        }
    }

    /// What a part of the index, in front of the one that begins with `next`, says of keys that no part above has.
    async fn ask_part(
        &self,
        listed: &Listed,
        next: Option<&[u8]>,
        flushed: u64,
        versions: &mut Versions,
        asking: &mut Asking,
    ) {
        let Some(segments) = self.listed_segments(listed, next).await else {
            versions.judge(&listed.first_key, next, |_| Standing::Unknown);
            let (first, end) = (listed.first_key.clone(), next.map(Box::from));
            asking.unknown.push(IndexPart { first, end });
            return;
        };
        for (at, segment) in segments.iter().enumerate() {
            let next = segments.get(at + 1).map_or(next, |behind| Some(&behind.first_key));
            self.ask_segment(segment, &Asked { next, flushed }, versions, asking).await;
        }
    }

    /// What a segment says of keys that no segment above has.
    async fn ask_segment(
        &self,
        read: &ReadSegment,
        asked: &Asked<'_>,
        versions: &mut Versions,
        asking: &mut Asking,
    ) {
        let Some(segment) = MetaSegment::new(read.image.bytes(), self.store.format) else { return };
        let (mut to_check, mut beside) = (Vec::new(), Vec::new());
        versions.judge(&read.first_key, asked.next, |key| match segment.find(key) {
            None => Standing::Unasked,
            Some(Mapping::Deleted) => Standing::Dead,
            Some(Mapping::Value(_)) => {
                beside.push(Box::from(key));
                Standing::Live
            }
            Some(Mapping::At(pointer)) => {
                to_check.push((Box::from(key), self.store.format.locate(pointer).0));
                Standing::Live
            }
        });
        for (key, page) in to_check {
            let is_it = versions.is_in(&key, page, asked.flushed);
            if !is_it && !self.store.offer_from(page, &key, versions).await {
                asking.older.push(key);
            }
        }
        for key in beside {
            versions.take_from_index(&key, read.page, asked.flushed, Standing::Live);
        }
        for index in 0..segment.len() {
            let key = segment.key(index);
            if versions.has(key) || asking.missing.contains_key(key) {
                continue;
            }
            let is_certain = !asking.is_unknown(key);
            match segment.mapping(index) {
                Mapping::Value(_) => {
                    let standing = if is_certain { Standing::Live } else { Standing::Unknown };
                    versions.take_from_index(key, read.page, asked.flushed, standing);
                }
                mapping => {
                    let is_live = mapping != Mapping::Deleted;
                    asking.missing.insert(key.into(), Said { is_live, is_certain });
                }
            }
        }
    }

    /// The segments of a part of the index, in order; `None` if they are not those that a list has in front of `next`.
    async fn listed_segments(
        &self,
        listed: &Listed,
        next: Option<&[u8]>,
    ) -> Option<Vec<ReadSegment>> {
        let format = self.store.format;
        let read = self.whole_segments(&listed.location).await?;
        let mut segments = Vec::with_capacity(read.len());
        for (page, image) in read {
            let is_sound = MetaSegment::is_sound(image.bytes(), format, &self.inlining);
            let segment = MetaSegment::new(image.bytes(), format).filter(|_| is_sound)?;
            let first_key = (segment.len() > 0).then(|| segment.key(0).into())?;
            segments.push(ReadSegment { page, image, first_key });
        }
        let mut entries = 0;
        for (at, read) in segments.iter().enumerate() {
            let segment = MetaSegment::new(read.image.bytes(), format)?;
            let next = segments.get(at + 1).map_or(next, |behind| Some(&behind.first_key));
            segment.is_listed(segment.len() as u16, &read.first_key, next).then_some(())?;
            entries += segment.len();
        }
        let is_it = segments.first()?.first_key == listed.first_key
            && entries == usize::from(listed.entries);
        is_it.then_some(segments)
    }

    /// All segments of a part of the index and where they lie; `None` if a page of them cannot be read.
    async fn whole_segments(&self, location: &Location) -> Option<Vec<(PageNo, PageImage)>> {
        let pages = match location {
            Location::Pinned(_) => Vec::new(),
            Location::Stored(page) | Location::Cached(page, _) => vec![*page],
            Location::Group(group) => (0..group.segments).map(|at| group.page(at)).collect(),
            Location::Columns(table) => table.behind_filter().map(PageNo).collect(),
        };
        let mut whole = Vec::with_capacity(pages.len());
        for page in pages {
            whole.push((page, self.store.whole_page(page).await?));
        }
        let Location::Columns(table) = location else { return Some(whole) };
        let images: Vec<_> = whole.into_iter().map(|(_, image)| image).collect();
        let segments = self.table_of_pages(*table, &images).ok()?;
        Some(segments.iter().map(|image| (table.first, image.clone())).collect())
    }

    /// Takes out what new segments of the first level say is deleted, and takes what stands beside their keys.
    async fn take_later(&self, listed: &Listed, flushed: u64, versions: &mut Versions) {
        let segments = self.listed_segments(listed, None).await.unwrap_or_default();
        for ReadSegment { page, image, .. } in segments {
            let Some(segment) = MetaSegment::new(image.bytes(), self.store.format) else {
                continue;
            };
            for index in 0..segment.len() {
                let key = segment.key(index);
                match segment.mapping(index) {
                    Mapping::Deleted => versions.drop_deleted(key, flushed),
                    Mapping::Value(_) => {
                        versions.take_from_index(key, page, flushed, Standing::Live);
                    }
                    Mapping::At(_) => {}
                }
            }
        }
    }
}

/// What is asked of a segment besides what the list says of it.
struct Asked<'a> {
    /// The first key of the next one.
    next: Option<&'a [u8]>,
    /// Writes that are in the index.
    flushed: u64,
}
