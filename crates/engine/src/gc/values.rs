//! Garbage collection of the tree: the index's side of the collector (`crate::gc`).
//!
//! Objects that the index still refers to are re-inserted into the memtable, so that no index page
//! is rewritten for them (`PinK`, slide "Optimizing GC by reinserting valid data to LSM-tree");
//! meta pages are copied (`segments`).
//!
//! To find out whether an object is live, the index is searched from the top, unpinned levels
//! included (the published code leaves those out). The search is repeated at the moment of
//! re-insertion, because writes, flushes and compactions continue meanwhile.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use runtime::IoClass;

use super::sweep::WORTH_COLLECTING;
use super::{Candidate, Collected, Next, Stopped, memtables_take, reinsert, value_of};
use crate::compaction::columns::{Order, find_in};
use crate::effort::Effort;
use crate::engine::Inner;
use crate::format::entry::Mapping;
use crate::manifest::edit::Edit;
use crate::medium::{ExtentId, Medium, Stream};
use crate::operations::Fullness;
use crate::planted::Fault;
use crate::read::search::{Step, Told, look_in, search};
use crate::space::PageStore;
use crate::stats::EngineStats;
use crate::version::location::IndexPage;
use crate::write::Front;

/// The number of collected extents that may wait for snapshots at a time. Beyond it no pinned
/// extent is collected.
const MOST_HELD: usize = 2;

/// The largest live share of a meta extent that is worth copying, as long as other victims exist.
/// Segments are rewritten sooner than objects, so meta extents become empty by themselves. With
/// this limit meta extents hold at most half as much garbage as live segments, and clients leave
/// room for that much (`write/freeing.rs`); with more garbage, clients would stop when free extents
/// run out instead of being paced.
pub(crate) const WORTH_COPYING: f64 = 2.0 / 3.0;

/// An object of a victim extent whose liveness is looked up in the index.
struct Asked {
    object: Candidate,
    /// The lookup results of index pages that are not in memory.
    answers: Vec<(IndexPage, Told)>,
}

enum Verdict {
    Live,
    Dead,
    /// This index page has to be read first.
    Ask(IndexPage),
}

impl<M: Medium> Collected<M> for Inner<M> {
    /// While one part is read, other parts search the index or wait for memtables.
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

    /// When flushes or compactions lack space, meta extents are collected first, and any amount of
    /// garbage is enough: collecting them waits for no other task, and it ends, because each extent
    /// frees units.
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
        // Held throughout, so that a page number in an answer cannot be reused for another page.
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
    /// Whether few free extents are left.
    pub(crate) fn is_collection_due(&self) -> bool {
        self.front.is_short_of_extents(self.options.gc_start)
    }

    /// Notes whether objects cannot be collected, although garbage exists, because no space is free
    /// to move them to: the index entries of deletes use it up again and again. Deletes wait in
    /// that case. Applies only if a client asked for collection or if puts leave room.
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

    /// Notes that the collector has nothing to do, and that only writes can change that.
    fn note_rest(&self) {
        self.set_crowded_out(false);
        self.manual.note_rest(&self.store.work);
        if self.rested_after.replace(self.front.writes()) != self.front.writes()
            && self.options.leaves_room
        {
            self.store.room.notify_all(); // a batch that makes room may wait for this
        }
    }

    /// Returns the extent to collect next when free extents are few and no flush or compaction
    /// lacks space.
    fn due_victim(&self) -> Option<ExtentId> {
        if self.front.has_given_up() {
            // Merges produce index garbage long after the last write. Collecting it ends, so it is
            // collected even now.
            return self.meta_victim(WORTH_COLLECTING);
        }
        // A pinned extent is released only when its snapshots are gone. Most snapshots end soon, so
        // pinned extents are also collected if there are no others and few of them already wait.
        self.victim_among(|id| !self.store.is_pinned(id)).or_else(|| {
            let few_wait = self.store.held() < MOST_HELD;
            if few_wait { self.victim_among(|_| true) } else { None }
        })
    }

    /// Returns the extent with the least live data, or an extent of objects if clients are paced by
    /// the space that object collection frees. Index extents are collected in parallel then.
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

    /// Returns the meta extent with the smallest live share, if that is less than `limit`.
    fn meta_victim(&self, limit: f64) -> Option<ExtentId> {
        self.victim_of(Stream::Index, limit, |id| !self.store.is_pinned(id))
    }

    /// Returns the extent of a stream with the smallest live share, if that is less than `limit`
    /// and if the extent's collection can run to its end.
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

    /// Whether the collection of an extent can run to its end once begun.
    pub(crate) fn can_be_collected(&self, id: ExtentId) -> bool {
        let can_end = match self.store.extents.borrow().get(id).stream {
            Stream::Index => self.can_copy(id),
            Stream::Objects => self.front.can_move(id),
            Stream::Log | Stream::Manifest | Stream::Tables => false,
        };
        can_end && self.store.is_published(id)
    }

    /// Searches the index for an object. Does not await, so the verdict holds at this instant.
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

    /// Re-inserts an object that was live a moment ago. If another index page must be read first,
    /// returns the object with that page.
    async fn move_object(&self, candidate: Asked) -> Result<Option<(IndexPage, Asked)>, Stopped> {
        let value = value_of(&self.store, &candidate.object).await?;
        while !memtables_take(self).await? {}
        let verdict = if self.store.planted.has(crate::planted::Fault::CollectWithoutRecheck) {
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

    /// Reads each page once and notes the lookup result for each candidate.
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
                    // The processor time of these lookups is not charged.
                    let (key, uncharged) = (&candidate.object.key, &mut Effort::default());
                    let told = look_in(at, &image, key, self.store.format, uncharged);
                    candidate.answers.push((at, told));
                    answered.push(candidate);
                }
            }
        }
        Ok(answered)
    }

    /// Reads each columnar table once and notes the lookup result for each candidate.
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
