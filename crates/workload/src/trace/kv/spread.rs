//! Spreads operations recorded at the same tick of a coarse clock evenly over the tick.
//!
//! Memory: the operations of one tick.

use std::collections::VecDeque;

use runtime::Nanos;

use super::super::TraceError;
use super::record::KvRecord;

#[derive(Debug)]
pub(super) struct Spread<I> {
    records: I,
    tick: Nanos,
    /// Operations of the current tick.
    ready: VecDeque<KvRecord>,
    /// The item after them.
    next: Option<Result<KvRecord, TraceError>>,
}

impl<I: Iterator<Item = Result<KvRecord, TraceError>>> Spread<I> {
    pub(super) fn new(records: I, tick: Nanos) -> Self {
        Self { records, tick, ready: VecDeque::new(), next: None }
    }

    pub(super) fn records(&self) -> &I {
        &self.records
    }

    fn fill(&mut self) {
        let mut next = self.next.take().or_else(|| self.records.next());
        while let Some(Ok(record)) = next {
            if self.ready.front().is_some_and(|first| first.at != record.at) {
                next = Some(Ok(record));
                break;
            }
            self.ready.push_back(record);
            next = self.records.next();
        }
        self.next = next;
        let count = self.ready.len() as u64;
        for (i, record) in (0..).zip(&mut self.ready) {
            record.at += Nanos((u128::from(self.tick.0) * i / u128::from(count)) as u64);
        }
    }
}

impl<I: Iterator<Item = Result<KvRecord, TraceError>>> Iterator for Spread<I> {
    type Item = Result<KvRecord, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ready.is_empty() {
            self.fill();
        }
        // If no operation is left, the next item is an error or the end.
        self.ready.pop_front().map(Ok).or_else(|| self.next.take())
    }
}
