//! The frame of garbage collection, which tree and hash table share: a task that keeps extents free.
//!
//! An extent in which nothing is in use is released as it is. Otherwise, when free extents run low, a
//! victim is read batch by batch, and those of its objects that the index still leads to are
//! re-inserted in the memtable as if newly written; what is in use of an index's own pages is copied.
//! Then the extent is retired. A page that is damaged keeps the extent as it is, until the store is opened again; one that cannot be
//! read does so for a while (`store::unread`).
//!
//! What an index has to say about it comes through [`Collected`].

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use runtime::{IoClass, PageImage, join_all};

use crate::error::EngineError;
use crate::format::data_page;
use crate::format::object::Sequence;
use crate::format::page::PageFault;
use crate::format::pointer::Pointer;
use crate::format::value::Value;
use crate::front::freeing::{Freeing, Place};
use crate::front::{Front, Index};
use crate::medium::{ExtentId, Medium, Stream};
use crate::planted::Fault;
use crate::stats::EngineStats;
use crate::store::PageStore;
use crate::store::extent::State;
use crate::store::unread::PAUSE;

/// What the collector asks of an index.
#[expect(async_fn_in_trait, reason = "one executor on one thread: futures are never sent")]
pub trait Collected<M: Medium>: Index + 'static {
    /// Parts of a batch of pages that are under way side by side, when objects are collected.
    const PARTS: u32;

    /// The pages.
    fn store(&self) -> &Rc<PageStore<M>>;

    /// Where objects that are in use go.
    fn front(&self) -> &Front<M>;

    /// Where the work is counted.
    fn stats(&self) -> &RefCell<EngineStats>;

    /// Whether a closed extent with nothing in use is the collector's to release.
    fn may_release(&self, id: ExtentId) -> bool;

    /// Whether an extent's count of what is in use can be relied on. Otherwise it is read first.
    fn count_is_certain(&self, id: ExtentId) -> bool;

    /// The extent to collect next, if free ones run low.
    fn victim(&self) -> Option<ExtentId>;

    /// An extent of the index to collect while objects are, if one is worth it.
    fn index_victim(&self) -> Option<ExtentId>;

    /// Whether what is moved cannot be flushed before space comes from elsewhere.
    fn is_starved(&self) -> bool;

    /// Re-inserts ([`reinsert`]) those of `candidates` that the index leads to at that instant.
    async fn keep_live(self: &Rc<Self>, candidates: Vec<Candidate>) -> Result<(), Stopped>;

    /// Copies what is in use of an extent with pages of the index.
    async fn copy_index(&self, id: ExtentId) -> Result<(), Stopped>;

    /// Whether memory is lost when power fails, and what was moved there with it.
    fn is_journaled(&self) -> bool;

    /// Retires an extent that nothing refers to; with a note in the manifest, if there is one.
    fn retire(self: &Rc<Self>, id: ExtentId);

    /// An extent has gone: lets clients of a full store write again if that gave them room.
    fn note_room(&self);

    /// There is nothing to collect: considers whether the store is full.
    fn rest(&self) -> Next;
}

/// What the collector does when it has nothing to collect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// There may be something now.
    LookAgain,
    /// Something has to happen first.
    Wait,
}

/// An object of a victim.
pub struct Candidate {
    /// Where it begins.
    pub pointer: Pointer,
    /// Its key.
    pub key: Box<[u8]>,
    pub(crate) sequence: Sequence,
    /// The page it begins in.
    image: PageImage,
    _place: Place,
}

/// Why an extent could not be emptied.
pub enum Stopped {
    /// The medium failed, or a page of the index is damaged, so nobody can tell what is in use.
    Failed(EngineError),
    /// A page of it that may hold something in use is damaged: it must not be released.
    Damaged,
    /// A page of it cannot be read, perhaps for a moment.
    Unreadable,
    /// What is moved could not be flushed: space has to come from elsewhere first.
    Starved,
}

impl Stopped {
    /// What an error that was met in the extent itself means.
    pub fn by(error: EngineError) -> Self {
        match error {
            EngineError::Corrupt(_, PageFault::Unreadable) => Self::Unreadable,
            EngineError::Corrupt(..) => Self::Damaged,
            other => Self::Failed(other),
        }
    }

    /// Of two reasons the one that says more.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (_, failed @ Self::Failed(_)) => failed,
            (Self::Starved, other) | (Self::Unreadable, other @ Self::Damaged) => other,
            (own, _) => own,
        }
    }
}

/// The task that keeps extents free, for ever.
pub async fn collect_forever<M: Medium, I: Collected<M>>(index: Rc<I>) {
    loop {
        index.note_room();
        let empty = index.store().empty_extent(|id, _| index.may_release(id));
        if let Some(id) = empty {
            if index.count_is_certain(id) {
                index.stats().borrow_mut().gc_empty_extents += 1;
                index.retire(id);
            } else {
                collect(&index, id).await;
            }
            continue;
        }
        if let Some(id) = index.victim() {
            let of_objects = index.store().extents.borrow().get(id).stream == Stream::Objects;
            if collect(&index, id).await {
                let front = index.front();
                let has_room = front.has_extents_for_clients();
                front.sweep.note_collected(of_objects, has_room, front.writes());
            }
            continue;
        }
        flush_what_was_moved(&*index);
        // Nobody knows whether the store is full before what is under way has ended, and what could not be read was tried again.
        let is_open = || index.front().collects_index.get() || index.store().reads_again_soon();
        if is_open() || index.rest() == Next::Wait {
            index.store().work.notified().await;
        }
    }
}

/// Moves what is in use out of an extent and retires it. Whether all that was read of it could be.
async fn collect<M: Medium, I: Collected<M>>(index: &Rc<I>, id: ExtentId) -> bool {
    index.front().make_progress();
    let stream = index.store().extents.borrow().get(id).stream;
    match stream {
        Stream::Objects => collect_by(index, id, collect_objects(index, id)).await,
        Stream::Index => collect_by(index, id, index.copy_index(id)).await,
        Stream::Log | Stream::Manifest | Stream::Tables => {
            unreachable!("extents of {stream:?} empty themselves")
        }
    }
}

/// Collects an extent by `work`, which has not begun yet. Whether all that was read could be.
async fn collect_by<M: Medium, I: Collected<M>>(
    index: &Rc<I>,
    id: ExtentId,
    work: impl Future<Output = Result<(), Stopped>>,
) -> bool {
    let moved_so_far = || index.stats().borrow().gc_objects_moved;
    index.store().extents.borrow_mut().set_state(id, State::Collecting);
    let before = moved_so_far();
    let outcome = work.await;
    if outcome.is_err() {
        index.store().extents.borrow_mut().forget_moved(id, moved_so_far() - before);
    }
    end_with_pause(index, id, outcome).await
}

/// Does what [`end`] does. Pauses if the extent could not be read, and says whether it could be.
async fn end_with_pause<M: Medium, I: Collected<M>>(
    index: &Rc<I>,
    id: ExtentId,
    outcome: Result<(), Stopped>,
) -> bool {
    let is_read = !matches!(outcome, Err(Stopped::Unreadable));
    end(index, id, outcome);
    if !is_read {
        index.store().handle.sleep(PAUSE).await;
    }
    is_read
}

/// Retires an extent that was emptied, or leaves it as it is.
fn end<M: Medium, I: Collected<M>>(index: &Rc<I>, id: ExtentId, outcome: Result<(), Stopped>) {
    let store = index.store();
    let stream = store.extents.borrow().get(id).stream;
    let state = match outcome {
        Ok(()) => {
            let live = store.extents.borrow().get(id).live;
            // Of objects, entries stay until those that were moved are flushed.
            let is_empty = stream == Stream::Objects || live == 0;
            store.forget_unread(id);
            assert!(is_empty, "no level has a page in extent {}, and {live} count", id.0);
            retire_moved(index, id);
            return index.stats().borrow_mut().count_collected(stream);
        }
        Err(Stopped::Damaged) => {
            index.stats().borrow_mut().gc_quarantined_extents += 1;
            State::Quarantined
        }
        Err(Stopped::Unreadable) => {
            let is_first = store.keep_unread(id);
            index.stats().borrow_mut().gc_quarantined_extents += u64::from(is_first);
            return;
        }
        Err(Stopped::Failed(error)) => {
            store.fail(error);
            State::Closed
        }
        Err(Stopped::Starved) => State::Closed,
    };
    store.extents.borrow_mut().set_state(id, state);
}

/// Retires an extent that everything in use was moved out of. Where memory does not survive, what was
/// moved has to be flushed first: until then the index leads there.
fn retire_moved<M: Medium, I: Collected<M>>(index: &Rc<I>, id: ExtentId) {
    let store = index.store();
    let is_data = store.extents.borrow().get(id).stream == Stream::Objects;
    let waits = !store.planted.has(Fault::ReleaseBeforeMoved);
    if is_data && waits && index.is_journaled() {
        index.front().note_moved(id);
        retire_flushed(index);
    } else {
        index.retire(id);
    }
}

/// Retires the extents whose objects have been flushed where they were moved to.
pub fn retire_flushed<M: Medium, I: Collected<M>>(index: &Rc<I>) {
    for id in index.front().take_flushed_moved() {
        index.retire(id);
    }
}

/// Does not wait for clients to fill the memtable that extents wait for.
fn flush_what_was_moved<M: Medium>(index: &impl Collected<M>) {
    let front = index.front();
    if !index.store().moved.borrow().is_empty() && !front.has_space_for_clients() {
        front.freeze_active();
    }
}

/// Re-inserts what is in use of an extent with objects, in parts side by side; clients may write what is
/// freed meanwhile. What is moved makes garbage of the index, whose extents are collected beside it.
async fn collect_objects<M: Medium, I: Collected<M>>(
    index: &Rc<I>,
    id: ExtentId,
) -> Result<(), Stopped> {
    let store = index.store();
    let pages = (store.batch_pages() / I::PARTS).max(1);
    let batches: Vec<Range<u32>> = store.batches(id, pages).collect();
    let freeing = index.front().begin_freeing(id);
    let batches = RefCell::new(batches.into_iter());
    let has_stopped = Cell::new(false);
    let worker = || async {
        while !has_stopped.get() {
            collect_index_beside(index);
            let Some(batch) = batches.borrow_mut().next() else { break };
            let outcome = collect_batch(index, id, batch, &freeing).await;
            freeing.tell();
            has_stopped.set(has_stopped.get() || outcome.is_err());
            outcome?;
        }
        Ok(())
    };
    let outcomes = join_all((0..I::PARTS).map(|_| worker())).await;
    let stops = outcomes.into_iter().filter_map(Result::err);
    stops.reduce(Stopped::or).map_or(Ok(()), Err)
}

/// Begins to collect an extent of the index, if one is worth it and no other is under way. Objects do not wait
/// for it: clients are paced by what those free, and the next victim is not to begin late.
fn collect_index_beside<M: Medium, I: Collected<M>>(index: &Rc<I>) {
    let is_under_way = &index.front().collects_index;
    if is_under_way.get() {
        return;
    }
    let Some(id) = index.index_victim() else { return };
    is_under_way.set(true);
    index.store().extents.borrow_mut().set_state(id, State::Collecting);
    let index = Rc::clone(index);
    let handle = index.store().handle.clone();
    handle.spawn("collection of an extent of the index", async move {
        let outcome = index.copy_index(id).await;
        end_with_pause(&index, id, outcome).await;
        index.front().collects_index.set(false);
        index.store().work.notify_all();
    });
}

async fn collect_batch<M: Medium, I: Collected<M>>(
    index: &Rc<I>,
    id: ExtentId,
    batch: Range<u32>,
    freeing: &Freeing<'_, M>,
) -> Result<(), Stopped> {
    let store = index.store();
    let mut candidates = Vec::new();
    for (page, image) in store.read_batch(id, batch).await.map_err(Stopped::by)? {
        let objects = data_page::objects(image.bytes()).ok_or(Stopped::Damaged)?;
        for (piece, head) in objects {
            let pointer = store.pointer_to(page, piece, &head);
            candidates.push(Candidate {
                pointer: pointer.ok_or(Stopped::Damaged)?,
                key: head.key.into(),
                sequence: head.sequence,
                image: image.clone(),
                _place: freeing.place(),
            });
        }
    }
    index.stats().borrow_mut().gc_objects_seen += candidates.len() as u64;
    index.keep_live(candidates).await
}

/// The value of an object, read where it goes on beyond its first page.
///
/// # Errors
/// [`Stopped`]: a page of it is damaged, or the medium failed.
pub async fn value_of<M: Medium>(
    store: &PageStore<M>,
    object: &Candidate,
) -> Result<Value, Stopped> {
    let Candidate { image, key, pointer, .. } = object;
    let value = store.value_in(image, key, *pointer, IoClass::GcRead, &mut 0).await;
    value.map_err(Stopped::by)
}

/// Whether the memtables take an object now. If not, this returns when that may have changed. Clients
/// that wait for memtables go first: they are few, and what is collected could fill one after the other.
///
/// # Errors
/// [`Stopped::Starved`]: that will not change before space comes from elsewhere.
pub async fn memtables_take<M: Medium>(index: &impl Collected<M>) -> Result<bool, Stopped> {
    let (store, front) = (index.store(), index.front());
    if front.has_memtable_room() {
        if !front.clients_may_go() {
            return Ok(true);
        }
        let before = front.writes();
        store.handle.yield_now().await;
        // As long as clients come, they are let in.
        return Ok(front.writes() == before && front.has_memtable_room());
    }
    if index.is_starved() || !store.is_healthy() {
        return Err(Stopped::Starved);
    }
    store.room.notified().await;
    Ok(false)
}

/// Puts an object in the memtable as if newly written. The index led to it at this instant, and the
/// memtables take it.
///
/// # Errors
/// [`Stopped::Failed`]: it says of itself that it is newer than any write there was.
pub fn reinsert<M: Medium>(
    index: &impl Collected<M>,
    object: &Candidate,
    value: Value,
) -> Result<(), Stopped> {
    if object.sequence > index.front().sequence.get() {
        let error = index.store().contradicts_itself("an object is newer than any write");
        return Err(Stopped::Failed(error));
    }
    index.front().insert_at(index, &object.key, object.sequence, Some(value));
    index.stats().borrow_mut().gc_objects_moved += 1;
    Ok(())
}
