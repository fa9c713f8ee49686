//! The read cache: blocks that were read ahead of a client that reads in order. Decisions only.
//!
//! A client that has read on from where it stopped twice is taken to go on; what follows is read
//! ahead in whole flash pages, up to a window. Blocks leave when they have been read, when they are
//! written, or when the cache is full, oldest first.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use block::Block;

use crate::layout::Slot;
use crate::page::Lpn;

/// Clients that are followed at a time.
const STREAMS: usize = 16;
/// Reads in a row after which a client is taken to go on.
const RUN: u32 = 2;

/// What the cache knows of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cached {
    /// It is being read from there.
    Coming(Slot),
    Here(Block),
}

/// A client that reads in order.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// The block it reads next if it goes on.
    next: u32,
    /// Reads in a row so far.
    run: u32,
    /// The block up to which it was read ahead.
    ahead: u32,
}

/// Blocks read ahead, and for whom.
pub(crate) struct ReadCache {
    blocks: BTreeMap<Lpn, (u64, Cached)>,
    /// In order of arrival, with the ticket that tells a block from its successor.
    order: VecDeque<(Lpn, u64)>,
    ticket: u64,
    capacity: usize,
    window: u32,
    streams: Vec<Stream>,
}

impl ReadCache {
    /// Room for `capacity` blocks, of which each client may have `window` ahead. Without a window
    /// nothing is read ahead.
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

    /// Notes a read of `blocks`, and says what to read ahead, if anything.
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

    /// What is known of a block.
    pub(crate) fn get(&self, lpn: Lpn) -> Option<&Cached> {
        self.blocks.get(&lpn).map(|(_, cached)| cached)
    }

    /// A block has been handed to its reader, or is out of date.
    pub(crate) fn remove(&mut self, lpn: Lpn) {
        self.blocks.remove(&lpn);
    }

    /// The read of a block begins. The ticket is for [`Self::arrive`].
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

    /// The read has ended; it counts if the block was not removed meanwhile. Without a block it
    /// has failed, and the next reader tries by itself.
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
