//! Commands that wait for a member, and commands in progress on it.
//!
//! Reads and writes wait separately. Those that may pass are begun in order; a write is begun only
//! if it can end before the slot does. A sync runs at the end of the slot in which its turn comes.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use engine::{MediumError, Stream};
use runtime::{Handle, Nanos, Notify, OneshotSender};

use super::route::Reader;
use super::slot::span_of;
use super::state::State;

/// Begins a command. It is stored in the [`Flow`], so it must not keep the flow alive.
type Begin = Box<dyn FnOnce()>;

/// A write or sync that waits for a slot.
enum Write {
    /// A write of this many bytes.
    Command(u64, Begin),
    Sync(Sync),
}

/// A sync whose caller waits until earlier writes are durable.
pub(crate) struct Sync {
    pub stream: Stream,
    pub tells: OneshotSender<Result<(), MediumError>>,
}

/// Maximum bytes of writes in progress on a member: enough to keep it busy, few enough for the slot
/// to end soon (assumed).
const DEPTH_BYTES: u64 = 8 << 20;

/// The commands that wait for a member, and those in progress on it.
pub(crate) struct Flow {
    handle: Handle,
    state: Cell<State>,
    /// Whether internal reads wait for the slot too.
    packs_reads: Cell<bool>,
    /// Whether writes go to the member in any window.
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
    /// Journal writes that went to the member outside a slot.
    writes_at_once: Cell<u64>,
    changed: Notify,
}

/// The current slot of a member, or its last one.
#[derive(Clone, Copy, Default)]
struct Slot {
    /// The time by which writes begun in the slot are expected to have ended.
    end: Nanos,
    /// Expected write bandwidth in bytes per second.
    bandwidth: u64,
    /// Bytes of writes begun in it.
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

    /// Changes the state, and begins the commands that may begin in it.
    pub(crate) fn set_state(&self, state: State) {
        self.state.set(state);
        self.begin_due();
        self.changed.notify_all();
    }

    /// Begins a slot that ends at `end`, with an expected write bandwidth in bytes per second.
    pub(crate) fn begin_slot(&self, end: Nanos, bandwidth: u64) {
        self.slot.set(Slot { end, bandwidth, begun: 0 });
        self.set_state(State::And);
    }

    /// Sets whether internal reads wait for the slot too.
    pub(crate) fn set_packs_reads(&self, packs: bool) {
        self.packs_reads.set(packs);
    }

    /// Sets whether writes go to the member in any window.
    pub(crate) fn set_overflows(&self, overflows: bool) {
        if self.overflows.replace(overflows) != overflows {
            self.begin_due();
        }
    }

    /// Returns the bytes of waiting writes and of writes in progress.
    pub(crate) fn backlog(&self) -> u64 {
        self.waiting_bytes.get() + self.bytes.get()
    }

    /// Returns the bytes of writes in progress.
    pub(crate) fn bytes_under_way(&self) -> u64 {
        self.bytes.get()
    }

    /// Returns the bytes of writes begun in this slot, or in the last one.
    pub(crate) fn begun_in_slot(&self) -> u64 {
        self.slot.get().begun
    }

    /// Whether a write or sync is in progress or waits.
    pub(crate) fn has_work(&self) -> bool {
        self.writes.get() > 0
            || !self.syncs.borrow().is_empty()
            || !self.waiting_writes.borrow().is_empty()
    }

    /// Whether a sync is in progress or waits.
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

    /// Counts a write that is submitted at once, if the member is outside its slot.
    pub(crate) fn note_at_once(&self) {
        if !self.state.get().takes_writes() {
            self.writes_at_once.set(self.writes_at_once.get() + 1);
        }
    }

    /// Waits until no read is in progress.
    pub(crate) async fn reads_ended(&self) {
        self.changed.wait_until(|| self.reads.get() == 0).await;
    }

    /// Waits until no write is in progress.
    pub(crate) async fn writes_ended(&self) {
        self.changed.wait_until(|| self.writes.get() == 0).await;
    }

    /// Waits until no write is in progress and no other write may begin in this slot.
    pub(crate) async fn slot_is_done(&self) {
        self.changed.wait_until(|| self.writes.get() == 0 && !self.next_fits()).await;
    }

    /// Takes the syncs whose turn has come.
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

    /// Queues a read until it may begin.
    pub(crate) fn enqueue_read(&self, reader: Reader, begin: Begin) {
        self.waiting_reads.borrow_mut().push_back((reader, begin));
    }

    /// Queues a write of `bytes` bytes, or begins it at once.
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

    /// Begins all commands that may begin now.
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

    /// Whether a write of `bytes` bytes may begin now: it is expected to end before the slot does.
    /// The first write of a slot always may, so that every write is written eventually.
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
