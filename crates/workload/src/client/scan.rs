//! One scan: creates an iterator, seeks a key, reads on, and destroys the iterator.
//!
//! The whole scan is one operation, as in YCSB and in the random seeks of `db_bench`; the Seek and
//! each Next are also recorded separately.

use runtime::Nanos;

use super::notes::Failed;
use super::phase::Client;
use crate::operation::Operation;
use crate::oracle::ScanTicket;
use crate::{KvIterator, KvTarget, OpKind, Pair, ScanEnd};

impl<T: KvTarget> Client<T> {
    pub(super) async fn scan(&mut self, operation: Operation, since: Nanos) -> Result<(), Failed> {
        let (mut ticket, bound) = self.begin_scan(operation);
        let Self { phase, target, bound: buffer, .. } = self;
        let bound = bound.map(|number| phase.keys.write(number, buffer));
        let result = match target.create_iterator(bound).await {
            Ok(iterator) => {
                phase.notes.ledger.borrow().oracle.scan_created(&mut ticket);
                self.read(iterator, operation, &mut ticket).await
            }
            Err(error) => Err(phase.fail(OpKind::Scan, operation.key, &error)),
        };
        self.phase.notes.ledger.borrow_mut().oracle.end_scan(ticket);
        result?;
        self.phase.notes.record(OpKind::Scan, since);
        Ok(())
    }

    /// Returns the ticket, and the number of the key that bounds the scan, if any.
    fn begin_scan(&self, operation: Operation) -> (ScanTicket, Option<u64>) {
        let oracle = &mut self.phase.notes.ledger.borrow_mut().oracle;
        let bound = match self.phase.scans.end {
            ScanEnd::Length => None,
            ScanEnd::Bound => oracle.key_after(operation.key, operation.records),
        };
        (oracle.begin_scan(operation.key, bound), bound)
    }

    /// Reads pairs and destroys the iterator, also after an error.
    async fn read(
        &mut self,
        mut iterator: T::Iterator,
        operation: Operation,
        ticket: &mut ScanTicket,
    ) -> Result<(), Failed> {
        let result = self.read_pairs(&mut iterator, operation, ticket).await;
        let destroyed = iterator.destroy().await;
        result?;
        destroyed.map_err(|error| self.phase.fail(OpKind::Scan, operation.key, &error))
    }

    async fn read_pairs(
        &mut self,
        iterator: &mut T::Iterator,
        operation: Operation,
        ticket: &mut ScanTicket,
    ) -> Result<(), Failed> {
        let mut left = match self.phase.scans.end {
            ScanEnd::Length => operation.records,
            ScanEnd::Bound => u64::MAX,
        };
        let first = self.seek(iterator, operation).await?;
        let mut goes_on = self.check_pairs(operation, ticket, first.as_slice(), 1);
        left -= 1;
        while goes_on && left > 0 {
            let count = self.phase.scans.batch.min(left) as usize;
            let pairs = self.next(iterator, operation, count).await?;
            goes_on = self.check_pairs(operation, ticket, &pairs, count);
            left -= count as u64;
        }
        Ok(())
    }

    async fn seek(
        &mut self,
        iterator: &mut T::Iterator,
        operation: Operation,
    ) -> Result<Option<Pair>, Failed> {
        let Self { phase, key: buffer, .. } = self;
        let since = phase.notes.handle.now();
        let found = iterator.seek(phase.keys.write(operation.key, buffer)).await;
        let found = found.map_err(|error| phase.fail(OpKind::Seek, operation.key, &error))?;
        phase.notes.record(OpKind::Seek, since);
        Ok(found)
    }

    /// Returns the next `count` pairs; fewer at the end.
    async fn next(
        &self,
        iterator: &mut T::Iterator,
        operation: Operation,
        count: usize,
    ) -> Result<Vec<Pair>, Failed> {
        let phase = &self.phase;
        let since = phase.notes.handle.now();
        let pairs = if count == 1 && phase.scans.batch == 1 {
            iterator.next().await.map(Vec::from_iter)
        } else {
            iterator.next_many(count).await
        };
        let pairs = pairs.map_err(|error| phase.fail(OpKind::Next, operation.key, &error))?;
        if pairs.len() > count {
            let error = format!("{} pairs came where {count} were asked for", pairs.len());
            return Err(phase.fail(OpKind::Next, operation.key, &error));
        }
        phase.notes.record(OpKind::Next, since);
        Ok(pairs)
    }

    /// Checks the returned pairs, of which `count` were requested. Returns whether the scan can
    /// continue.
    fn check_pairs(
        &self,
        operation: Operation,
        ticket: &mut ScanTicket,
        pairs: &[Pair],
        count: usize,
    ) -> bool {
        let oracle = &mut self.phase.notes.ledger.borrow_mut().oracle;
        for pair in pairs {
            let surprises = oracle.check_pair(ticket, pair);
            self.phase.notes.scanned(operation.number, 1, surprises);
            if ticket.is_off_track() {
                return false;
            }
        }
        if pairs.len() < count {
            self.phase.notes.scanned(operation.number, 0, oracle.check_end(ticket));
        }
        pairs.len() == count
    }
}
