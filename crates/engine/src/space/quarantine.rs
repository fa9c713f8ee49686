//! Quarantine of extents that a collection could not read ([`unread`](super::unread)).

use std::rc::Rc;

use super::PageStore;
use super::extent::State;
use super::unread::wait_after;
use crate::medium::{ExtentId, Medium};

impl<M: Medium> PageStore<M> {
    /// Quarantines an extent that was to be collected and has an unreadable page. It is kept
    /// unchanged and closed again after a while. Returns whether this is its first failure.
    pub(crate) fn keep_unread(self: &Rc<Self>, id: ExtentId) -> bool {
        self.extents.borrow_mut().set_state(id, State::Quarantined);
        let generation = self.extents.borrow().get(id).generation;
        let failures = self.unread.borrow_mut().note(id, generation);
        if let Some(wait) = wait_after(failures) {
            let store = Rc::clone(self);
            self.handle.spawn("wait before an extent is read again", async move {
                store.handle.sleep(wait).await;
                store.extents.borrow_mut().set_state(id, State::Closed);
                store.work.notify_all();
            });
        } else {
            // Wakes tasks that waited for the extent, so that they see that it frees nothing.
            self.work.notify_all();
        }
        failures == 1
    }

    /// Forgets the failures of an extent that was read completely.
    pub(crate) fn forget_unread(&self, id: ExtentId) {
        self.unread.borrow_mut().forget(id);
    }

    /// Whether an extent that could not be read is tried again soon.
    pub(crate) fn reads_again_soon(&self) -> bool {
        let (extents, unread) = (self.extents.borrow(), self.unread.borrow());
        unread.soon().any(|(id, generation)| {
            let extent = extents.get(id);
            extent.state == State::Quarantined && extent.generation == generation
        })
    }
}
