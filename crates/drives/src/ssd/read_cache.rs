//! The read cache: blocks read ahead of clients that read sequentially. Decisions only.
//!
//! A client that has twice continued where its last read ended is assumed to read sequentially. The
//! following blocks are read ahead in whole flash pages, up to a window. Blocks leave the cache
//! when they are written or discarded, or when the cache is full, oldest first.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use block::Block;

use super::layout::Slot;
use super::page::Lpn;

/// Sequential clients tracked at a time.
const STREAMS: usize = 16;
/// Reads in a row after which a client is assumed to read sequentially.
const RUN: u32 = 2;

/// State of a cached block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cached {
    /// Being read from that slot.
    Coming(Slot),
    Here(Block),
}

/// A client that reads sequentially.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// The next block if it continues.
    next: u32,
    /// Reads in a row so far.
    run: u32,
    /// End of the blocks read ahead for it.
    ahead: u32,
}

/// Blocks read ahead, and the sequential clients.
pub(crate) struct ReadCache {
    blocks: BTreeMap<Lpn, (u64, Cached)>,
    /// In order of arrival. The ticket distinguishes a block from a later read-ahead of it.
    order: VecDeque<(Lpn, u64)>,
    ticket: u64,
    capacity: usize,
    window: u32,
    streams: Vec<Stream>,
}

impl ReadCache {
    /// Creates a cache for `capacity` blocks, with a read-ahead of up to `window` blocks for each
    /// client. A window of 0 disables read-ahead.
    pub(crate) fn new(capacity: usize, window: u32) -> Self {
        let window = window.min(capacity as u32 / 2);
        Self {
            blocks: BTreeMap::new(),
            order: VecDeque::new(),
            ticket: 0,
            capacity,
            window,
            streams: Vec::new(),
        }
    }

    /// Notes a read of `blocks`, and returns the blocks to read ahead, or an empty range.
    pub(crate) fn note(&mut self, blocks: &Range<u32>, end_of_set: u32) -> Range<u32> {
        if self.window == 0 {
            return 0..0;
        }
        let known = self.streams.iter().position(|stream| stream.next == blocks.start);
        let mut stream = match known {
            Some(at) => self.streams.remove(at),
            None => Stream { next: 0, run: 0, ahead: 0 },
        };
        stream.next = blocks.end;
        stream.run += 1;
        stream.ahead = stream.ahead.max(blocks.end);
        let wanted = (blocks.end + self.window).min(end_of_set);
        let is_due = stream.run > RUN && stream.ahead - blocks.end <= self.window / 2;
        let ahead = if is_due { stream.ahead..wanted } else { 0..0 };
        stream.ahead = stream.ahead.max(ahead.end);
        self.streams.truncate(STREAMS - 1);
        self.streams.insert(0, stream);
        ahead
    }

    /// Returns the state of a block, if it is cached or being read ahead.
    pub(crate) fn get(&self, lpn: Lpn) -> Option<&Cached> {
        self.blocks.get(&lpn).map(|(_, cached)| cached)
    }

    /// Removes a block that is out of date, or whose read-ahead has failed.
    pub(crate) fn remove(&mut self, lpn: Lpn) {
        self.blocks.remove(&lpn);
    }

    /// Notes that the read-ahead of a block begins. Returns the ticket for [`Self::arrive`].
    pub(crate) fn expect(&mut self, lpn: Lpn, slot: Slot) -> u64 {
        self.ticket += 1;
        self.blocks.insert(lpn, (self.ticket, Cached::Coming(slot)));
        self.order.push_back((lpn, self.ticket));
        while self.blocks.len() > self.capacity || self.order.len() > 2 * self.capacity {
            let Some((oldest, ticket)) = self.order.pop_front() else { break };
            if self.blocks.get(&oldest).is_some_and(|(of, _)| *of == ticket) {
                self.blocks.remove(&oldest);
            }
        }
        self.ticket
    }

    /// Notes that a read-ahead has ended. It is ignored if the block was removed meanwhile. `None`:
    /// the read failed, and the next client reads the block itself.
    pub(crate) fn arrive(&mut self, lpn: Lpn, ticket: u64, block: Option<Block>) {
        let Some((expected, cached)) = self.blocks.get_mut(&lpn) else { return };
        if *expected != ticket {
            return;
        }
        match block {
            Some(block) => *cached = Cached::Here(block),
            None => self.remove(lpn),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_goes_on_is_read_ahead_of() {
        let mut cache = ReadCache::new(1_000, 32);
        let ahead: Vec<_> = (0..40).map(|i| cache.note(&(i..i + 1), 10_000)).collect();
        assert!(ahead[0].is_empty() && ahead[1].is_empty());
        assert_eq!(ahead[2], 3..35);
        let next = ahead[3..].iter().find(|range| !range.is_empty()).expect("it goes on");
        assert_eq!(*next, 35..51, "when half of the window is used up");
    }

    #[test]
    fn a_client_that_jumps_is_not() {
        let mut cache = ReadCache::new(1_000, 32);
        assert!((0..100).all(|i| cache.note(&(i * 7..i * 7 + 1), 10_000).is_empty()));
    }

    #[test]
    fn nothing_is_read_beyond_the_end() {
        let mut cache = ReadCache::new(1_000, 32);
        for i in 90..100 {
            let ahead = cache.note(&(i..i + 1), 100);
            assert!(ahead.end <= 100);
        }
    }

    #[test]
    fn a_block_that_was_written_meanwhile_does_not_arrive() {
        let mut cache = ReadCache::new(10, 4);
        let first = cache.expect(Lpn(5), Slot(9));
        assert_eq!(cache.get(Lpn(5)), Some(&Cached::Coming(Slot(9))));
        cache.remove(Lpn(5));
        cache.arrive(Lpn(5), first, Some(Block::new(b"old")));
        assert_eq!(cache.get(Lpn(5)), None);
        let second = cache.expect(Lpn(5), Slot(9));
        cache.arrive(Lpn(5), first, Some(Block::new(b"old")));
        cache.arrive(Lpn(5), second, Some(Block::new(b"new")));
        assert_eq!(cache.get(Lpn(5)), Some(&Cached::Here(Block::new(b"new"))));
    }

    #[test]
    fn the_oldest_leave_when_it_is_full() {
        let mut cache = ReadCache::new(3, 1);
        for i in 0..5 {
            cache.expect(Lpn(i), Slot(i));
        }
        let known: Vec<_> = (0..5).filter(|i| cache.get(Lpn(*i)).is_some()).collect();
        assert_eq!(known, [2, 3, 4]);
    }
}
