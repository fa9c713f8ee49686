//! Garbage collection: the task that keeps extents free. Tree and hash table share it.
//!
//! An extent without live items is released unread. Otherwise, when few extents are free, a victim
//! is read in batches. Its objects that the index still refers to are re-inserted in the memtable
//! as if newly written; live index pages are copied. Then the extent is retired. An extent with a
//! damaged page is kept unchanged until the store is opened again; one with an unreadable page is
//! kept for a while (`space::unread`).
//!
//! The index takes part through [`Collected`].

pub(crate) mod copying;
pub(crate) mod fullness;
pub(crate) mod segments;
pub(crate) mod sweep;
pub(crate) mod values;

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
use crate::medium::{ExtentId, Medium, Stream};
use crate::planted::Fault;
use crate::space::PageStore;
use crate::space::extent::State;
use crate::space::unread::PAUSE;
use crate::stats::EngineStats;
use crate::write::freeing::{Freeing, Place};
use crate::write::{Front, Index};

/// The index, as the collector uses it.
pub(crate) trait Collected<M: Medium>: Index + 'static {
    /// The number of parts of a batch of pages that are processed in parallel when objects are
    /// collected.
    const PARTS: u32;

    /// Returns the page store.
    fn store(&self) -> &Rc<PageStore<M>>;

    /// Returns the front, into which live objects are re-inserted.
    fn front(&self) -> &Front<M>;

    /// Returns the counters of the work.
    fn stats(&self) -> &RefCell<EngineStats>;

    /// Whether the collector may release a closed extent without live items.
    fn may_release(&self, id: ExtentId) -> bool;

    /// Whether an extent's count of live items is reliable. Otherwise the extent is read first.
    fn count_is_certain(&self, id: ExtentId) -> bool;

    /// Returns the extent to collect next, if few extents are free.
    fn victim(&self) -> Option<ExtentId>;

    /// Returns an index extent to collect in parallel to objects, if one is worth it.
    fn index_victim(&self) -> Option<ExtentId>;

    /// Whether moved objects cannot be flushed before space is freed elsewhere.
    fn is_starved(&self) -> bool;

    /// Re-inserts ([`reinsert`]) the `candidates` that the index refers to at that moment.
    async fn keep_live(self: &Rc<Self>, candidates: Vec<Candidate>) -> Result<(), Stopped>;

    /// Copies the live pages of an index extent.
    async fn copy_index(&self, id: ExtentId) -> Result<(), Stopped>;

    /// Whether a power cut loses the memtables, including the objects moved into them.
    fn is_journaled(&self) -> bool;

    /// Retires an extent that nothing refers to, with a note in the manifest, if there is one.
    fn retire(self: &Rc<Self>, id: ExtentId);

    /// Lets clients of a full store write again if enough space was freed.
    fn note_room(&self);

    /// Called when nothing can be collected: decides whether the store is full.
    fn rest(&self) -> Next;
}

/// The next step of a collector that has nothing to collect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// Look for a victim again.
    LookAgain,
    /// Wait for an event.
    Wait,
}

/// An object of a victim.
pub(crate) struct Candidate {
    /// The pointer to its first page.
    pub pointer: Pointer,
    /// Its key.
    pub key: Box<[u8]>,
    pub(crate) sequence: Sequence,
    /// The contents of its first page.
    image: PageImage,
    _place: Place,
}

/// The reason why an extent could not be emptied.
pub(crate) enum Stopped {
    /// The medium failed, or an index page is damaged, so that it is unknown which items are live.
    Failed(EngineError),
    /// A page of the extent that may be in use is damaged: the extent must not be released.
    Damaged,
    /// A page of the extent cannot be read, perhaps only for a moment.
    Unreadable,
    /// The moved objects could not be flushed: space must be freed elsewhere first.
    Starved,
}

impl Stopped {
    /// Returns the reason for an error in the extent itself.
    pub(crate) fn by(error: EngineError) -> Self {
        match error {
            EngineError::Corrupt(_, PageFault::Unreadable) => Self::Unreadable,
            EngineError::Corrupt(..) => Self::Damaged,
            other => Self::Failed(other),
        }
    }

    /// Returns the more serious of two reasons.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (_, failed @ Self::Failed(_)) => failed,
            (Self::Starved, other) | (Self::Unreadable, other @ Self::Damaged) => other,
            (own, _) => own,
        }
    }
}

/// Runs the collector task, which keeps extents free. Does not return.
pub(crate) async fn collect_forever<M: Medium, I: Collected<M>>(index: Rc<I>) {
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
        // Whether the store is full is only known after the collections in progress have ended and
        // unreadable extents were tried again.
        let is_open = || index.front().collects_index.get() || index.store().reads_again_soon();
        if is_open() || index.rest() == Next::Wait {
            index.store().work.notified().await;
        }
    }
}

/// Collects an extent: moves its live items and retires it. Returns whether all of its pages that
/// were read could be read.
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

/// Collects an extent by running `work`, which has not begun yet. Returns whether all pages that
/// were read could be read.
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

/// As [`end`], and pauses if the extent could not be read. Returns whether it could.
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

/// Ends a collection: retires an emptied extent, or sets its state otherwise.
fn end<M: Medium, I: Collected<M>>(index: &Rc<I>, id: ExtentId, outcome: Result<(), Stopped>) {
    let store = index.store();
    let stream = store.extents.borrow().get(id).stream;
    let state = match outcome {
        Ok(()) => {
            let live = store.extents.borrow().get(id).live;
            // Entries of moved objects stay in the index until the objects are flushed.
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

/// Retires an extent whose live items were all moved. Where memory does not survive a power cut,
/// the moved objects must be flushed first: until then the index refers to the extent.
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

/// Retires the extents whose moved objects have been flushed.
pub(crate) fn retire_flushed<M: Medium, I: Collected<M>>(index: &Rc<I>) {
    for id in index.front().take_flushed_moved() {
        index.retire(id);
    }
}

/// Freezes the memtable that extents wait for, instead of waiting for clients to fill it.
fn flush_what_was_moved<M: Medium>(index: &impl Collected<M>) {
    let front = index.front();
    if !index.store().moved.borrow().is_empty() && !front.has_space_for_clients() {
        front.freeze_active();
    }
}

/// Re-inserts the live objects of an extent, in parallel parts; clients may use the freed space
/// meanwhile. Moved objects make garbage in the index, so index extents are collected in parallel.
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

/// Begins to collect an index extent, if one is worth it and no other is being collected. Objects
/// do not wait for it: clients are paced by the space that objects free, and the next victim must
/// not begin late.
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

/// Returns the value of an object. Reads its further pages, if any.
///
/// # Errors
/// Returns [`Stopped`] if a page of the object is damaged or the medium failed.
pub(crate) async fn value_of<M: Medium>(
    store: &PageStore<M>,
    object: &Candidate,
) -> Result<Value, Stopped> {
    let Candidate { image, key, pointer, .. } = object;
    let value = store.value_in(image, key, *pointer, IoClass::GcRead, &mut 0).await;
    value.map_err(Stopped::by)
}

/// Whether the memtables accept an object now. If not, this returns when that may have changed.
/// Clients that wait for memtables go first: they are few, and collected objects could fill one
/// memtable after the other.
///
/// # Errors
/// Returns [`Stopped::Starved`] if that will not change before space is freed elsewhere.
pub(crate) async fn memtables_take<M: Medium>(index: &impl Collected<M>) -> Result<bool, Stopped> {
    let (store, front) = (index.store(), index.front());
    if front.has_memtable_room() {
        if !front.clients_may_go() {
            return Ok(true);
        }
        let before = front.writes();
        store.handle.yield_now().await;
        // Clients go first as long as they write.
        return Ok(front.writes() == before && front.has_memtable_room());
    }
    if index.is_starved() || !store.is_healthy() {
        return Err(Stopped::Starved);
    }
    store.room.notified().await;
    Ok(false)
}

/// Inserts an object into the memtable as if newly written. Requires: the index refers to it at
/// this moment, and the memtables accept it.
///
/// # Errors
/// Returns [`Stopped::Failed`] if the object's sequence number is higher than that of any write.
pub(crate) fn reinsert<M: Medium>(
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
