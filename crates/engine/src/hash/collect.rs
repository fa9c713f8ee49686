//! Garbage collection of data extents: objects that the table still leads to are re-inserted in the
//! memtable as if newly written, as the LSM engine does, and the extent is retired.
//!
//! Each object of a victim is looked up in the table. A slot with its signature and its pointer
//! names it for certain, so no object is read again. The table goes on leading to the old place
//! until the flush; `uprooted` tells the flush, which could not compare keys there any more, which
//! slot it is. That goes for keys, too, that a client has just overwritten in the memtable.

use std::rc::Rc;

use runtime::{IoClass, PageImage};

use crate::error::EngineError;
use crate::format::data_page;
use crate::format::object::Sequence;
use crate::format::pointer::Pointer;
use crate::hash::Inner;
use crate::hash::edit::Edit;
use crate::hash::key_hash::KeyHash;
use crate::hash::parallel::in_parallel;
use crate::hash::reads::Search;
use crate::operations::Fullness;
use crate::planted::Fault;
use crate::store::extents::{Extent, State};
use crate::store::medium::{ExtentId, Medium, Stream};

/// Extents fuller than this are not worth collecting.
const WORTH_COLLECTING: f64 = 0.95;

/// An object of a victim.
struct Candidate {
    pointer: Pointer,
    key: Box<[u8]>,
    sequence: Sequence,
    image: PageImage,
}

/// Why an extent could not be emptied.
enum Stopped {
    /// A page of it that may hold something in use is damaged: it must not be released.
    Damaged,
    /// The table is damaged, so nobody can tell what is in use.
    Index(EngineError),
    /// What is moved could not be flushed: space has to come from elsewhere first.
    Starved,
}

impl Stopped {
    /// What an error that was met in the extent itself means.
    fn by(error: EngineError) -> Self {
        match error {
            EngineError::Corrupt(..) => Self::Damaged,
            other => Self::Index(other),
        }
    }
}

impl<M: Medium> Inner<M> {
    /// The task that keeps extents free of data, for ever.
    pub(crate) async fn collect_forever(self: Rc<Self>) {
        loop {
            if let Some(id) = self.empty_extent(Stream::Objects) {
                self.stats.borrow_mut().gc_empty_extents += 1;
                self.retire(id);
                continue;
            }
            if let Some(id) = self.data_victim() {
                self.collect(id).await;
                self.front.sweep.note_collected(self.front.has_extents_for_clients());
                continue;
            }
            self.flush_what_was_moved();
            self.consider_being_full();
            self.store.work.notified().await;
        }
    }

    /// A closed extent in which nothing is in use. Counts are exact here, because a slot is
    /// replaced long before its extent could have been used for all generations there are.
    pub(crate) fn empty_extent(&self, stream: Stream) -> Option<ExtentId> {
        let extents = self.store.extents.borrow();
        let is_empty = |extent: &Extent| {
            extent.state == State::Closed && extent.stream == stream && extent.live == 0
        };
        let mut empty = extents.iter().filter(|(_, extent)| is_empty(extent));
        empty.find(|(id, _)| self.may_be_collected(*id)).map(|(id, _)| id)
    }

    fn may_be_collected(&self, id: ExtentId) -> bool {
        self.store.is_published(id) && !self.placing.borrow().contains(&id)
    }

    fn data_victim(&self) -> Option<ExtentId> {
        if !self.is_short_of_extents() || !self.store.is_healthy() || self.front.has_given_up() {
            return None;
        }
        let extents = self.store.extents.borrow();
        let may_go = |id| {
            extents.get(id).stream == Stream::Objects
                && self.may_be_collected(id)
                && self.front.can_move(id)
        };
        extents.choose_victim(WORTH_COLLECTING, may_go)
    }

    /// Whether free extents have become few.
    pub(crate) fn is_short_of_extents(&self) -> bool {
        let extents = self.store.extents.borrow();
        let share = (f64::from(self.store.shape.extents) * self.options.gc_start).ceil() as usize;
        let due_below = share.max(self.front.client_reserve(&extents) + 2);
        self.store.extents_in_sight() < due_below
    }

    /// With no victim left and clients held up, what is in the memtables may still make garbage:
    /// it is flushed first, and only then the store counts as full. Deletes start this again.
    fn consider_being_full(&self) {
        let is_short = !self.front.has_extents_for_clients();
        let is_flushed = self.front.memtables.borrow().is_empty();
        if is_short && !is_flushed {
            self.front.freeze_active();
        }
        let was_full = self.front.fullness.get() != Fullness::Room;
        let is_full = is_short && (is_flushed || self.front.has_given_up() || was_full);
        let fullness = match is_short && self.front.flush_is_starved() && self.is_quiet() {
            true => Fullness::Stuck,
            false if is_full => Fullness::Full,
            false => Fullness::Room,
        };
        self.front.set_fullness(fullness);
    }

    /// Whether nothing is under way that could give space back.
    fn is_quiet(&self) -> bool {
        let is_going = |state| matches!(state, State::Releasing | State::Collecting);
        let extents = self.store.extents.borrow();
        self.bucket_victim().is_none() && !extents.iter().any(|(_, e)| is_going(e.state))
    }

    /// Moves what is in use out of a data extent and retires it.
    async fn collect(self: &Rc<Self>, id: ExtentId) {
        self.front.make_progress();
        self.store.extents.borrow_mut().set_state(id, State::Collecting);
        let Err(stopped) = self.collect_data(id).await else {
            self.retire_moved(id);
            self.stats.borrow_mut().gc_data_extents += 1;
            return;
        };
        let state = match stopped {
            Stopped::Damaged => {
                self.stats.borrow_mut().gc_quarantined_extents += 1;
                State::Quarantined
            }
            Stopped::Index(_) | Stopped::Starved => State::Closed,
        };
        self.store.extents.borrow_mut().set_state(id, state);
        if let Stopped::Index(error) = stopped {
            self.store.fail(error);
        }
    }

    /// Retires an extent that everything in use was moved out of. Where memory does not survive, what
    /// was moved has to be flushed first: until then the table leads there.
    fn retire_moved(self: &Rc<Self>, id: ExtentId) {
        if self.manifest.is_some() {
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
        if !self.store.moved.borrow().is_empty() && !self.front.has_space_for_clients() {
            self.front.freeze_active();
        }
    }

    /// Retires an extent; where memory does not survive, with a note in the manifest.
    pub(crate) fn retire(self: &Rc<Self>, id: ExtentId) {
        if self.manifest.is_none() {
            return self.store.retire(id);
        }
        let inner = Rc::clone(self);
        self.store.retire_after(id, async move {
            inner.publish(Edit { retired: vec![id], ..Edit::default() }).await
        });
    }

    async fn collect_data(self: &Rc<Self>, id: ExtentId) -> Result<(), Stopped> {
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
                    });
                }
            }
            self.stats.borrow_mut().gc_objects_seen += candidates.len() as u64;
            let cost = self.store.cpu.costs.of_hashes(candidates.len());
            self.store.cpu.cores.spend_in_background(cost).await;
            in_parallel(self, candidates, async |inner, object| inner.keep_if_live(object).await)
                .await?;
        }
        Ok(())
    }

    /// Re-inserts an object if the table leads to it. What is found holds at the insert: there is
    /// no await between the two.
    async fn keep_if_live(&self, object: Candidate) -> Result<(), Stopped> {
        let mut value = None;
        loop {
            let skips_check =
                value.is_some() && self.store.planted.has(Fault::CollectWithoutRecheck);
            if !skips_check && !self.leads_to(&object).await? {
                return Ok(());
            }
            if !skips_check && self.front.memtables.borrow().get(&object.key).is_some() {
                self.uproot(object.key, object.pointer);
                return Ok(());
            }
            let Some(whole) = &value else {
                let Candidate { image, key, pointer, .. } = &object;
                let read = self.store.value_in(image, key, *pointer, IoClass::GcRead, &mut 0).await;
                value = Some(read.map_err(Stopped::by)?);
                continue;
            };
            if !self.front.has_memtable_room() {
                if self.front.flush_is_starved() || !self.store.is_healthy() {
                    return Err(Stopped::Starved);
                }
                self.store.room.notified().await;
                continue;
            }
            self.front.insert_at(self, &object.key, object.sequence, Some(whole.clone()));
            self.uproot(object.key, object.pointer);
            self.stats.borrow_mut().gc_objects_moved += 1;
            return Ok(());
        }
    }

    /// Notes that the object of a key's slot will go, and that the key is in a memtable.
    fn uproot(&self, key: Box<[u8]>, pointer: Pointer) {
        if !self.store.planted.has(Fault::HashForgetsUprooted) {
            self.uprooted.borrow_mut().insert(key, pointer);
        }
    }

    /// Whether a slot leads to the object at this instant.
    async fn leads_to(&self, object: &Candidate) -> Result<bool, Stopped> {
        let mut search = Search::new(KeyHash::of(&object.key));
        loop {
            let next = self.next_match(&mut search, IoClass::GcRead, &mut 0).await;
            match next.map_err(Stopped::Index)? {
                None => return Ok(false),
                Some(found) if found.pointer == object.pointer => return Ok(true),
                Some(_) => {}
            }
        }
    }
}
