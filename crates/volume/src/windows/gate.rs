//! The gate in front of a member. It holds the commands that the member must not be given now.
//!
//! Client reads pass, except in the moments in which a device changes its window. Internal reads
//! and all writes wait for the member's slot. Without windows all commands pass.
//!
//! Cost: a task for each command; nothing without windows.

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;

use engine::{ExtentId, Medium, MediumError, PageNo, Shape, Stream};
use runtime::{Handle, IoClass, Nanos, OneshotReceiver, PageImage, oneshot};

use super::flow::{Flow, Sync};
use super::route::Reader;
use super::state::State;

type Done = Result<(), MediumError>;

/// Whether writes wait for the slot of their member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pass {
    InSlot,
    /// Writes go to the member at once, before all writes that wait for the slot. All writes of one
    /// life of an extent use the same way, so none of them overtakes another.
    AtOnce,
}

/// A member, and the commands that wait for it.
pub(crate) struct Gate<M> {
    handle: Handle,
    medium: Rc<M>,
    shape: Shape,
    flow: Rc<Flow>,
    /// Whether windows are turned on at its device.
    pub is_enabled: Cell<bool>,
    /// The time at which it must leave its deterministic window; `None` outside the window.
    pub dtwin_ends: Cell<Option<Nanos>>,
}

/// A command that was submitted to the member, or waits.
enum Way<F, T> {
    Now(F),
    /// Runs in its own task, so that it completes even if its caller stops waiting. Windows wait
    /// for it.
    Apart(OneshotReceiver<T>),
}

impl<T, F: Future<Output = T>> Way<F, T> {
    async fn end(self) -> T {
        match self {
            Self::Now(future) => future.await,
            Self::Apart(outcome) => outcome.await.expect("a command comes to its end"),
        }
    }
}

impl<M: Medium> Gate<M> {
    pub(crate) fn new(handle: &Handle, medium: M) -> Self {
        let shape = medium.shape();
        let (handle, flow) = (handle.clone(), Rc::new(Flow::new(handle)));
        let (is_enabled, dtwin_ends) = (Cell::default(), Cell::default());
        Self { handle, medium: Rc::new(medium), shape, flow, is_enabled, dtwin_ends }
    }

    /// Returns the member itself, for window commands.
    pub(crate) fn medium(&self) -> &Rc<M> {
        &self.medium
    }

    pub(crate) fn flow(&self) -> &Rc<Flow> {
        &self.flow
    }

    pub(crate) fn state(&self) -> State {
        self.flow.state()
    }

    /// Runs the syncs whose turn came in the slot, once for each stream.
    pub(crate) async fn sync_slot(&self) -> Done {
        let mut syncs = self.flow.take_syncs();
        let mut all = Ok(());
        while let Some(Sync { stream, .. }) = syncs.first() {
            let stream = *stream;
            let done = self.medium.sync(stream).await;
            let same = syncs.extract_if(.., |sync| sync.stream == stream);
            same.for_each(|sync| sync.tells.send(done));
            all = all.and(done);
        }
        all
    }

    /// Ends the slots of a member that is lost or was replaced. Waiting commands are submitted to
    /// it and fail there; waiting syncs fail here with `why`.
    pub(crate) fn give_up(&self, why: MediumError) {
        self.flow.set_state(State::Off);
        for Sync { tells, .. } in self.flow.take_syncs() {
            tells.send(Err(why));
        }
        self.is_enabled.set(false);
        self.dtwin_ends.set(None);
    }

    /// Like [`Medium::append`].
    pub(crate) fn append_by(
        &self,
        pass: Pass,
        first: PageNo,
        pages: Vec<PageImage>,
        class: IoClass,
    ) -> impl Future<Output = Done> + use<M> {
        let bytes = self.bytes_of(pages.len());
        self.submit_write(pass, bytes, move |medium| medium.append(first, pages, class)).end()
    }

    /// Like [`Medium::sync`]. In its slot a member is synced after all earlier writes were begun,
    /// at the end of the slot.
    pub(crate) fn sync_by(
        &self,
        pass: Pass,
        stream: Stream,
    ) -> impl Future<Output = Done> + use<M> {
        let way = if self.is_off() || pass == Pass::AtOnce {
            Way::Now(self.medium.sync(stream))
        } else {
            let (tells, outcome) = oneshot();
            self.flow.enqueue_sync(Sync { stream, tells });
            Way::Apart(outcome)
        };
        way.end()
    }

    /// Like [`Medium::release`]; a discard counts as a write.
    pub(crate) fn release_by(
        &self,
        pass: Pass,
        extent: ExtentId,
    ) -> impl Future<Output = Done> + use<M> {
        self.submit_write(pass, 0, move |medium| medium.release(extent)).end()
    }

    fn bytes_of(&self, pages: usize) -> u64 {
        pages as u64 * u64::from(self.shape.page_bytes)
    }

    fn is_off(&self) -> bool {
        self.flow.state() == State::Off
    }

    fn submit_read<T: 'static, F: Future<Output = T> + 'static>(
        &self,
        class: IoClass,
        start: impl FnOnce(&M) -> F + 'static,
    ) -> Way<F, T> {
        if self.is_off() {
            return Way::Now(start(&self.medium));
        }
        let reader = Reader::of(class);
        let (tells, outcome) = oneshot();
        let (medium, handle, flow) =
            (Rc::clone(&self.medium), self.handle.clone(), Rc::downgrade(&self.flow));
        let begin = move || {
            let flow = flow.upgrade().expect("it begins the read");
            let read = start(&medium);
            flow.begin_read();
            handle.spawn("read in windows", async move {
                let outcome = read.await;
                flow.end_read();
                tells.send(outcome);
            });
        };
        if self.flow.passes(reader) {
            begin();
        } else {
            self.flow.enqueue_read(reader, Box::new(begin));
        }
        Way::Apart(outcome)
    }

    fn submit_write<F: Future<Output = Done> + 'static>(
        &self,
        pass: Pass,
        bytes: u64,
        start: impl FnOnce(&M) -> F + 'static,
    ) -> Way<F, Done> {
        if pass == Pass::AtOnce {
            self.flow.note_at_once();
        }
        if self.is_off() || pass == Pass::AtOnce {
            return Way::Now(start(&self.medium));
        }
        let (tells, outcome) = oneshot();
        let (medium, handle, flow) =
            (Rc::clone(&self.medium), self.handle.clone(), Rc::downgrade(&self.flow));
        let begin = move || {
            let flow = flow.upgrade().expect("it begins the write");
            let write = start(&medium);
            handle.spawn("write of a slot", async move {
                let outcome = write.await;
                flow.end_write(bytes);
                tells.send(outcome);
            });
        };
        self.flow.enqueue_write(bytes, Box::new(begin));
        Way::Apart(outcome)
    }
}

impl<M: Medium> Medium for Gate<M> {
    fn shape(&self) -> Shape {
        self.shape
    }

    /// Writes nothing: members of a volume write their header with an append.
    fn open(&self, extent: ExtentId, generation: u64, stream: Stream) -> Result<(), MediumError> {
        self.medium.open(extent, generation, stream)
    }

    fn append(
        &self,
        first: PageNo,
        pages: Vec<PageImage>,
        class: IoClass,
    ) -> impl Future<Output = Done> + use<M> {
        self.append_by(Pass::InSlot, first, pages, class)
    }

    fn append_run(
        &self,
        first: PageNo,
        pages: Vec<PageImage>,
        class: IoClass,
    ) -> impl Future<Output = Done> + use<M> {
        let bytes = self.bytes_of(pages.len());
        let run = move |medium: &M| medium.append_run(first, pages, class);
        self.submit_write(Pass::InSlot, bytes, run).end()
    }

    fn sync(&self, stream: Stream) -> impl Future<Output = Done> + use<M> {
        self.sync_by(Pass::InSlot, stream)
    }

    fn read(
        &self,
        page: PageNo,
        class: IoClass,
    ) -> impl Future<Output = Result<PageImage, MediumError>> + use<M> {
        self.submit_read(class, move |medium| medium.read(page, class)).end()
    }

    fn read_versions(
        &self,
        page: PageNo,
        class: IoClass,
    ) -> impl Future<Output = Vec<PageImage>> + use<M> {
        self.submit_read(class, move |medium| medium.read_versions(page, class)).end()
    }

    fn read_run(
        &self,
        first: PageNo,
        pages: u32,
        class: IoClass,
    ) -> impl Future<Output = Vec<Result<PageImage, MediumError>>> + use<M> {
        self.submit_read(class, move |medium| medium.read_run(first, pages, class)).end()
    }

    fn promote(&self, page: PageNo) {
        self.medium.promote(page);
    }

    fn set_write_stall(&self, is_on: bool) {
        self.medium.set_write_stall(is_on);
    }

    fn pauses(&self, class: IoClass) -> bool {
        self.medium.pauses(class)
    }

    /// Called only while a volume is assembled, before there are windows.
    fn frontier(
        &self,
        extent: ExtentId,
    ) -> impl Future<Output = Result<u32, MediumError>> + use<M> {
        self.medium.frontier(extent)
    }

    fn is_written_anywhere(&self) -> bool {
        self.medium.is_written_anywhere()
    }

    fn unreadable_is_lost(&self, extent: ExtentId) -> bool {
        self.medium.unreadable_is_lost(extent)
    }

    fn release(&self, extent: ExtentId) -> impl Future<Output = Done> + use<M> {
        self.release_by(Pass::InSlot, extent)
    }

    fn wear(&self, extent: ExtentId, stream: Stream) -> u32 {
        self.medium.wear(extent, stream)
    }
}
