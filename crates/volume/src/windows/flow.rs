//! What waits for a member, and what is under way on it.
//!
//! Reads and writes wait apart. Those that may pass are begun in their order, writes only if they can end
//! before the slot does; what a sync asks for is done at the end of the slot that its turn comes in.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use pages::{MediumError, Stream};
use runtime::{Handle, Nanos, Notify, OneshotSender};

use super::route::Reader;
use super::slot::span_of;
use super::state::State;

/// A command is begun by the call. It waits in the [`Flow`], and must not keep it alive.
type Begin = Box<dyn FnOnce()>;

/// A write that waits for a slot.
enum Write {
    /// So many bytes.
    Command(u64, Begin),
    Sync(Sync),
}

/// Somebody waits for what was written before to be durable.
pub(crate) struct Sync {
    pub stream: Stream,
    pub tells: OneshotSender<Result<(), MediumError>>,
}

/// Bytes of writes that may be under way on a member at a time: enough to keep it busy, few enough for
/// the slot to end soon (assumed).
const DEPTH_BYTES: u64 = 8 << 20;

/// What waits for a member, and what is under way on it.
pub(crate) struct Flow {
    handle: Handle,
    state: Cell<State>,
    /// Whether reads of internal tasks wait for the slot too.
    packs_reads: Cell<bool>,
    /// Whether writes go to the member whatever window it is in.
    overflows: Cell<bool>,
    slot: Cell<Slot>,
    waiting_reads: RefCell<VecDeque<(Reader, Begin)>>,
    waiting_writes: RefCell<VecDeque<Write>>,
    waiting_bytes: Cell<u64>,
    /// Syncs whose turn has come.
    syncs: RefCell<Vec<Sync>>,
    reads: Cell<u64>,
    writes: Cell<u64>,
    bytes: Cell<u64>,
    /// Writes that ended in a deterministic window.
    writes_in_dtwin: Cell<u64>,
    /// Writes of the journal that did not wait for a slot, outside of one.
    writes_at_once: Cell<u64>,
    changed: Notify,
}

/// The slot a member is in, or was in last.
#[derive(Clone, Copy, Default)]
struct Slot {
    /// Writes are begun that will have ended by then.
    end: Nanos,
    /// Bytes a second that may be counted on.
    bandwidth: u64,
    /// Bytes begun in it.
    begun: u64,
}

impl Flow {
    pub(crate) fn new(handle: &Handle) -> Self {
        Self {
            handle: handle.clone(),
            state: Cell::default(),
            packs_reads: Cell::default(),
            overflows: Cell::default(),
            slot: Cell::default(),
            waiting_reads: RefCell::default(),
            waiting_writes: RefCell::default(),
            waiting_bytes: Cell::default(),
            syncs: RefCell::default(),
            reads: Cell::default(),
            writes: Cell::default(),
            bytes: Cell::default(),
            writes_in_dtwin: Cell::default(),
            writes_at_once: Cell::default(),
            changed: Notify::default(),
        }
    }

    pub(crate) fn state(&self) -> State {
        self.state.get()
    }

    /// Goes over to another state, and begins what may begin there.
    pub(crate) fn set_state(&self, state: State) {
        self.state.set(state);
        self.begin_due();
        self.changed.notify_all();
    }

    /// A slot begins. It lasts until then, and so many bytes a second may be counted on.
    pub(crate) fn begin_slot(&self, end: Nanos, bandwidth: u64) {
        self.slot.set(Slot { end, bandwidth, begun: 0 });
        self.set_state(State::And);
    }

    /// Whether reads of internal tasks wait for the slot too.
    pub(crate) fn set_packs_reads(&self, packs: bool) {
        self.packs_reads.set(packs);
    }

    /// Writes go to the member whatever window it is in, or no longer do.
    pub(crate) fn set_overflows(&self, overflows: bool) {
        if self.overflows.replace(overflows) != overflows {
            self.begin_due();
        }
    }

    /// Bytes that wait to be written, and those that are being written.
    pub(crate) fn backlog(&self) -> u64 {
        self.waiting_bytes.get() + self.bytes.get()
    }

    /// Bytes that are being written.
    pub(crate) fn bytes_under_way(&self) -> u64 {
        self.bytes.get()
    }

    /// Bytes whose writing was begun in this slot, or in the last one.
    pub(crate) fn begun_in_slot(&self) -> u64 {
        self.slot.get().begun
    }

    /// Whether anything that writes is under way, or waits.
    pub(crate) fn has_work(&self) -> bool {
        self.writes.get() > 0
            || !self.syncs.borrow().is_empty()
            || !self.waiting_writes.borrow().is_empty()
    }

    /// Whether somebody waits for a sync.
    pub(crate) fn has_syncs(&self) -> bool {
        let is_sync = |write: &Write| matches!(write, Write::Sync(_));
        !self.syncs.borrow().is_empty() || self.waiting_writes.borrow().iter().any(is_sync)
    }

    pub(crate) fn writes_in_dtwin(&self) -> u64 {
        self.writes_in_dtwin.get()
    }

    pub(crate) fn writes_at_once(&self) -> u64 {
        self.writes_at_once.get()
    }

    /// A write goes by, whatever window the member is in.
    pub(crate) fn note_at_once(&self) {
        if !self.state.get().takes_writes() {
            self.writes_at_once.set(self.writes_at_once.get() + 1);
        }
    }

    /// Waits until no read is under way.
    pub(crate) async fn reads_ended(&self) {
        self.changed.wait_until(|| self.reads.get() == 0).await;
    }

    /// Waits until no write is under way.
    pub(crate) async fn writes_ended(&self) {
        self.changed.wait_until(|| self.writes.get() == 0).await;
    }

    /// Waits until no write is left to begin in this slot, and none under way.
    pub(crate) async fn slot_is_done(&self) {
        self.changed.wait_until(|| self.writes.get() == 0 && !self.next_fits()).await;
    }

    /// Syncs whose turn has come.
    pub(crate) fn take_syncs(&self) -> Vec<Sync> {
        self.syncs.take()
    }

    /// Whether a read may begin now.
    pub(crate) fn passes(&self, reader: Reader) -> bool {
        match (self.state.get(), reader) {
            (State::Off | State::And, _) | (State::Adt | State::Und, Reader::Client) => true,
            (State::Adt, Reader::Internal) => !self.packs_reads.get(),
            (State::Und, Reader::Internal) | (State::Udt | State::Lockdown, _) => false,
        }
    }

    /// A read waits until it may pass.
    pub(crate) fn enqueue_read(&self, reader: Reader, begin: Begin) {
        self.waiting_reads.borrow_mut().push_back((reader, begin));
    }

    /// A write of so many bytes waits for the slot, or begins at once.
    pub(crate) fn enqueue_write(&self, bytes: u64, begin: Begin) {
        self.waiting_writes.borrow_mut().push_back(Write::Command(bytes, begin));
        self.waiting_bytes.set(self.waiting_bytes.get() + bytes);
        self.begin_due();
    }

    pub(crate) fn enqueue_sync(&self, sync: Sync) {
        self.waiting_writes.borrow_mut().push_back(Write::Sync(sync));
        self.begin_due();
    }

    pub(crate) fn begin_read(&self) {
        self.reads.set(self.reads.get() + 1);
    }

    pub(crate) fn end_read(&self) {
        self.reads.set(self.reads.get() - 1);
        if self.reads.get() == 0 {
            self.changed.notify_all();
        }
    }

    pub(crate) fn end_write(&self, bytes: u64) {
        self.writes.set(self.writes.get() - 1);
        self.bytes.set(self.bytes.get() - bytes);
        if self.state.get().is_dtwin() {
            self.writes_in_dtwin.set(self.writes_in_dtwin.get() + 1);
        }
        self.begin_due();
        if self.writes.get() == 0 {
            self.changed.notify_all();
        }
    }

    /// Begins what may begin now.
    fn begin_due(&self) {
        while let Some(begin) = self.due_read() {
            begin();
        }
        while let Some(write) = self.due_write() {
            match write {
                Write::Command(bytes, begin) => {
                    self.waiting_bytes.set(self.waiting_bytes.get() - bytes);
                    self.bytes.set(self.bytes.get() + bytes);
                    self.writes.set(self.writes.get() + 1);
                    let slot = self.slot.get();
                    self.slot.set(Slot { begun: slot.begun + bytes, ..slot });
                    begin();
                }
                Write::Sync(sync) => self.syncs.borrow_mut().push(sync),
            }
        }
    }

    fn due_read(&self) -> Option<Begin> {
        let mut reads = self.waiting_reads.borrow_mut();
        let due = reads.iter().position(|(reader, _)| self.passes(*reader))?;
        reads.remove(due).map(|(_, begin)| begin)
    }

    fn due_write(&self) -> Option<Write> {
        if self.next_fits() { self.waiting_writes.borrow_mut().pop_front() } else { None }
    }

    /// Whether the next write may begin now.
    fn next_fits(&self) -> bool {
        match self.waiting_writes.borrow().front() {
            None => false,
            Some(Write::Sync(_)) => self.state.get().takes_writes(),
            Some(Write::Command(bytes, _)) => self.fits(*bytes),
        }
    }

    /// Whether a write may begin now: it will have ended before the slot does. One always may, so that
    /// there is an end to all of them.
    fn fits(&self, bytes: u64) -> bool {
        let under_way = self.bytes.get() + bytes;
        let has_depth = self.writes.get() == 0 || under_way <= DEPTH_BYTES;
        match self.state.get() {
            State::Off => true,
            State::And => {
                let slot = self.slot.get();
                let ends = self.handle.now() + span_of(under_way, slot.bandwidth);
                has_depth && (ends <= slot.end || slot.begun == 0)
            }
            State::Adt | State::Udt | State::Und => self.overflows.get() && has_depth,
            State::Lockdown => false,
        }
    }
}
