//! Admission of client writes: they may wait for memtables, for the index, for space and for the
//! log.

use runtime::Nanos;

use super::{Front, Index};
use crate::error::{BatchSize, EngineError};
use crate::medium::Medium;
use crate::operations::{Fullness, Kind};
use crate::space::NO_ROOM;

/// Whether the index and the space behind the memtables have room for a client's write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Admission {
    /// There is room.
    Now,
    /// Not yet: background work is making room.
    Later,
    /// Unknown until the memtables have been flushed.
    AfterFlush,
    /// There is none, and there will be none.
    Never,
}

/// The room that a client asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// Bytes in the log.
    bytes: u64,
    /// The size of a batch, which one memtable must hold without exceeding its limit. A single
    /// write may exceed the limit.
    batch: Option<BatchSize>,
}

impl Asked {
    /// Returns the request of a single write of `bytes` bytes.
    pub(super) fn single(bytes: u64) -> Self {
        Self { bytes, batch: None }
    }

    /// Returns the request of a batch.
    pub(super) fn batch(size: BatchSize) -> Self {
        Self { bytes: size.bytes, batch: Some(size) }
    }
}

/// The guard of a client's write that waits for background work.
struct Stall<'a, M: Medium>(&'a Front<M>);

impl<M: Medium> Drop for Stall<'_, M> {
    fn drop(&mut self) {
        let Self(front) = self;
        let stalled = front.stalled_now.get();
        assert!(stalled > 0, "a write ends its wait twice");
        front.stalled_now.set(stalled - 1);
        front.store.medium.set_write_stall(front.stalled_now.get() > 0);
    }
}

impl<M: Medium> Front<M> {
    /// Waits until a client's write may proceed. First come, first served, separately for each
    /// kind: a put may wait for space that only deletes free.
    pub(super) async fn wait_for_room(
        &self,
        index: &impl Index,
        kind: Kind,
        asked: Asked,
    ) -> Result<(), EngineError> {
        let started = self.store.handle.now();
        let queue = &self.queues[kind as usize];
        let (mut stall, mut turn) = (None, None);
        let mut was_delayed = false;
        if queue.in_use() > 0 {
            stall = Some(self.begin_stall());
            turn = Some(queue.acquire(1).await);
        }
        loop {
            match self.admits(index, kind, asked)? {
                Admission::Now if was_delayed => break,
                Admission::Now => {
                    let delay = index.delay(asked.bytes);
                    if delay == Nanos::ZERO {
                        break;
                    }
                    was_delayed = true;
                    stall.get_or_insert_with(|| self.begin_stall());
                    if turn.is_none() {
                        turn = Some(queue.acquire(1).await);
                    }
                    self.sleep_while_delayed(index, delay).await;
                    continue;
                }
                Admission::Later => {}
                Admission::AfterFlush => self.freeze_active(),
                Admission::Never => {
                    self.note_refusal();
                    return Err(EngineError::Full(self.fullness.get().used_up()));
                }
            }
            stall.get_or_insert_with(|| self.begin_stall());
            if turn.is_none() {
                turn = Some(queue.acquire(1).await);
                continue; // the turn may have been awaited: check again
            }
            self.store.room.notified().await;
        }
        if stall.is_some() {
            self.stalls.set(self.stalls.get() + 1);
            self.stalled.set(self.stalled.get() + (self.store.handle.now() - started));
        }
        Ok(())
    }

    /// Waits for `delay`, or until background work is no longer behind. Checks every millisecond,
    /// as `RocksDB` does.
    async fn sleep_while_delayed(&self, index: &impl Index, delay: Nanos) {
        const STEP: Nanos = Nanos::from_millis(1);
        let until = self.store.handle.now() + delay;
        let goes_on = || self.store.is_healthy() && !self.store.lacks_room();
        while index.is_delayed() && goes_on() && self.store.handle.now() < until {
            let left = until - self.store.handle.now();
            self.store.handle.sleep(left.min(STEP)).await;
        }
    }

    /// Counts a client's write as waiting until the result is dropped.
    fn begin_stall(&self) -> Stall<'_, M> {
        self.stalled_now.set(self.stalled_now.get() + 1);
        self.tell_of_need();
        self.store.medium.set_write_stall(true);
        Stall(self)
    }

    /// Records that a write was refused for lack of space. Unflushed deletes may hide garbage, so
    /// the collector is woken if there were writes since. It is woken at most once per `PAUSE`,
    /// because otherwise a full store would flush deletes one by one.
    fn note_refusal(&self) {
        const PAUSE: Nanos = Nanos::from_millis(1_000);
        self.was_refused.set(true);
        self.tell_of_need();
        let (now, writes) = (self.store.handle.now(), self.writes());
        if self.refused_after.get() != Some(writes) && now >= self.wakes_from.get() {
            self.refused_after.set(Some(writes));
            self.wakes_from.set(now + PAUSE);
            self.store.work.notify_all();
        }
    }

    /// Whether a client's write needs room: it waits, or was refused since
    /// [`Self::forget_refusals`].
    pub(crate) fn needs_room(&self) -> bool {
        self.stalled_now.get() > 0 || self.was_refused.get()
    }

    /// Forgets earlier refusals.
    pub(crate) fn forget_refusals(&self) {
        self.was_refused.set(false);
    }

    /// Makes the collector leave to readers the space that they hold, until a write needs room. It
    /// is woken then.
    pub(crate) fn leave_readers(&self) {
        self.leaves_readers.set(true);
    }

    fn tell_of_need(&self) {
        if self.leaves_readers.take() {
            self.store.work.notify_all();
        }
    }

    /// Returns whether a client's write may proceed now.
    fn admits(
        &self,
        index: &impl Index,
        kind: Kind,
        asked: Asked,
    ) -> Result<Admission, EngineError> {
        if let Some(page) = self.store.failure() {
            return Err(EngineError::ReadOnly(page));
        }
        let lack = self.store.lack();
        if lack.journal || lack.others && kind == Kind::Put {
            return Err(NO_ROOM);
        }
        let (bytes, has_room) = (asked.bytes, self.memtables_take(asked));
        if self.fullness.get().refuses(kind, has_room) {
            return Ok(Admission::Never);
        }
        let is_log_full = || self.log.borrow().as_ref().is_some_and(|log| !log.has_room(bytes));
        let admission = match (has_room, kind) {
            (true, _) if is_log_full() => self.admits_after_flush(),
            (false, _) => Admission::Later,
            (true, Kind::Delete) => index.admits_delete(),
            (true, Kind::Exchange) if self.has_space_for_exchange(bytes) => index.admits_delete(),
            (true, Kind::Exchange) => self.admits_exchange_later(index),
            (true, Kind::Put) if self.is_paced() => Admission::Later,
            (true, Kind::Put) => index.admits_put(),
        };
        // The background work that it would wait for is itself waiting for space.
        if lack.others && admission != Admission::Now { Err(NO_ROOM) } else { Ok(admission) }
    }

    /// Returns the admission of a write for which the log has no room. It is refused where not even
    /// deletes can be flushed; a memtable that can be flushed nevertheless makes room for a retry.
    fn admits_after_flush(&self) -> Admission {
        if self.fullness.get() == Fullness::Stuck {
            self.freeze_active();
            return Admission::Never;
        }
        Admission::AfterFlush
    }

    /// Returns the admission of a batch that frees space, when there is no space next to the
    /// contents of the memtables.
    fn admits_exchange_later(&self, index: &impl Index) -> Admission {
        match self.fullness.get() {
            _ if !self.memtables.borrow().is_empty() => Admission::AfterFlush,
            Fullness::Full(_) | Fullness::Stuck if index.has_rested() => Admission::Never,
            _ => Admission::Later,
        }
    }

    /// Whether the memtables accept a write. A full one takes one more when another may be frozen,
    /// and is frozen with it. No memtable exceeds its limit by more than two objects, so the size
    /// of a dump is bounded.
    pub(crate) fn has_memtable_room(&self) -> bool {
        self.memtables_take(Asked::single(0))
    }

    /// Whether the memtables accept the whole request: the active one does, or is frozen first.
    fn memtables_take(&self, asked: Asked) -> bool {
        let active_takes = match asked.batch {
            None => !self.active_is_full(),
            Some(size) => self.active_takes(size),
        };
        active_takes || self.may_freeze(&self.memtables.borrow())
    }

    /// Whether clients' puts wait only for memtables.
    pub(crate) fn clients_may_go(&self) -> bool {
        self.stalled_now.get() > 0 && !self.is_paced() && self.has_space_for_clients()
    }
}
