//! The write-ahead log (WAL): writes that are not in the index yet.
//!
//! A write enters the WAL at the instant it enters the memtable. One task writes the pending
//! records as a group (group commit) and wakes the writers that wait for it. A group is durable
//! before the next one begins. Each write chooses when it is acknowledged ([`LogSync`]). A group is
//! written as soon as a writer waits for it or for a later one, when it is full, or when its oldest
//! write with [`LogSync::Interval`] has waited for a millisecond. The WAL is trimmed when a
//! memtable has been flushed: extents that hold only older groups count as empty from then on.
//!
//! The WAL has a bounded number of extents. If they run out (many small groups in a long-lived
//! memtable), writers wait for a flush that allows trimming.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use runtime::{Nanos, Notify};

use super::group_pages::GroupId;
use super::records::Records;
use super::{LogSync, group_pages};
use crate::error::EngineError;
use crate::format::object;
use crate::format::object::Sequence;
use crate::format::page::PageKind;
use crate::format::value::Value;
use crate::manifest::RunStart;
use crate::medium::{ExtentId, Medium, Stream};
use crate::memtable::Entry;
use crate::planted::Fault;
use crate::space::{NO_ROOM, PageStore};

/// Maximum time that writes with [`LogSync::Interval`] stay in memory only.
const INTERVAL: Nanos = Nanos(1_000_000);

/// Length of a full group in runs, if the medium supports runs: enough to have several in flight.
const RUNS_OF_GROUP: u32 = 4;

/// The WAL of a running store.
pub(crate) struct Log<M> {
    store: Rc<PageStore<M>>,
    /// Default acknowledgement of writes.
    sync: LogSync,
    /// The run that writes this WAL.
    run: u32,
    /// The next groups.
    pending: RefCell<VecDeque<Pending>>,
    /// Number of the first pending group, or of the next one if none is pending.
    next: Cell<u64>,
    /// Sequence number of the newest write, written or pending.
    newest: Cell<Sequence>,
    /// Groups before this one must be written without waiting for more writes.
    wanted: Cell<u64>,
    /// Whether a timer runs that will request the pending groups.
    has_timer: Cell<bool>,
    /// Groups before this one are durable.
    durable: Cell<u64>,
    /// Groups before this one are not needed.
    trimmed: Cell<u64>,
    /// Extents of the WAL, oldest first, each with the last group that has pages in it.
    extents: RefCell<VecDeque<(ExtentId, u64)>>,
    has_work: Notify,
    is_durable: Notify,
}

/// A group that still collects writes.
#[derive(Default)]
struct Pending {
    records: Records,
    /// Bytes of the records, with values in full.
    full_bytes: u64,
    /// Whether the group accepts no more writes.
    is_closed: bool,
}

/// The group of a write in the WAL, and its acknowledgement mode.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    pub group: u64,
    sync: LogSync,
}

impl<M: Medium> Log<M> {
    /// Creates the WAL of a new run. `extents` hold groups of earlier runs that are still needed.
    pub(crate) fn new(
        store: Rc<PageStore<M>>,
        sync: LogSync,
        start: RunStart,
        extents: VecDeque<(ExtentId, u64)>,
    ) -> Self {
        let RunStart { run, group: next } = start;
        Self {
            store,
            sync,
            run,
            pending: RefCell::default(),
            next: Cell::new(next),
            newest: Cell::new(0),
            wanted: Cell::new(next),
            has_timer: Cell::new(false),
            durable: Cell::new(next),
            trimmed: Cell::new(0),
            extents: RefCell::new(extents),
            has_work: Notify::default(),
            is_durable: Notify::default(),
        }
    }

    /// Returns the group of the next write. Closes the pending groups.
    pub(crate) fn next_group(&self) -> u64 {
        let mut pending = self.pending.borrow_mut();
        if let Some(last) = pending.back_mut() {
            last.is_closed = true;
        }
        self.next.get() + pending.len() as u64
    }

    /// Appends a write. Call this when the write enters the memtable.
    pub(crate) fn push(
        self: &Rc<Self>,
        key: &[u8],
        sequence: Sequence,
        entry: &Entry,
        sync: Option<LogSync>,
    ) -> Ticket {
        self.push_all([(key, sequence, entry)], sync)
    }

    /// Appends writes that take effect together or not at all, in one group.
    pub(crate) fn push_all<'a>(
        self: &Rc<Self>,
        writes: impl IntoIterator<Item = (&'a [u8], Sequence, &'a Entry)>,
        sync: Option<LogSync>,
    ) -> Ticket {
        let sync = sync.unwrap_or(self.sync);
        let is_apart = sync == LogSync::Each;
        let mut pending = self.pending.borrow_mut();
        if is_apart || pending.back().is_none_or(|group| group.is_closed) {
            pending.push_back(Pending { is_closed: is_apart, ..Pending::default() });
        }
        let group = self.next.get() + pending.len() as u64 - 1;
        let last = pending.back_mut().expect("there is one now");
        for (key, sequence, entry) in writes {
            let before = self.newest.replace(sequence);
            assert!(before < sequence, "write {sequence} comes into the log behind {before}");
            last.records.push(key, sequence, entry);
            last.full_bytes += full_bytes(key, entry);
        }
        let is_full = last.full_bytes >= self.bytes_of_run();
        // Caps the size of a group: while a group is being written, more writes may arrive than one
        // group can or should hold. All writers of a group are acknowledged together, once the
        // whole group is durable.
        last.is_closed |= self.pages_of(last.full_bytes) >= self.long_group();
        drop(pending);
        match sync {
            LogSync::Group | LogSync::Each => self.want(group),
            _ if is_full => self.want(group),
            LogSync::Interval => self.want_later(),
            LogSync::None => {}
        }
        Ticket { group, sync }
    }

    /// Returns the bytes of writes that fill a program, or a run of programs.
    fn bytes_of_run(&self) -> u64 {
        group_pages::room(self.store.shape.payload_bytes) as u64 * u64::from(self.store.run_pages)
    }

    /// Returns the pages of a full group.
    fn long_group(&self) -> u32 {
        let PageStore { run_pages, shape, .. } = &*self.store;
        if *run_pages > shape.append_unit {
            (RUNS_OF_GROUP * run_pages).min(group_pages::LONG_GROUP)
        } else {
            group_pages::LONG_GROUP
        }
    }

    /// Requests that groups up to `group` are written.
    fn want(&self, group: u64) {
        self.wanted.set(self.wanted.get().max(group + 1));
        self.has_work.notify_all();
    }

    /// Requests that the groups pending after [`INTERVAL`] are written then.
    fn want_later(self: &Rc<Self>) {
        if self.has_timer.replace(true) {
            return;
        }
        let log = Rc::clone(self);
        self.store.handle.spawn("log interval", async move {
            log.store.handle.sleep(INTERVAL).await;
            log.has_timer.set(false);
            let pending = log.pending.borrow().len() as u64;
            if pending > 0 {
                log.want(log.next.get() + pending - 1);
            }
        });
    }

    /// Waits until a write may be acknowledged.
    ///
    /// # Errors
    /// Returns [`EngineError::ReadOnly`] if the WAL could not be written, and
    /// [`EngineError::Medium`] if it waits for space. Whether the write survives is then unknown.
    pub(crate) async fn acknowledge(&self, ticket: Ticket) -> Result<(), EngineError> {
        let is_at_once = matches!(ticket.sync, LogSync::None | LogSync::Interval);
        if is_at_once || self.store.planted.has(Fault::AcknowledgeEarly) {
            return Ok(());
        }
        self.wait_for(ticket.group).await
    }

    /// Wakes all waiters, so that they check again whether waiting makes sense.
    pub(crate) fn look_again(&self) {
        self.is_durable.notify_all();
    }

    /// Makes a group durable, and all groups before it.
    ///
    /// # Errors
    /// As [`Self::acknowledge`].
    pub(crate) async fn make_durable(&self, group: u64) -> Result<(), EngineError> {
        if self.durable.get() <= group {
            self.want(group);
        }
        self.wait_for(group).await
    }

    /// Makes all writes durable that were accepted before the call.
    ///
    /// # Errors
    /// As [`Self::acknowledge`].
    pub(crate) async fn sync(&self) -> Result<(), EngineError> {
        let end = self.next.get() + self.pending.borrow().len() as u64;
        match end.checked_sub(1) {
            Some(last) => self.make_durable(last).await,
            None => Ok(()),
        }
    }

    async fn wait_for(&self, group: u64) -> Result<(), EngineError> {
        loop {
            if self.durable.get() > group {
                return Ok(());
            }
            self.store.check_healthy()?;
            if self.store.lack().journal {
                return Err(NO_ROOM);
            }
            self.is_durable.notified().await;
        }
    }

    /// Runs the task that writes groups, until the store fails: no group may follow a group that
    /// could not be written.
    pub(crate) async fn write_forever(self: Rc<Self>) {
        loop {
            self.has_work.wait_until(|| self.is_due()).await;
            if !self.store.is_healthy() {
                self.is_durable.notify_all();
                return;
            }
            let group = self.pending.borrow_mut().pop_front().expect("a group is due");
            if let Err(error) = self.write(group).await {
                self.store.fail(error);
            }
            self.is_durable.notify_all();
        }
    }

    fn is_due(&self) -> bool {
        !self.pending.borrow().is_empty() && self.next.get() < self.wanted.get()
    }

    async fn write(&self, group: Pending) -> Result<(), EngineError> {
        let number = self.next.replace(self.next.get() + 1);
        assert_eq!(number, self.durable.get(), "a group of the log begins before the last ended");
        let id = GroupId { epoch: self.run, number };
        let payload = self.store.shape.payload_bytes;
        let stored = group.records.finish();
        let pages = group_pages::encode(PageKind::Log, id, &stored, group.full_bytes, payload);
        let note = |id| {
            let mut extents = self.extents.borrow_mut();
            match extents.back_mut() {
                Some((last, group)) if *last == id => *group = number,
                _ => extents.push_back((id, number)),
            }
        };
        self.store.write_journal(Stream::Log, pages, note).await?;
        // Includes groups after this one that were dropped meanwhile.
        self.durable.set(self.next.get());
        // The writes of this group may have been flushed meanwhile.
        self.release_before(self.trimmed.get());
        Ok(())
    }

    /// Trims the WAL: groups before `from` are no longer needed.
    pub(crate) fn trim(&self, from: u64) {
        let from = if self.store.planted.has(Fault::TrimLogEarly) { self.next.get() } else { from };
        let end = self.next.get() + self.pending.borrow().len() as u64;
        assert!(from <= end, "the log is trimmed up to group {from}, and ends before {end}");
        self.trimmed.set(from);
        self.give_up_before(from);
        self.release_before(from);
    }

    /// Drops pending groups whose writes were flushed first. A group that no writer waits for would
    /// otherwise stay pending and reserve space for ever.
    fn give_up_before(&self, from: u64) {
        let (durable, next) = (self.durable.get(), self.next.get());
        assert!(durable <= next, "groups before {durable} are durable, and {next} comes next");
        let is_idle = durable == next;
        let mut pending = self.pending.borrow_mut();
        while self.next.get() < from && pending.pop_front().is_some() {
            self.next.set(self.next.get() + 1);
        }
        if is_idle {
            self.durable.set(self.next.get());
        }
        self.is_durable.notify_all();
    }

    fn release_before(&self, from: u64) {
        // A memtable may be flushed before its last group is written: an extent is released only
        // once that group is durable.
        let from = from.min(self.durable.get());
        let mut extents = self.extents.borrow_mut();
        while let Some((id, last)) = extents.front().copied()
            && last < from
            && !self.store.extents.borrow().is_open(id)
        {
            extents.pop_front();
            self.store.release_journal_extent(id);
        }
    }

    /// Whether the WAL has space for one more write of `bytes` bytes besides the pending ones.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        let pending = self.pending.borrow();
        let waiting = pending.iter().map(|group| self.pages_of(group.full_bytes));
        let waiting: u32 = waiting.map(|pages| self.store.in_units(pages)).sum();
        let pages = waiting + self.store.in_units(self.pages_of(bytes));
        let due = self.store.set_aside[Stream::Log as usize].get();
        let extents = self.store.extents.borrow();
        let left = due.saturating_sub(extents.in_use(Stream::Log)) as u32;
        pages <= left * self.store.shape.pages_per_extent + extents.room(Stream::Log)
    }

    /// Returns a description of the state of the WAL, for diagnosing a store that makes no
    /// progress.
    pub(crate) fn background(&self) -> String {
        let extents = self.store.extents.borrow();
        format!(
            "log: next group {}, durable before {}, {} waiting; {} of {} extents, {} pages left in \
             the open one; waiting for flushes {:?}",
            self.next.get(),
            self.durable.get(),
            self.pending.borrow().len(),
            extents.in_use(Stream::Log),
            self.store.set_aside[Stream::Log as usize].get(),
            extents.room(Stream::Log),
            self.store.moved.borrow(),
        )
    }

    fn pages_of(&self, full_bytes: u64) -> u32 {
        group_pages::pages_of(full_bytes, self.store.shape.payload_bytes)
    }
}

/// Returns the bytes of a write in the WAL, with its value in full.
pub(crate) fn full_bytes(key: &[u8], entry: &Entry) -> u64 {
    object::full_len(key.len(), entry.as_ref().map_or(0, Value::len)) as u64
}
