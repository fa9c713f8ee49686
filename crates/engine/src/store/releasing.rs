//! Releasing extents: each has a task of its own, so that nobody waits for readers but the extent.

use std::rc::Rc;

use crate::planted::Fault;
use crate::store::PageStore;
use crate::store::extents::State;
use crate::store::medium::{ExtentId, Medium};

impl<M: Medium> PageStore<M> {
    /// Nothing refers to the extent any more: it becomes free once nobody can still be on the way
    /// to it. Returns at once.
    pub(crate) fn retire(self: &Rc<Self>, id: ExtentId) {
        self.extents.borrow_mut().set_state(id, State::Releasing);
        let store = Rc::clone(self);
        self.handle.spawn("release", async move { store.release(id).await });
    }

    async fn release(&self, id: ExtentId) {
        if !self.planted.has(Fault::ReleaseEarly) {
            self.epochs.drain().await;
        }
        let _turn = self.erasing.acquire(1).await;
        self.medium.release(id).await;
        self.extents.borrow_mut().set_state(id, State::Free);
        self.work.notify_all();
        self.room.notify_all();
    }

    /// Goes on with releases that a power cut interrupted.
    pub(crate) fn release_again(self: &Rc<Self>) {
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
