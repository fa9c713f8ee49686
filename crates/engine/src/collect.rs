//! Garbage collection: extents become empty again.
//!
//! An extent in which nothing is in use is released as it is. Otherwise, when free extents run
//! low, the one with the least in use is collected: objects that the index still leads to are
//! re-inserted in the memtable as if newly written, so that no index page is rewritten for them
//! (`PinK`, slide "Optimizing GC by reinserting valid data to LSM-tree"); meta pages are copied and
//! their address in the level list is replaced.
//!
//! Whether an object is in use is asked of the index from the top, unpinned levels included (the
//! published code leaves those out). The answer is asked for again at the moment of re-insertion,
//! because writes, flushes and compactions go on meanwhile.

use std::collections::BTreeMap;
use std::rc::Rc;

use runtime::{IoClass, PageImage};

use crate::Value;
use crate::data_page::{self, Found};
use crate::effort::Effort;
use crate::engine::Inner;
use crate::error::EngineError;
use crate::extents::{Purpose, State};
use crate::level::{Level, Location, NamedSegment, Segment};
use crate::medium::{ExtentId, Medium, PageNo};
use crate::meta_segment::MetaSegment;
use crate::object::Sequence;
use crate::planted::Fault;
use crate::pointer::Pointer;
use crate::search::{Step, search};
use crate::version::LevelEdit;

/// Extents fuller than this are not worth collecting.
const WORTH_COLLECTING: f64 = 0.95;

/// An object of a victim.
struct Candidate {
    pointer: Pointer,
    key: Box<[u8]>,
    sequence: Sequence,
    image: PageImage,
    /// What meta pages that are not in memory said about the key.
    answers: Vec<(PageNo, Option<Pointer>)>,
}

enum Verdict {
    Live,
    Dead,
    /// This page has to be asked first.
    Ask(PageNo),
}

/// Why an extent could not be emptied.
enum Stopped {
    /// A page of it that may hold something in use is damaged: it must not be released.
    Damaged,
    /// This page of the index is damaged, so nobody can tell what is in use.
    Index(PageNo),
}

impl<M: Medium> Inner<M> {
    /// The task that keeps extents free, for ever.
    pub(crate) async fn collect_forever(self: Rc<Self>) {
        loop {
            if let Some(id) = self.empty_extent() {
                if self.count_is_certain(id) {
                    self.stats.borrow_mut().gc_empty_extents += 1;
                    self.release(id).await;
                } else {
                    self.collect(id).await;
                }
            } else if let Some(id) = self.victim() {
                self.is_full.set(false);
                self.is_squeezing.set(false);
                self.collect(id).await;
            } else {
                self.consider_being_full();
                self.work.notified().await;
            }
        }
    }

    /// A closed extent in which nothing is in use.
    fn empty_extent(&self) -> Option<ExtentId> {
        let extents = self.extents.borrow();
        extents
            .iter()
            .find(|(id, extent)| {
                extent.state == State::Closed && extent.live == 0 && self.is_published(*id)
            })
            .map(|(id, _)| id)
    }

    /// Whether the extent's count of live items can be relied on. Once generations have wrapped
    /// around, an entry that was left behind long ago may have been taken for a death among the
    /// present contents: such a data extent is read before it is released.
    fn count_is_certain(&self, id: ExtentId) -> bool {
        let extents = self.extents.borrow();
        let extent = extents.get(id);
        extent.purpose == Purpose::Meta || self.format.tells_apart(extent.generation)
    }

    fn victim(&self) -> Option<ExtentId> {
        let extents = self.extents.borrow();
        if extents.free() >= self.collect_below() || !self.is_healthy() {
            return None;
        }
        extents.choose_victim(WORTH_COLLECTING, |id| self.is_published(id))
    }

    /// Free extents below which collection starts.
    fn collect_below(&self) -> usize {
        let share = (f64::from(self.shape.extents) * self.options.gc_start).ceil() as usize;
        share.max(self.client_reserve() + 2)
    }

    /// Whether every page of the extent that was handed out is published (or a known hole).
    fn is_published(&self, id: ExtentId) -> bool {
        let first = self.shape.page(id, 0);
        let end = PageNo(first.0 + self.shape.pages_per_extent);
        self.unpublished.borrow().range(first..end).next().is_none()
    }

    /// With no victim left and clients held up, garbage may still hide under entries of memtables
    /// and upper levels: everything is moved down first, and only then the store counts as full.
    /// Deletes start this again.
    fn consider_being_full(&self) {
        let is_short = self.extents.borrow().free() <= self.client_reserve();
        let is_squeezed = self.is_squeezed();
        if is_short && !is_squeezed {
            self.freeze_active();
            if !self.is_squeezing.replace(true) {
                self.work.notify_all();
            }
        } else {
            self.is_squeezing.set(false);
        }
        let is_full =
            is_short && (is_squeezed || self.is_full.get()) || self.index_memory_is_used_up();
        if self.is_full.replace(is_full) != is_full {
            self.room.notify_all();
        }
    }

    /// Whether the index is over its budget and no compaction is left that could shrink it.
    fn index_memory_is_used_up(&self) -> bool {
        self.memory_index_bytes() > self.surroundings.index_dram_bytes && self.is_settled()
    }

    /// Whether every entry is in the last level.
    fn is_squeezed(&self) -> bool {
        let memtables = self.memtables.borrow();
        let version = self.version.borrow();
        let (_, upper) = version.levels().split_last().expect("there are levels");
        memtables.active.len() == 0
            && memtables.frozen.is_empty()
            && upper.iter().all(|level| level.len() == 0)
    }

    async fn collect(&self, id: ExtentId) {
        let purpose = self.extents.borrow().get(id).purpose;
        self.extents.borrow_mut().set_state(id, State::Collecting);
        let outcome = match purpose {
            Purpose::Data => self.collect_data(id).await,
            Purpose::Meta => self.collect_meta(id).await,
        };
        match outcome {
            Ok(()) => self.release(id).await,
            Err(Stopped::Damaged) => {
                self.extents.borrow_mut().set_state(id, State::Quarantined);
                return;
            }
            Err(Stopped::Index(page)) => {
                self.extents.borrow_mut().set_state(id, State::Closed);
                self.fail(page);
                return;
            }
        }
        let mut stats = self.stats.borrow_mut();
        match purpose {
            Purpose::Data => stats.gc_data_extents += 1,
            Purpose::Meta => stats.gc_meta_extents += 1,
        }
    }

    /// Empties an extent that nothing refers to, once nobody can still be on the way to it.
    pub(crate) async fn release(&self, id: ExtentId) {
        self.extents.borrow_mut().set_state(id, State::Releasing);
        if !self.planted.has(Fault::ReleaseEarly) {
            self.epochs.drain().await;
        }
        self.medium.release(id).await;
        self.extents.borrow_mut().set_state(id, State::Free);
        self.work.notify_all();
        self.room.notify_all();
    }

    /// Batches of the extent's pages, read and checked, in order.
    async fn read_batch(
        &self,
        id: ExtentId,
        from: u32,
    ) -> Result<Vec<(PageNo, PageImage)>, Stopped> {
        let (cursor, holes) = {
            let extents = self.extents.borrow();
            let extent = extents.get(id);
            (extent.cursor, extent.holes.clone())
        };
        let to = cursor.min(from + self.batch_pages());
        let reads: Vec<_> = (from..to)
            .map(|index| self.shape.page(id, index))
            .filter(|page| !holes.contains(page))
            .map(|page| (page, self.medium.read(page, IoClass::GcRead)))
            .collect();
        let mut batch = Vec::with_capacity(reads.len());
        for (page, read) in reads {
            let image = read.await.map_err(|_| Stopped::Damaged)?;
            let image = self.check_page(page, image).map_err(|_| Stopped::Damaged)?;
            batch.push((page, image));
        }
        Ok(batch)
    }

    fn batch_pages(&self) -> u32 {
        4 * self.shape.parallelism
    }

    fn batches(&self, id: ExtentId) -> impl Iterator<Item = u32> + use<M> {
        let cursor = self.extents.borrow().get(id).cursor;
        (0..cursor).step_by(self.batch_pages() as usize)
    }

    async fn collect_data(&self, id: ExtentId) -> Result<(), Stopped> {
        let generation = self.extents.borrow().get(id).generation;
        for from in self.batches(id) {
            let mut candidates = Vec::new();
            for (page, image) in self.read_batch(id, from).await? {
                for (piece, head) in data_page::objects(image.bytes()) {
                    candidates.push(Candidate {
                        pointer: self.format.pointer(page, piece, generation),
                        key: head.key.into(),
                        sequence: head.sequence,
                        image: image.clone(),
                        answers: Vec::new(),
                    });
                }
            }
            self.stats.borrow_mut().gc_objects_seen += candidates.len() as u64;
            self.keep_live(candidates).await?;
        }
        Ok(())
    }

    /// Re-inserts those of `candidates` that the index leads to.
    async fn keep_live(&self, mut candidates: Vec<Candidate>) -> Result<(), Stopped> {
        // Held throughout, so that a page number in an answer cannot come to mean another page.
        let _guard = self.epochs.enter();
        while !candidates.is_empty() {
            let mut by_page: BTreeMap<PageNo, Vec<Candidate>> = BTreeMap::new();
            let mut effort = Effort::default();
            for candidate in candidates {
                match self.judge(&candidate, &mut effort) {
                    Verdict::Dead => {}
                    Verdict::Ask(page) => by_page.entry(page).or_default().push(candidate),
                    Verdict::Live => {
                        if let Some((page, again)) = self.move_object(candidate).await? {
                            by_page.entry(page).or_default().push(again);
                        }
                    }
                }
            }
            self.cpu.cores.spend_in_background(self.cpu.costs.of(effort)).await;
            candidates = self.ask(by_page).await?;
        }
        Ok(())
    }

    /// What the index says about an object now. No await: true at this instant.
    fn judge(&self, candidate: &Candidate, effort: &mut Effort) -> Verdict {
        effort.memtables += 1;
        if self.memtables.borrow().get(&candidate.key).is_some() {
            return Verdict::Dead;
        }
        let version = self.version.borrow();
        let key = &candidate.key;
        let mut step = search(&version, key, 0, None, self.format, effort);
        loop {
            let pending = match step {
                Step::Found(pointer) if pointer == candidate.pointer => return Verdict::Live,
                Step::Found(_) | Step::Absent => return Verdict::Dead,
                Step::Read(pending) => pending,
            };
            let answer = candidate.answers.iter().find(|(page, _)| *page == pending.page);
            step = match answer {
                None => return Verdict::Ask(pending.page),
                Some((_, Some(pointer))) => Step::Found(*pointer),
                Some((_, None)) => {
                    let next = pending.level + 1;
                    search(&version, key, next, pending.below, self.format, effort)
                }
            };
        }
    }

    /// Re-inserts one object that was in use a moment ago. If the index must be asked again, the
    /// object comes back with the page to ask.
    async fn move_object(
        &self,
        candidate: Candidate,
    ) -> Result<Option<(PageNo, Candidate)>, Stopped> {
        let value = self.value_of(&candidate).await.map_err(|_| Stopped::Damaged)?;
        self.room.wait_until(|| self.has_memtable_room()).await;
        let verdict = if self.planted.has(Fault::CollectWithoutRecheck) {
            Verdict::Live
        } else {
            self.judge(&candidate, &mut Effort::default())
        };
        match verdict {
            Verdict::Dead => {}
            Verdict::Ask(page) => return Ok(Some((page, candidate))),
            Verdict::Live => {
                self.insert_at(&candidate.key, candidate.sequence, Some(value));
                self.stats.borrow_mut().gc_objects_moved += 1;
            }
        }
        Ok(None)
    }

    async fn value_of(&self, candidate: &Candidate) -> Result<Value, EngineError> {
        let (page, piece) = self.format.locate(candidate.pointer);
        match data_page::find(candidate.image.bytes(), piece, &candidate.key) {
            Some(Found::Whole(value)) => Ok(value),
            Some(Found::Large(head)) => self.read_large(page, head, IoClass::GcRead, &mut 0).await,
            None => Err(EngineError::Corrupt(page)),
        }
    }

    /// Reads each page once and notes for each candidate what it says.
    async fn ask(
        &self,
        by_page: BTreeMap<PageNo, Vec<Candidate>>,
    ) -> Result<Vec<Candidate>, Stopped> {
        let mut answered = Vec::new();
        let mut pages = by_page.into_iter().peekable();
        while pages.peek().is_some() {
            let reads: Vec<_> = pages
                .by_ref()
                .take(self.batch_pages() as usize)
                .map(|(page, asking)| (page, self.medium.read(page, IoClass::GcRead), asking))
                .collect();
            for (page, read, asking) in reads {
                let image = read.await.map_err(|_| Stopped::Index(page))?;
                let image = self.check_meta(page, image).map_err(|_| Stopped::Index(page))?;
                let segment = MetaSegment::new(image.bytes(), self.format).expect("just checked");
                for mut candidate in asking {
                    let found = segment.find(&candidate.key);
                    candidate.answers.push((page, found));
                    answered.push(candidate);
                }
            }
        }
        Ok(answered)
    }

    async fn collect_meta(&self, id: ExtentId) -> Result<(), Stopped> {
        for from in self.batches(id) {
            let mut by_level: BTreeMap<usize, Vec<(PageNo, PageImage)>> = BTreeMap::new();
            for (page, image) in self.read_batch(id, from).await? {
                if let Some(level) = self.owner(page, &image) {
                    by_level.entry(level).or_default().push((page, image));
                }
            }
            for (level, pages) in by_level {
                self.claim(&[level], || true).await;
                self.move_segments(level, pages).await;
                self.unclaim(&[level]);
            }
        }
        // The index must not lose a page whatever the bookkeeping says.
        if self.refers_to(id) { Err(Stopped::Damaged) } else { Ok(()) }
    }

    fn refers_to(&self, id: ExtentId) -> bool {
        let version = self.version.borrow();
        version.levels().iter().flat_map(|level| level.iter()).any(|(_, segment)| {
            matches!(segment.location, Location::Stored(page) if self.shape.extent_of(page) == id)
        })
    }

    /// The level whose list refers to `page`, if any.
    fn owner(&self, page: PageNo, image: &PageImage) -> Option<usize> {
        let version = self.version.borrow();
        (0..version.levels().len())
            .find(|n| self.place_in(version.level(*n), page, image).is_some())
    }

    /// The segment of `level` that is stored in `page`.
    fn place_in(&self, level: &Level, page: PageNo, image: &PageImage) -> Option<usize> {
        let segment = MetaSegment::new(image.bytes(), self.format)?;
        if segment.len() == 0 {
            return None;
        }
        let at = level.covering(segment.key(0), None, &mut Effort::default())?;
        let is_here = matches!(level.segment(at).location, Location::Stored(p) if p == page);
        is_here.then_some(at)
    }

    /// Copies those of `pages` that `level`, which is claimed, still refers to.
    async fn move_segments(&self, level: usize, pages: Vec<(PageNo, PageImage)>) {
        let version = Rc::clone(&self.version.borrow());
        let list = version.level(level);
        let mut places = Vec::new();
        let mut copies = Vec::new();
        for (page, image) in &pages {
            if let Some(at) = self.place_in(list, *page, image) {
                places.push(at);
                copies.push(image.bytes().to_vec());
            }
        }
        let firsts = self.write_segments(copies, IoClass::GcWrite, || 0.5).await;
        let mut edits = Vec::with_capacity(places.len());
        for (at, page) in places.into_iter().zip(&firsts) {
            let Location::Stored(old) = list.segment(at).location else {
                unreachable!("place_in found it stored")
            };
            self.extents.borrow_mut().bury(old);
            let entries = list.segment(at).entries;
            let segment = Segment { location: Location::Stored(*page), entries };
            let new = vec![NamedSegment { first_key: list.first_key(at).into(), segment }];
            edits.push(LevelEdit { level, range: at..at + 1, new });
        }
        self.stats.borrow_mut().gc_pages_moved += firsts.len() as u64;
        self.publish(edits);
    }
}
