//! Garbage collection of the tree: what it has to say to the collector (`pages::collector`).
//!
//! Objects that the index still leads to are re-inserted in the memtable, so that no index page is
//! rewritten for them (`PinK`, slide "Optimizing GC by reinserting valid data to LSM-tree"); meta pages
//! are copied (`collect_segments`).
//!
//! Whether an object is in use is asked of the index from the top, unpinned levels included (the
//! published code leaves those out). The answer is asked for again at the moment of re-insertion,
//! because writes, flushes and compactions go on meanwhile.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use pages::collector::{Candidate, Collected, Next, Stopped, memtables_take, reinsert, value_of};
use pages::effort::Effort;
use pages::front::Front;
use pages::medium::{ExtentId, Medium, Stream};
use pages::operations::Fullness;
use pages::stats::EngineStats;
use pages::store::PageStore;
use pages::store::sweep::WORTH_COLLECTING;
use runtime::IoClass;

use crate::format::entry::Mapping;
use crate::lsm::Inner;
use crate::lsm::columns::{Order, find_in};
use crate::lsm::edit::Edit;
use crate::lsm::location::IndexPage;
use crate::lsm::search::{Step, Told, look_in, search};
use crate::planted::Fault;

/// Collected extents that may wait for snapshots at a time, before no more are collected under
/// snapshots.
const MOST_HELD: usize = 2;

/// Segments are written again sooner than objects, and empty their extents by themselves: as long as there
/// is a choice, meta extents of which more than this share is in use are left alone. Then they hold half as much
/// garbage as segments at most, which is what clients leave room for (`front/freeing.rs`); with more, they
/// would stop where free extents end instead of being paced.
pub(crate) const WORTH_COPYING: f64 = 2.0 / 3.0;

/// An object of a victim that the index is asked about.
struct Asked {
    object: Candidate,
    /// What pages of the index that are not in memory said about the key.
    answers: Vec<(IndexPage, Told)>,
}

enum Verdict {
    Live,
    Dead,
    /// This page has to be asked first.
    Ask(IndexPage),
}

impl<M: Medium> Collected<M> for Inner<M> {
    /// While one is read, others ask the index or wait for memtables.
    const PARTS: u32 = 4;

    fn store(&self) -> &Rc<PageStore<M>> {
        &self.store
    }

    fn front(&self) -> &Front<M> {
        &self.front
    }

    fn stats(&self) -> &RefCell<EngineStats> {
        &self.stats
    }

    fn may_release(&self, id: ExtentId) -> bool {
        let may_go = || self.store.count_is_certain(id) || !self.store.is_pinned(id);
        self.store.is_published(id) && may_go()
    }

    fn count_is_certain(&self, id: ExtentId) -> bool {
        self.store.count_is_certain(id)
    }

    /// When flushes or compactions lack space, meta extents go first, and any garbage will do:
    /// collecting them waits for nobody, and ends, because each gives units back.
    fn victim(&self) -> Option<ExtentId> {
        if !self.is_collection_due() {
            self.set_crowded_out(false);
            return self.take_asked_victim();
        }
        if !self.store.is_healthy() {
            return None;
        }
        if self.is_starved()
            && let Some(id) = self.meta_victim(1.0)
        {
            return Some(id);
        }
        self.note_crowding();
        let asked = if self.manual.garbage_goes_first() { self.take_asked_victim() } else { None };
        asked.or_else(|| self.due_victim()).or_else(|| self.take_asked_victim())
    }

    fn index_victim(&self) -> Option<ExtentId> {
        if self.store.is_healthy() { self.meta_victim(WORTH_COPYING) } else { None }
    }

    fn is_starved(&self) -> bool {
        self.front.flush_is_starved() || self.compaction_is_starved()
    }

    async fn keep_live(self: &Rc<Self>, candidates: Vec<Candidate>) -> Result<(), Stopped> {
        // Held throughout, so that a page number in an answer cannot come to mean another page.
        let _guard = self.store.epochs.enter();
        let asked = |object| Asked { object, answers: Vec::new() };
        let mut candidates: Vec<Asked> = candidates.into_iter().map(asked).collect();
        while !candidates.is_empty() {
            let mut by_page: BTreeMap<IndexPage, Vec<Asked>> = BTreeMap::new();
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

    async fn copy_index(&self, id: ExtentId) -> Result<(), Stopped> {
        self.copy_segments(id).await
    }

    fn is_journaled(&self) -> bool {
        self.manifest.is_some()
    }

    fn retire(self: &Rc<Self>, id: ExtentId) {
        if self.manifest.is_none() {
            return self.store.retire(id);
        }
        let inner = Rc::clone(self);
        let noted =
            async move { inner.publish(Edit { retired: Some(id), ..Edit::default() }).await };
        if self.planted.has(Fault::ReleaseBeforeNoted) {
            return self.store.retire(id);
        }
        self.store.retire_after(id, noted);
    }

    fn note_room(&self) {
        if self.front.fullness.get() != Fullness::Room || self.is_squeezing.get() {
            self.take_puts_again();
        }
    }

    fn rest(&self) -> Next {
        let next = self.consider_being_full();
        if next == Next::Wait && !self.is_giving_space() {
            self.note_rest();
        }
        next
    }
}

impl<M: Medium> Inner<M> {
    /// Whether free extents have become few.
    pub(crate) fn is_collection_due(&self) -> bool {
        self.front.is_short_of_extents(self.options.gc_start)
    }

    /// Notes whether objects cannot be collected, though there is garbage, because there is no space to move them to: what deletes bring into the
    /// index takes it again and again. They wait then. Only where somebody asked for collection, or puts leave room.
    fn note_crowding(&self) {
        let matters = self.manual.asks_for_garbage()
            || self.options.leaves_room && !self.front.has_given_up();
        let is_crowded_out = matters && {
            let is_one = |id: &ExtentId| !self.store.is_pinned(*id);
            let extents = self.store.extents.borrow();
            let find = |may_go: &dyn Fn(ExtentId) -> bool| {
                extents.choose_victim(WORTH_COLLECTING, |id| {
                    extents.get(id).stream == Stream::Objects && is_one(&id) && may_go(id)
                })
            };
            find(&|_| true).is_some() && find(&|id| self.can_be_collected(id)).is_none()
        };
        self.set_crowded_out(is_crowded_out);
    }

    fn set_crowded_out(&self, is_crowded_out: bool) {
        if self.is_crowded_out.replace(is_crowded_out) && !is_crowded_out {
            self.store.room.notify_all();
        }
    }

    /// The collector has nothing to do, and nothing is under way that could change that but writes.
    fn note_rest(&self) {
        self.set_crowded_out(false);
        self.manual.note_rest(&self.store.work);
        if self.rested_after.replace(self.front.writes()) != self.front.writes()
            && self.options.leaves_room
        {
            self.store.room.notify_all(); // a batch that makes room may wait for this
        }
    }

    /// The extent to collect next, where free ones are few and nobody is starved.
    fn due_victim(&self) -> Option<ExtentId> {
        if self.front.has_given_up() {
            // Merges leave garbage of the index when the last write is long past, and to collect that ends.
            return self.meta_victim(WORTH_COLLECTING);
        }
        // A pinned extent is released only when its snapshots are gone. Most are gone soon, so such
        // extents go as well when there are no others, as long as few already wait.
        self.victim_among(|id| !self.store.is_pinned(id)).or_else(|| {
            let few_wait = self.store.held() < MOST_HELD;
            if few_wait { self.victim_among(|_| true) } else { None }
        })
    }

    /// The extent with the least in use; but of objects where clients are paced by what those free. Then
    /// extents of the index go at the same time.
    fn victim_among(&self, may_go: impl Fn(ExtentId) -> bool) -> Option<ExtentId> {
        let data = self.victim_of(Stream::Objects, WORTH_COLLECTING, &may_go);
        let meta = self.victim_of(Stream::Index, WORTH_COPYING, &may_go);
        let extents = self.store.extents.borrow();
        let in_use = |id| extents.utilisation(extents.get(id));
        match (data, meta) {
            (Some(data), Some(meta)) => {
                let takes_data = self.front.is_nearly_paced() || in_use(data) < in_use(meta);
                Some(if takes_data { data } else { meta })
            }
            (None, None) => self.victim_of(Stream::Index, WORTH_COLLECTING, may_go),
            (data, meta) => data.or(meta),
        }
    }

    /// The meta extent with the least in use, if that is less than `limit`.
    fn meta_victim(&self, limit: f64) -> Option<ExtentId> {
        self.victim_of(Stream::Index, limit, |id| !self.store.is_pinned(id))
    }

    /// The extent of a stream with the least in use, if that is less than `limit`; one whose collection,
    /// once begun, comes to its end.
    fn victim_of(
        &self,
        stream: Stream,
        limit: f64,
        may_go: impl Fn(ExtentId) -> bool,
    ) -> Option<ExtentId> {
        let extents = self.store.extents.borrow();
        let is_right = |id| extents.get(id).stream == stream && may_go(id);
        extents.choose_victim(limit, |id| is_right(id) && self.can_be_collected(id))
    }

    /// Whether the collection of an extent, once begun, comes to its end.
    pub(crate) fn can_be_collected(&self, id: ExtentId) -> bool {
        let can_end = match self.store.extents.borrow().get(id).stream {
            Stream::Index => self.can_copy(id),
            Stream::Objects => self.front.can_move(id),
            Stream::Log | Stream::Manifest | Stream::Tables => false,
        };
        can_end && self.store.is_published(id)
    }

    /// What the index says about an object now. No await: true at this instant.
    fn judge(&self, candidate: &Asked, effort: &mut Effort) -> Verdict {
        effort.memtables += 1;
        let Candidate { key, pointer: own, .. } = &candidate.object;
        if self.front.memtables.borrow().get(key).is_some() {
            return Verdict::Dead;
        }
        let version = self.version.borrow();
        let mut step = search(&version, key, 0, None, self.store.format, effort);
        loop {
            let pending = match step {
                Step::Found(Mapping::At(pointer)) if pointer == *own => return Verdict::Live,
                Step::Found(_) | Step::Absent => return Verdict::Dead,
                Step::Read(pending) => pending,
            };
            let answer = candidate.answers.iter().find(|(page, _)| *page == pending.at);
            let Some((_, told)) = answer else { return Verdict::Ask(pending.at) };
            step = pending.go_on(told.clone(), &version, key, self.store.format, effort);
        }
    }

    /// Re-inserts one object that was in use a moment ago. If the index must be asked again, the
    /// object comes back with the page to ask.
    async fn move_object(&self, candidate: Asked) -> Result<Option<(IndexPage, Asked)>, Stopped> {
        let value = value_of(&self.store, &candidate.object).await?;
        while !memtables_take(self).await? {}
        let verdict = if self.store.planted.has(pages::Fault::CollectWithoutRecheck) {
            Verdict::Live
        } else {
            self.judge(&candidate, &mut Effort::default())
        };
        match verdict {
            Verdict::Dead => {}
            Verdict::Ask(page) => return Ok(Some((page, candidate))),
            Verdict::Live => reinsert(self, &candidate.object, value)?,
        }
        Ok(None)
    }

    /// Reads each page once and notes for each candidate what it says.
    async fn ask(&self, by_page: BTreeMap<IndexPage, Vec<Asked>>) -> Result<Vec<Asked>, Stopped> {
        let is_of_table = |at: &IndexPage| at.table().is_some();
        let (tables, pages): (Vec<_>, Vec<_>) =
            by_page.into_iter().partition(|(at, _)| is_of_table(at));
        let mut answered = self.ask_tables(tables).await?;
        let mut pages = pages.into_iter().peekable();
        while pages.peek().is_some() {
            let reads: Vec<_> = pages
                .by_ref()
                .take(self.store.batch_pages() as usize)
                .map(|(at, asking)| (at, self.store.medium.read(at.page, IoClass::GcRead), asking))
                .collect();
            for (at, read, asking) in reads {
                let checked = self.check_index(at, read.await, IoClass::GcRead).await;
                let image = checked.map_err(Stopped::Failed)?;
                for mut candidate in asking {
                    // What looking takes is not charged, as it never was.
                    let (key, uncharged) = (&candidate.object.key, &mut Effort::default());
                    let told = look_in(at, &image, key, self.store.format, uncharged);
                    candidate.answers.push((at, told));
                    answered.push(candidate);
                }
            }
        }
        Ok(answered)
    }

    /// Reads each table in columns once, and notes for each candidate what it says.
    async fn ask_tables(
        &self,
        tables: Vec<(IndexPage, Vec<Asked>)>,
    ) -> Result<Vec<Asked>, Stopped> {
        let mut answered = Vec::new();
        for (at, asking) in tables {
            let table = at.table().expect("they are tables");
            let segments = self.read_table(table, IoClass::GcRead, Order::AtOnce).await;
            let segments = segments.map_err(Stopped::Failed)?;
            for mut candidate in asking {
                let told = find_in(&segments, &candidate.object.key, self.store.format);
                candidate.answers.push((at, Told::Segment(told)));
                answered.push(candidate);
            }
        }
        Ok(answered)
    }
}
