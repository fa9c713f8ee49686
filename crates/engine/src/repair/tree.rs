//! Salvage of a store that does not open.
//!
//! All pages describe their contents ([`crate::repair`]): objects and log groups have the sequence
//! number of their write, and the newest version of each key counts. Pages do not show deletions
//! once the log no longer has them; the index does. So the readable part of the manifest is
//! replayed, from the newest complete checkpoint to the first missing edit. The resulting index was
//! in force once: a version to which it does not refer was deleted or replaced by then, unless it
//! is a later write. After a gap in the manifest, new segments of the first level count as evidence
//! of deletions. A key in a damaged part of the index is saved, although it may have been deleted.
//!
//! Inline values exist only in the index, once the log no longer has them. A readable index shows
//! which of them count. For its unreadable parts, all pages that look like index pages are
//! examined, including pages that were replaced long ago: the write time of such values is unknown,
//! only the latest possible run is known.
//!
//! Nothing is written to the medium. Memory: see [`Versions`], plus the keys that have to be
//! listed.

use std::rc::Rc;
use std::vec;

use runtime::PageImage;

use super::asking::{Asking, Said};
use super::{ManifestGroup, Saved, Standing, Survey, Versions};
use crate::engine::{Engine, Inner};
use crate::error::OpenError;
use crate::format::entry::Mapping;
use crate::format::meta_segment::MetaSegment;
use crate::format::page::PageFault;
use crate::format::value::Value;
use crate::iterate::snapshot_reads::IndexPart;
use crate::manifest::edit_codec;
use crate::medium::{Medium, PageNo};
use crate::recovery::open::Setup;
use crate::recovery::tree_dump;
use crate::version::Version;
use crate::version::location::Location;

/// The extent to which the index could be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IndexState {
    /// All existing edits were read.
    Whole,
    /// The index is of an earlier time: later edits are missing.
    Earlier,
    /// No checkpoint is complete.
    #[default]
    Lost,
}

/// The remains of a store, until they are read out.
pub struct Salvage<M: Medium> {
    inner: Rc<Inner<M>>,
    survey: Survey,
    versions: Versions,
    step: usize,
    /// Index pages with inline values that were not read out yet.
    beside: vec::IntoIter<PageNo>,
    /// The number of keys whose inline value was found in an index page and may not be the newest.
    pub unordered: u64,
    /// The extent to which the index could be read.
    pub index: IndexState,
    /// The number of log groups that are missing or damaged; a power cut may have torn the last
    /// one.
    pub missing_log_groups: u64,
    /// Keys in the index without any readable version.
    pub lost: Vec<Box<[u8]>>,
    /// Keys saved with an older version than that of the index, because the newer one cannot be
    /// read.
    pub older: Vec<Box<[u8]>>,
}

/// The result of replaying the manifest.
#[derive(Default)]
struct Replayed {
    state: IndexState,
    version: Option<Version>,
    /// The sequence number up to which writes are in the index.
    flushed: u64,
    log_from: u64,
    /// New segments of the first level in edits after a gap, each with the sequence number up to
    /// which writes are in the index by then.
    later: Vec<(Listed, u64)>,
}

/// A segment, group or columnar table, as an entry of a level list.
struct Listed {
    location: Location,
    first_key: Box<[u8]>,
    entries: u16,
}

/// A segment that was read: its page (of a columnar table the first page), and its first key.
struct ReadSegment {
    page: PageNo,
    image: PageImage,
    first_key: Box<[u8]>,
}

impl<M: Medium> Engine<M> {
    /// Searches a medium for the remains of its store, which need not open. `setup` is the setup
    /// with which the store would be opened, including its identity. `progress` is called with the
    /// number of pages read so far, out of the medium's pages.
    ///
    /// Cost: the whole medium is read twice, and a third time to read out the result.
    ///
    /// # Errors
    /// [`OpenError`] if no engine can be made with the setup. Damage is not an error.
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
    /// Returns more of the pairs, in no particular order; `None` after the last ones.
    pub async fn next(&mut self) -> Option<Vec<Saved>> {
        self.step += 1;
        match self.inner.store.saved(&self.survey, &self.versions, self.step - 1).await {
            Some(saved) => Some(saved),
            None => self.next_beside().await,
        }
    }

    /// Returns the valid inline values of the next index page.
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

    /// Returns the pages whose contents are damaged.
    pub fn damaged(&self) -> &[(PageNo, PageFault)] {
        &self.survey.damaged
    }

    /// Whether nothing of the store was found.
    pub fn is_empty(&self) -> bool {
        self.survey.manifest.is_empty()
            && self.survey.log_groups() == 0
            && self.versions.count(|_| true) == 0
    }

    /// Returns the number of pairs that could not be checked against the index: they may have been
    /// deleted.
    pub fn unsure(&self) -> u64 {
        let is_unsure = |standing| matches!(standing, Standing::Unasked | Standing::Unknown);
        self.versions.count(is_unsure)
    }
}

impl<M: Medium> Inner<M> {
    /// Restores as much of the index as the manifest allows.
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
            // A power cut may also have torn the last edit, or a checkpoint being written: the two
            // cases look the same.
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
        let restored = tree_dump::restore(bytes, &empty, &self.home());
        // Tables are listed separately and are not read here.
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

    /// Replays an edit. Returns whether that was possible.
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

    /// Notes the first level's new segments in edits that cannot be replayed.
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

    /// Drops versions that the index shows as deleted. Returns the lost keys and the keys with only
    /// an older version left.
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

    /// Collects inline values from all index pages for keys that may be in a damaged part of the
    /// index.
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

    /// Calls `show` for each inline value of a page, if it is a segment.
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

    /// Compares the versions with one part of the index, which ends before the part that begins
    /// with `next`. Only keys that no part above has count.
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

    /// Compares the versions with a segment. Only keys that no segment above has count.
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

    /// Returns the segments of a part of the index, in order; `None` if they do not match the list
    /// entry. `next` is the first key of the next part.
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

    /// Returns all segments of a part of the index with their pages; `None` if a page cannot be
    /// read.
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

    /// Drops versions that new segments of the first level show as deleted, and takes their inline
    /// values.
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

/// The context in which a segment is examined.
struct Asked<'a> {
    /// The first key of the next segment.
    next: Option<&'a [u8]>,
    /// The sequence number up to which writes are in the index.
    flushed: u64,
}
