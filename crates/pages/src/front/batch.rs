//! Several writes at one instant: after a power cut all of them are there, or none.
//!
//! They go into one memtable, which one edit takes to the index, and into one group of the log, which counts as a whole or not at
//! all. So a batch has to fit in a memtable; where the active one has no room for it, that is frozen first.

use std::rc::Rc;

use runtime::Nanos;

use crate::effort::Effort;
use crate::error::EngineError;
use crate::front::admission::Asked;
use crate::front::{Front, Index};
use crate::journal::LogSync;
use crate::journal::log::{Ticket, full_bytes};
use crate::medium::Medium;
use crate::memtable::Entry;
use crate::operations::{BatchOptions, Kind};

/// A write of a batch: its key, and the value or a delete.
pub type BatchWrite = (Box<[u8]>, Entry);

/// How much a batch holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchSize {
    /// Writes.
    pub writes: usize,
    /// Bytes that they take in a memtable.
    pub bytes: u64,
}

impl BatchSize {
    /// Of these writes.
    pub fn of(batch: &[BatchWrite]) -> Self {
        let bytes = batch.iter().map(|(key, entry)| full_bytes(key, entry)).sum();
        Self { writes: batch.len(), bytes }
    }

    fn fits_in(self, room: Self) -> bool {
        self.writes <= room.writes && self.bytes <= room.bytes
    }
}

impl<M: Medium> Front<M> {
    /// The largest batch there may be: half of what a memtable holds.
    pub fn max_batch(&self) -> BatchSize {
        BatchSize { writes: self.limits.entries / 2, bytes: self.limits.bytes / 2 }
    }

    /// Writes all of `batch` at one instant, later writes of a key over earlier ones.
    ///
    /// # Errors
    /// [`EngineError::BatchTooLarge`]; otherwise as [`Self::write`], for all of it.
    pub async fn write_batch(
        &self,
        index: &impl Index,
        batch: Vec<BatchWrite>,
        options: BatchOptions,
        work: Nanos,
    ) -> Result<(), EngineError> {
        let (size, max) = (BatchSize::of(&batch), self.max_batch());
        if !size.fits_in(max) {
            return Err(EngineError::BatchTooLarge { size, max });
        }
        if batch.is_empty() {
            return Ok(());
        }
        let effort = Effort { memtables: size.writes as u32, ..Effort::default() };
        self.store.cpu.cores.spend(work + self.store.cpu.costs.of(effort)).await;
        let kind = match Kind::of(batch.iter().all(|(_, entry)| entry.is_none())) {
            Kind::Put if options.makes_room && self.left_for_exchange > 0 => Kind::Exchange,
            kind => kind,
        };
        loop {
            self.wait_for_room(index, kind, Asked::batch(size)).await?;
            if self.active_takes(size) {
                break;
            }
            // Another one may be frozen. The log may have room for less than before.
            self.freeze_active();
        }
        // No await from there to here, and none before all are in.
        let ticket = self.insert_all(index, batch, options.sync);
        self.acknowledge(ticket).await
    }

    /// Whether the active memtable takes so much without becoming more than full.
    pub(super) fn active_takes(&self, size: BatchSize) -> bool {
        let memtables = self.memtables.borrow();
        let active = memtables.active.borrow();
        let writes = self.limits.entries.saturating_sub(active.len());
        let bytes = self.limits.bytes.saturating_sub(active.bytes());
        size.fits_in(BatchSize { writes, bytes })
    }

    fn insert_all(
        &self,
        index: &impl Index,
        mut batch: Vec<BatchWrite>,
        sync: Option<LogSync>,
    ) -> Option<Ticket> {
        let first = self.sequence.get() + 1;
        let size = |(key, entry): &BatchWrite| {
            key.len() as u64 + entry.as_ref().map_or(0, |value| u64::from(value.len()))
        };
        self.sequence.set(self.sequence.get() + batch.len() as u64);
        self.writes.set(self.writes.get() + batch.len() as u64);
        self.user_bytes.set(self.user_bytes.get() + batch.iter().map(size).sum::<u64>());
        for (_, entry) in &mut batch {
            *entry = self.place(entry.take());
        }
        let log = self.log.borrow();
        let numbered = || (first..).zip(&batch).map(|(n, (key, entry))| (&key[..], n, entry));
        let ticket = log.as_ref().map(|log| log.push_all(numbered(), sync));
        drop(log);
        let active = Rc::clone(&self.memtables.borrow().active);
        if let Some(ticket) = ticket {
            active.borrow_mut().note_group(ticket.group);
        }
        let snapshot = index.newest_snapshot();
        for (sequence, (key, entry)) in (first..).zip(batch) {
            self.watched.note(&key, entry.is_some());
            active.borrow_mut().insert_placed(&key, sequence, entry, snapshot);
        }
        if self.active_is_full() || index.wants_flush() {
            self.freeze_active();
        }
        ticket
    }
}
