//! Garbage collection of data extents: objects that the table still refers to are re-inserted in
//! the memtable as if newly written, as in the LSM engine, and the extent is retired.
//!
//! Each object of a victim is looked up in the table. A slot with the object's signature and
//! pointer identifies it with certainty, so no object is read again. The slot keeps the old pointer
//! until the flush. Because the flush can no longer compare keys at that place, `uprooted` has the
//! pointer of the key's slot. This also applies to keys that a client has just overwritten in the
//! memtable.

use std::cell::RefCell;
use std::rc::Rc;

use runtime::IoClass;

use super::Inner;
use super::key_hash::KeyHash;
use super::parallel::in_parallel;
use super::reads::Search;
use crate::error::UsedUp;
use crate::format::pointer::Pointer;
use crate::gc::sweep::WORTH_COLLECTING;
use crate::gc::{Candidate, Collected, Next, Stopped, memtables_take, reinsert, value_of};
use crate::medium::{ExtentId, Medium, Stream};
use crate::operations::Fullness;
use crate::planted::Fault;
use crate::space::PageStore;
use crate::space::extent::State;
use crate::stats::EngineStats;
use crate::write::Front;

impl<M: Medium> Collected<M> for Inner<M> {
    /// One part, because `keep_live` processes its candidates in parallel.
    const PARTS: u32 = 1;

    fn store(&self) -> &Rc<PageStore<M>> {
        &self.store
    }

    fn front(&self) -> &Front<M> {
        &self.front
    }

    fn stats(&self) -> &RefCell<EngineStats> {
        &self.stats
    }

    /// Extents of bucket pages have a collection of their own (`collect_buckets`).
    fn may_release(&self, id: ExtentId) -> bool {
        self.store.extents.borrow().get(id).stream == Stream::Objects && self.may_be_collected(id)
    }

    /// A slot is replaced long before the generations of its extent wrap around in pointers.
    fn count_is_certain(&self, _: ExtentId) -> bool {
        true
    }

    fn victim(&self) -> Option<ExtentId> {
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

    fn index_victim(&self) -> Option<ExtentId> {
        None
    }

    fn is_starved(&self) -> bool {
        self.front.flush_is_starved()
    }

    async fn keep_live(self: &Rc<Self>, candidates: Vec<Candidate>) -> Result<(), Stopped> {
        let cost = self.store.cpu.costs.of_hashes(candidates.len());
        self.store.cpu.cores.spend_in_background(cost).await;
        in_parallel(self, candidates, async |inner, object| inner.keep_if_live(object).await).await
    }

    async fn copy_index(&self, _: ExtentId) -> Result<(), Stopped> {
        unreachable!("no extent of bucket pages is a victim here")
    }

    fn is_journaled(&self) -> bool {
        false
    }

    fn retire(self: &Rc<Self>, id: ExtentId) {
        self.store.retire(id);
    }

    fn note_room(&self) {
        if self.front.fullness.get() != Fullness::Room && self.front.has_extents_for_clients() {
            self.front.set_fullness(Fullness::Room);
        }
    }

    fn rest(&self) -> Next {
        self.consider_being_full();
        Next::Wait
    }
}

impl<M: Medium> Inner<M> {
    /// Whether nothing in an extent waits to be entered in the table.
    pub(crate) fn may_be_collected(&self, id: ExtentId) -> bool {
        self.store.is_published(id) && !self.placing.borrow().contains(&id)
    }

    /// Whether few free extents are left.
    pub(crate) fn is_short_of_extents(&self) -> bool {
        self.front.is_short_of_extents(self.options.gc_start)
    }

    /// Decides whether the store is full. Requires: no victim is left. If clients wait for space,
    /// the memtables are flushed first, because that may make garbage; only then the store counts
    /// as full. After a delete the decision is made again.
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
            false if is_full => Fullness::Full(UsedUp::Space),
            false => Fullness::Room,
        };
        self.front.set_fullness(fullness);
    }

    /// Whether no work is in progress that could free space.
    fn is_quiet(&self) -> bool {
        let is_going = |state| matches!(state, State::Releasing | State::Collecting);
        let extents = self.store.extents.borrow();
        self.bucket_victim().is_none() && !extents.iter().any(|(_, e)| is_going(e.state))
    }

    /// Re-inserts an object if the table refers to it. The result of the check still holds at the
    /// insert, because there is no await in between.
    async fn keep_if_live(&self, object: Candidate) -> Result<(), Stopped> {
        let mut value = None;
        loop {
            let skips_check = value.is_some()
                && self.store.planted.has(crate::planted::Fault::CollectWithoutRecheck);
            if !skips_check && !self.leads_to(&object).await? {
                return Ok(());
            }
            if !skips_check && self.front.memtables.borrow().get(&object.key).is_some() {
                return self.uproot(object.key, object.pointer);
            }
            let Some(whole) = &value else {
                value = Some(value_of(&self.store, &object).await?);
                continue;
            };
            // After a wait the table may have changed.
            if !memtables_take(self).await? {
                continue;
            }
            reinsert(self, &object, whole.clone())?;
            return self.uproot(object.key, object.pointer);
        }
    }

    /// Notes that the object of a key's slot will be removed. Requires: the key is in a memtable.
    fn uproot(&self, key: Box<[u8]>, pointer: Pointer) -> Result<(), Stopped> {
        if self.planted.has(Fault::HashForgetsUprooted) {
            return Ok(());
        }
        let before = self.uprooted.borrow_mut().insert(key, pointer);
        // Between two flushes the slot of a key does not change.
        if before.is_some_and(|before| before != pointer) {
            return Err(Stopped::Failed(self.store.contradicts_itself("a key has two slots")));
        }
        Ok(())
    }

    /// Whether a slot refers to the object now.
    async fn leads_to(&self, object: &Candidate) -> Result<bool, Stopped> {
        let mut search = Search::new(KeyHash::of(&object.key));
        loop {
            let next = self.next_match(&mut search, IoClass::GcRead, &mut 0).await;
            match next.map_err(Stopped::Failed)? {
                None => return Ok(false),
                Some(found) if found.pointer == object.pointer => return Ok(true),
                Some(_) => {}
            }
        }
    }
}
