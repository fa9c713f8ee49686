//! Releases extents. Each release is a task of its own, so that no other task waits for readers.

use std::future::ready;
use std::rc::Rc;

use super::PageStore;
use super::extent::State;
use super::pins::{Moment, Pin};
use crate::error::EngineError;
use crate::medium::{ExtentId, Medium, Stream};
use crate::planted::Fault;

impl<M: Medium> PageStore<M> {
    /// Retires an extent that nothing refers to. It becomes free once no reader can still reach it.
    /// Returns at once.
    pub fn retire(self: &Rc<Self>, id: ExtentId) {
        self.retire_after(id, ready(Ok(())));
    }

    /// As [`Self::retire`], once `noted` has succeeded. Until then a power cut brings the extent
    /// back.
    pub fn retire_after(
        self: &Rc<Self>,
        id: ExtentId,
        noted: impl Future<Output = Result<(), EngineError>> + 'static,
    ) {
        assert!(self.is_published(id), "extent {} goes with pages that wait for an edit", id.0);
        self.extents.borrow_mut().set_state(id, State::Releasing);
        let (store, now) = (Rc::clone(self), self.pins.now());
        let before = self.retired.borrow_mut().insert(id, now);
        assert_eq!(before, None, "extent {} is being released already", id.0);
        self.handle.spawn("release", async move {
            if let Err(error) = noted.await {
                store.fail(error);
                return;
            }
            if store.respects_pins(id) {
                let age = store.extents.borrow().get(id).age;
                store.pins.let_go(age, now).await;
            }
            store.release(id).await;
        });
    }

    /// Returns the number of extents that are being released, without those that snapshots hold.
    pub fn releasing(&self) -> usize {
        self.retired.borrow().len() - self.held()
    }

    /// Returns the number of extents that are free or being released.
    pub(crate) fn extents_in_sight(&self) -> usize {
        self.extents.borrow().free() + self.releasing() + self.moved.borrow().len()
    }

    /// Returns the number of pages that are free or being released, plus the room in open extents.
    pub(crate) fn pages_in_sight(&self) -> u64 {
        let extents = self.extents.borrow();
        let open: u32 = Stream::ALL.into_iter().map(|stream| extents.room(stream)).sum();
        let per_extent = u64::from(self.shape.pages_per_extent);
        self.extents_in_sight() as u64 * per_extent + u64::from(open)
    }

    /// Returns the number of extents that only snapshots refer to. Computed from the pins and not
    /// counted: the space of a dropped snapshot is in sight at once, before its extents' tasks have
    /// run.
    pub fn held(&self) -> usize {
        self.count_retired(|age, until| self.pins.holds(age, until))
    }

    /// Returns the number of retired extents that `pin` keeps from being released; other pins may
    /// hold them too.
    pub fn held_by(&self, pin: &Pin) -> usize {
        self.count_retired(|age, until| pin.holds(age, until))
    }

    fn count_retired(&self, is_needed: impl Fn(u64, Moment) -> bool) -> usize {
        let extents = self.extents.borrow();
        let retired = self.retired.borrow();
        let counts = |(id, until): &(&ExtentId, &Moment)| {
            self.respects_pins(**id) && is_needed(extents.get(**id).age, **until)
        };
        retired.iter().filter(counts).count()
    }

    /// Whether a snapshot may still read the extent.
    pub fn is_pinned(&self, id: ExtentId) -> bool {
        let age = self.extents.borrow().get(id).age;
        self.respects_pins(id) && self.pins.holds(age, self.pins.now())
    }

    /// Whether snapshots hold the extent back. False for the journal, which snapshots do not read,
    /// and for planted bugs.
    fn respects_pins(&self, id: ExtentId) -> bool {
        match self.extents.borrow().get(id).stream {
            Stream::Objects => !self.planted.has(Fault::MoveUnderSnapshot),
            Stream::Index | Stream::Tables => !self.planted.has(Fault::ReleaseUnderSnapshot),
            Stream::Log | Stream::Manifest => false,
        }
    }

    async fn release(&self, id: ExtentId) {
        // Readers never read the journal.
        let is_journal = self.extents.borrow().get(id).stream.is_journal();
        if !is_journal && !self.planted.has(Fault::ReleaseEarly) {
            self.epochs.drain().await;
        }
        let _turn = self.erasing.acquire(1).await;
        if let Err(error) = self.medium.release(id).await {
            self.fail(EngineError::from(error));
            return;
        }
        let retired = self.retired.borrow_mut().remove(&id);
        let until = retired.expect("it was retired before it is released");
        let age = self.extents.borrow().get(id).age;
        let is_needed = self.respects_pins(id) && self.pins.holds(age, until);
        assert!(!is_needed, "extent {} was released under a snapshot", id.0);
        self.extents.borrow_mut().set_state(id, State::Free);
        self.work.notify_all();
        self.room.notify_all();
    }

    /// Restarts releases that a power cut interrupted.
    pub fn release_again(self: &Rc<Self>) {
        let cut_short: Vec<ExtentId> = {
            let extents = self.extents.borrow();
            let releasing = extents.iter().filter(|(_, e)| e.state == State::Releasing);
            releasing.map(|(id, _)| id).collect()
        };
        for id in cut_short {
            self.retire(id);
        }
    }
}
