//! Atomic batches: after a power cut either all writes of a batch exist or none.
//!
//! A batch goes into one memtable, which one edit moves to the index, and into one group of the
//! log, which counts as a whole or not at all. A batch must therefore fit in a memtable. If the
//! active one has no room for it, that one is frozen first.

use std::rc::Rc;

use runtime::Nanos;

use super::admission::Asked;
use super::{Front, Index};
use crate::effort::Effort;
use crate::error::{BatchSize, EngineError};
use crate::medium::Medium;
use crate::memtable::Entry;
use crate::operations::{BatchOptions, Kind};
use crate::wal::LogSync;
use crate::wal::log::{Ticket, full_bytes};

/// A write of a batch: the key, and the value or a delete.
pub type BatchWrite = (Box<[u8]>, Entry);

impl BatchSize {
    /// Returns the size of these writes.
    pub fn of(batch: &[BatchWrite]) -> Self {
        let bytes = batch.iter().map(|(key, entry)| full_bytes(key, entry)).sum();
        Self { writes: batch.len(), bytes }
    }

    fn fits_in(self, room: Self) -> bool {
        self.writes <= room.writes && self.bytes <= room.bytes
    }
}

impl<M: Medium> Front<M> {
    /// Returns the largest batch allowed: half of a memtable.
    pub(crate) fn max_batch(&self) -> BatchSize {
        BatchSize { writes: self.limits.entries / 2, bytes: self.limits.bytes / 2 }
    }

    /// Writes all of `batch` atomically. Later writes of a key overwrite earlier ones.
    ///
    /// # Errors
    /// Returns [`EngineError::BatchTooLarge`] if the batch is too large, otherwise the errors of
    /// [`Self::write`], for the whole batch.
    pub(crate) async fn write_batch(
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
            // Another memtable may be frozen. The log may have less room afterwards.
            self.freeze_active();
        }
        // No await since the check above, and none before all writes are inserted.
        let ticket = self.insert_all(index, batch, options.sync);
        self.acknowledge(ticket).await
    }

    /// Whether the active memtable can hold `size` without exceeding its limits.
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
