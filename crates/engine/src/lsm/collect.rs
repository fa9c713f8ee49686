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

use crate::effort::Effort;
use crate::error::EngineError;
use crate::format::data_page;
use crate::format::meta_segment::MetaSegment;
use crate::format::object::Sequence;
use crate::format::pointer::Pointer;
use crate::lsm::Inner;
use crate::lsm::edit::Edit;
use crate::lsm::fullness::Next;
use crate::lsm::level::{Level, Location, NamedSegment, Segment};
use crate::lsm::search::{Step, search};
use crate::lsm::version::LevelEdit;
use crate::planted::Fault;
use crate::store::extents::{Extent, State};
use crate::store::medium::{ExtentId, Medium, PageNo, Stream};
use crate::store::space::{Claimant, Promise};
use crate::store::sweep::WORTH_COLLECTING;

/// Collected extents that may wait for snapshots at a time, before no more are collected under
/// snapshots.
const MOST_HELD: usize = 2;

/// An object of a victim.
struct Candidate {
    pointer: Pointer,
    key: Box<[u8]>,
    sequence: Sequence,
    image: PageImage,
    /// What meta pages that are not in memory said about the key.
    answers: Vec<(PageNo, Option<Pointer>)>,
}

/// A segment of the index that was copied.
struct Moved {
    from: PageNo,
    to: PageNo,
    image: PageImage,
}

enum Verdict {
    Live,
    Dead,
    /// This page has to be asked first.
    Ask(PageNo),
}

/// Why an extent could not be emptied.
enum Stopped {
    /// The medium failed.
    Failed(EngineError),
    /// A page of it that may hold something in use is damaged: it must not be released.
    Damaged,
    /// A page of the index is damaged, so nobody can tell what is in use.
    Index(EngineError),
    /// What is moved could not be flushed: space has to come from elsewhere first.
    Starved,
}

impl Stopped {
    /// What an error that was met in the extent itself means.
    fn by(error: EngineError) -> Self {
        match error {
            EngineError::Corrupt(..) => Self::Damaged,
            other => Self::Failed(other),
        }
    }
}

impl<M: Medium> Inner<M> {
    /// The task that keeps extents free, for ever.
    pub(crate) async fn collect_forever(self: Rc<Self>) {
        loop {
            if let Some(id) = self.empty_extent() {
                if self.store.count_is_certain(id) {
                    self.stats.borrow_mut().gc_empty_extents += 1;
                    self.retire(id);
                } else {
                    self.collect(id).await;
                }
                continue;
            }
            if let Some(id) = self.victim() {
                self.collect(id).await;
                self.front.sweep.note_collected(self.front.has_extents_for_clients());
                continue;
            }
            self.flush_what_was_moved();
            if self.consider_being_full() == Next::Wait {
                self.store.work.notified().await;
            }
        }
    }

    /// A closed extent in which nothing is in use.
    fn empty_extent(&self) -> Option<ExtentId> {
        let extents = self.store.extents.borrow();
        let is_empty = |extent: &Extent| extent.state == State::Closed && extent.live == 0;
        let mut empty = extents.iter().filter(|(_, extent)| is_empty(extent));
        let is_certain = |id| self.store.count_is_certain(id) || !self.store.is_pinned(id);
        let may_go = |id| self.store.is_published(id) && is_certain(id);
        empty.find(|(id, _)| may_go(*id)).map(|(id, _)| id)
    }

    /// The extent to collect next, if free ones run low. When flushes or compactions lack space,
    /// meta extents go first, and any garbage will do: collecting them waits for nobody, and ends,
    /// because each gives units back.
    fn victim(&self) -> Option<ExtentId> {
        let is_due = self.store.extents_in_sight() < self.collect_below();
        if !is_due || !self.store.is_healthy() {
            return None;
        }
        if self.is_starved()
            && let Some(id) = self.meta_victim()
        {
            return Some(id);
        }
        if self.front.has_given_up() {
            return None;
        }
        // A pinned extent is released only when its snapshots are gone. Most are gone soon, so such
        // extents go as well when there are no others, as long as few already wait.
        self.victim_among(|id| !self.store.is_pinned(id)).or_else(|| {
            let few_wait = self.store.held() < MOST_HELD;
            if few_wait { self.victim_among(|_| true) } else { None }
        })
    }

    fn victim_among(&self, may_go: impl Fn(ExtentId) -> bool) -> Option<ExtentId> {
        let extents = self.store.extents.borrow();
        let is_meta = |id| extents.get(id).stream == Stream::Index;
        let is_data = |id| extents.get(id).stream == Stream::Objects;
        let may_go = |id| self.store.is_published(id) && may_go(id);
        let can_end =
            |id| is_meta(id) && self.can_copy(id) || is_data(id) && self.front.can_move(id);
        let may_go = |id| can_end(id) && may_go(id);
        extents.choose_victim(WORTH_COLLECTING, may_go)
    }

    /// The meta extent with the least in use, whatever it is.
    fn meta_victim(&self) -> Option<ExtentId> {
        let extents = self.store.extents.borrow();
        let is_meta = |id| extents.get(id).stream == Stream::Index;
        let may_go = |id| self.store.is_published(id) && !self.store.is_pinned(id);
        extents.choose_victim(1.0, |id| is_meta(id) && self.can_copy(id) && may_go(id))
    }

    /// Whether collecting a meta extent gives units back, and there is space for what is in use in
    /// it. Chosen without, it would be given up and chosen again at once, for ever.
    fn can_copy(&self, id: ExtentId) -> bool {
        let pages = self.pages_to_move(id);
        pages < self.store.shape.pages_per_extent
            && self.store.can_promise(Stream::Index, pages, Claimant::Collection)
    }

    /// Free extents below which collection starts.
    fn collect_below(&self) -> usize {
        let share = (f64::from(self.store.shape.extents) * self.options.gc_start).ceil() as usize;
        share.max(self.front.client_reserve(&self.store.extents.borrow()) + 2)
    }

    /// Moves what is in use out of an extent and retires it.
    async fn collect(self: &Rc<Self>, id: ExtentId) {
        self.front.make_progress();
        let stream = self.store.extents.borrow().get(id).stream;
        self.store.extents.borrow_mut().set_state(id, State::Collecting);
        let outcome = match stream {
            Stream::Objects => self.collect_data(id).await,
            Stream::Index => self.collect_meta(id).await,
            Stream::Log | Stream::Manifest => {
                unreachable!("the journal's extents empty themselves")
            }
        };
        let Err(stopped) = outcome else {
            self.retire_moved(id);
            let mut stats = self.stats.borrow_mut();
            match stream {
                Stream::Objects => stats.gc_data_extents += 1,
                _ => stats.gc_meta_extents += 1,
            }
            return;
        };
        let state = match stopped {
            Stopped::Damaged => {
                self.stats.borrow_mut().gc_quarantined_extents += 1;
                State::Quarantined
            }
            Stopped::Index(_) | Stopped::Failed(_) | Stopped::Starved => State::Closed,
        };
        self.store.extents.borrow_mut().set_state(id, state);
        if let Stopped::Index(error) | Stopped::Failed(error) = stopped {
            self.store.fail(error);
        }
    }

    /// Retires an extent that everything in use was moved out of. Where memory does not survive, what
    /// was moved has to be flushed first.
    fn retire_moved(self: &Rc<Self>, id: ExtentId) {
        let is_data = self.store.extents.borrow().get(id).stream == Stream::Objects;
        let waits = !self.store.planted.has(Fault::ReleaseBeforeMoved);
        if is_data && waits && self.manifest.is_some() {
            self.front.note_moved(id);
            self.retire_flushed();
        } else {
            self.retire(id);
        }
    }

    /// Retires the extents whose objects have been flushed where they were moved to.
    pub(crate) fn retire_flushed(self: &Rc<Self>) {
        for id in self.front.take_flushed_moved() {
            self.retire(id);
        }
    }

    /// Does not wait for clients to fill the memtable that extents wait for.
    fn flush_what_was_moved(&self) {
        if !self.store.moved.borrow().is_empty() && !self.has_extents_for_clients_now() {
            self.front.freeze_active();
        }
    }

    /// Retires an extent; where memory does not survive, with a note in the manifest.
    fn retire(self: &Rc<Self>, id: ExtentId) {
        if self.manifest.is_none() {
            return self.store.retire(id);
        }
        let inner = Rc::clone(self);
        let noted =
            async move { inner.publish(Edit { retired: Some(id), ..Edit::default() }).await };
        if self.store.planted.has(Fault::ReleaseBeforeNoted) {
            return self.store.retire(id);
        }
        self.store.retire_after(id, noted);
    }

    async fn collect_data(&self, id: ExtentId) -> Result<(), Stopped> {
        for from in self.store.batches(id) {
            let mut candidates = Vec::new();
            for (page, image) in self.store.read_batch(id, from).await.map_err(Stopped::by)? {
                let objects = data_page::objects(image.bytes()).ok_or(Stopped::Damaged)?;
                for (piece, head) in objects {
                    let pointer = self.store.pointer_to(page, piece, &head);
                    candidates.push(Candidate {
                        pointer: pointer.ok_or(Stopped::Damaged)?,
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
        let _guard = self.store.epochs.enter();
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
            self.store.cpu.cores.spend_in_background(self.store.cpu.costs.of(effort)).await;
            candidates = self.ask(by_page).await?;
        }
        Ok(())
    }

    /// What the index says about an object now. No await: true at this instant.
    fn judge(&self, candidate: &Candidate, effort: &mut Effort) -> Verdict {
        effort.memtables += 1;
        if self.front.memtables.borrow().get(&candidate.key).is_some() {
            return Verdict::Dead;
        }
        let version = self.version.borrow();
        let key = &candidate.key;
        let mut step = search(&version, key, 0, None, self.store.format, effort);
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
                    search(&version, key, next, pending.below, self.store.format, effort)
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
        let Candidate { image, key, pointer, .. } = &candidate;
        let value = self.store.value_in(image, key, *pointer, IoClass::GcRead, &mut 0).await;
        let value = value.map_err(Stopped::by)?;
        while !self.front.has_memtable_room() {
            if self.is_starved() {
                return Err(Stopped::Starved);
            }
            self.store.room.notified().await;
        }
        let verdict = if self.store.planted.has(Fault::CollectWithoutRecheck) {
            Verdict::Live
        } else {
            self.judge(&candidate, &mut Effort::default())
        };
        match verdict {
            Verdict::Dead => {}
            Verdict::Ask(page) => return Ok(Some((page, candidate))),
            Verdict::Live => {
                self.front.insert_at(self, &candidate.key, candidate.sequence, Some(value));
                self.stats.borrow_mut().gc_objects_moved += 1;
            }
        }
        Ok(None)
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
                .take(self.store.batch_pages() as usize)
                .map(|(page, asking)| (page, self.store.medium.read(page, IoClass::GcRead), asking))
                .collect();
            for (page, read, asking) in reads {
                let checked = self.store.check_meta(page, read.await);
                let image = checked.map_err(Stopped::Index)?;
                let segment =
                    MetaSegment::new(image.bytes(), self.store.format).expect("just checked");
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
        let most = self.pages_to_move(id);
        let promise = self.store.try_promise(Stream::Index, most, Claimant::Collection);
        let mut promise = promise.ok_or(Stopped::Starved)?;
        let unit = self.store.shape.append_unit as usize;
        let mut pages = Vec::new();
        for from in self.store.batches(id) {
            pages.extend(self.store.read_batch(id, from).await.map_err(Stopped::by)?);
            pages.retain(|(page, image)| self.owner(*page, image).is_some());
            // What does not fill a unit goes with the next batch.
            let rest = pages.split_off(pages.len() - pages.len() % unit);
            let whole = std::mem::replace(&mut pages, rest);
            let share = promise.split(whole.len() as u32);
            self.move_segments(whole, share).await.map_err(Stopped::Failed)?;
        }
        self.move_segments(pages, promise).await.map_err(Stopped::Failed)?;
        // The index must not lose a page whatever the bookkeeping says.
        if self.refers_to(id) { Err(Stopped::Damaged) } else { Ok(()) }
    }

    /// Pages that moving the segments of a meta extent takes at most.
    fn pages_to_move(&self, id: ExtentId) -> u32 {
        self.store.in_units(self.store.extents.borrow().get(id).live)
    }

    fn refers_to(&self, id: ExtentId) -> bool {
        let version = self.version.borrow();
        version.levels().iter().flat_map(|level| level.iter()).any(|(_, segment)| {
            segment.location.page().is_some_and(|page| self.store.shape.extent_of(page) == id)
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
        let segment = MetaSegment::new(image.bytes(), self.store.format)?;
        if segment.len() == 0 {
            return None;
        }
        let at = level.covering(segment.key(0), None, &mut Effort::default())?;
        let is_here = level.segment(at).location.page() == Some(page);
        is_here.then_some(at)
    }

    /// Copies those of `pages` that the index still refers to, of all levels together, so that they
    /// fill whole units.
    async fn move_segments(
        &self,
        mut pages: Vec<(PageNo, PageImage)>,
        promise: Promise<'_>,
    ) -> Result<(), EngineError> {
        pages.retain(|(page, image)| self.owner(*page, image).is_some());
        let bytes = pages.iter().map(|(_, image)| image.bytes().to_vec()).collect();
        let copies = self.store.write_segments(bytes, promise, IoClass::GcWrite, || 0.5).await?;
        self.stats.borrow_mut().gc_pages_moved += copies.len() as u64;
        let mut by_level: BTreeMap<Option<usize>, Vec<Moved>> = BTreeMap::new();
        for ((from, image), to) in pages.into_iter().zip(copies) {
            let level = self.owner(from, &image);
            by_level.entry(level).or_default().push(Moved { from, to, image });
        }
        for (level, moved) in by_level {
            let Some(level) = level else {
                self.forget_copies(&moved);
                continue;
            };
            self.claim(&[level], || true).await;
            let outcome = self.refer_to_copies(level, &moved).await;
            self.unclaim(&[level]);
            outcome?;
        }
        Ok(())
    }

    /// `level`, which is claimed, refers to copies instead of what was copied. Where it does not
    /// refer to that any more, the copy is garbage.
    async fn refer_to_copies(&self, level: usize, moved: &[Moved]) -> Result<(), EngineError> {
        let version = Rc::clone(&self.version.borrow());
        let list = version.level(level);
        let mut edits = Vec::with_capacity(moved.len());
        for copy in moved {
            let Some(at) = self.place_in(list, copy.from, &copy.image) else {
                self.forget_copies(std::slice::from_ref(copy));
                continue;
            };
            let (entries, old) = (list.segment(at).entries, &list.segment(at).location);
            let location = match old.image() {
                Some(image) => Location::Cached(copy.to, image.clone()),
                None => Location::Stored(copy.to),
            };
            let segment = Segment::new(location, entries, &self.pool);
            let (first_key, filter) = (list.first_key(at).into(), list.filter(at).cloned());
            let new = vec![NamedSegment { first_key, segment, filter }];
            edits.push(LevelEdit { level, range: at..at + 1, new });
        }
        if edits.is_empty() { Ok(()) } else { self.publish(self.edit_of(edits)).await }
    }

    /// Copies that came too late are garbage.
    fn forget_copies(&self, copies: &[Moved]) {
        self.store.forget_pages(copies.iter().map(|copy| copy.to));
    }
}
