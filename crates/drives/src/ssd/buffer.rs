//! The write buffer: newest versions that are not on flash yet. Decisions only, no I/O.
//!
//! A block that is overwritten while it waits costs no second program. A block that is overwritten
//! while its program is in flight has two versions here; the newer one waits until the older one's
//! program has ended, so that programs of one block never overtake each other.

use std::collections::{BTreeMap, VecDeque};

use block::Block;
use runtime::Permit;

use super::page::{Lpn, Sequence, Versioned};

/// A version and the buffer room it occupies.
struct Buffered {
    sequence: Sequence,
    block: Block,
    /// A Flush issued in this generation or a later one waits for the version.
    generation: u64,
    _room: Permit,
}

#[derive(Default)]
struct Entry {
    waiting: Option<Buffered>,
    programming: Option<Buffered>,
    /// Whether the block was discarded while its program was in flight: the programmed copy is not
    /// mapped.
    is_discarded: bool,
}

/// The buffered versions of a set.
#[derive(Default)]
pub(crate) struct Buffer {
    entries: BTreeMap<Lpn, Entry>,
    /// Blocks that wait for a program, oldest first. Some may have left the buffer since.
    queue: VecDeque<Lpn>,
    waiting: u32,
    programming: u32,
    generation: u64,
    /// Versions of each generation that are not on flash yet.
    unsafe_versions: BTreeMap<u64, u32>,
}

impl Buffer {
    /// Inserts a version; it replaces one that waits.
    pub(crate) fn insert(&mut self, lpn: Lpn, sequence: Sequence, block: Block, room: Permit) {
        let entry = self.entries.entry(lpn).or_default();
        let mut new = Buffered { sequence, block, generation: self.generation, _room: room };
        if let Some(old) = entry.waiting.take() {
            // A Flush that waits for the old version waits for its replacement.
            new.generation = old.generation;
        } else {
            self.waiting += 1;
            *self.unsafe_versions.entry(new.generation).or_default() += 1;
            if entry.programming.is_none() {
                self.queue.push_back(lpn);
            }
        }
        entry.waiting = Some(new);
    }

    /// Returns the newest version of a block, if it is buffered.
    pub(crate) fn get(&self, lpn: Lpn) -> Option<&Block> {
        let entry = self.entries.get(&lpn)?;
        let landing = entry.programming.as_ref().filter(|_| !entry.is_discarded);
        entry.waiting.as_ref().or(landing).map(|version| &version.block)
    }

    /// Returns the number of blocks that wait for a program.
    pub(crate) fn waiting(&self) -> u32 {
        self.waiting
    }

    /// Returns whether the buffer is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting == 0 && self.programming == 0
    }

    /// Returns whether programs are in flight.
    pub(crate) fn is_programming(&self) -> bool {
        self.programming > 0
    }

    /// Moves up to `most` versions into a program, oldest first.
    pub(crate) fn take(&mut self, most: u32) -> Vec<Versioned> {
        let mut taken = Vec::with_capacity(most as usize);
        while taken.len() < most as usize {
            let Some(lpn) = self.queue.pop_front() else { break };
            let Some(entry) = self.entries.get_mut(&lpn) else { continue };
            if entry.programming.is_some() {
                // The block is queued again when that program has ended.
                continue;
            }
            let Some(version) = entry.waiting.take() else { continue };
            let (sequence, block) = (version.sequence, version.block.clone());
            taken.push(Versioned { lpn, sequence, block: Some(block) });
            entry.programming = Some(version);
            self.waiting -= 1;
            self.programming += 1;
        }
        taken
    }

    /// Notes that the program of a version has ended. Returns false if the block was discarded
    /// meanwhile: the mapping must not point to the copy.
    pub(crate) fn landed(&mut self, lpn: Lpn) -> bool {
        let entry = self.entries.get_mut(&lpn).expect("what is being programmed is here");
        let landed = entry.programming.take().expect("it was being programmed");
        self.programming -= 1;
        let is_wanted = !std::mem::take(&mut entry.is_discarded);
        if entry.waiting.is_some() {
            self.queue.push_back(lpn);
        } else {
            self.entries.remove(&lpn);
        }
        self.count_safe(landed.generation);
        is_wanted
    }

    /// Discards a block. Returns whether it was buffered.
    pub(crate) fn discard(&mut self, lpn: Lpn) -> bool {
        let Some(entry) = self.entries.get_mut(&lpn) else { return false };
        let was_here = entry.waiting.is_some() || !entry.is_discarded;
        let waited = entry.waiting.take();
        if entry.programming.is_some() {
            entry.is_discarded = true;
        } else {
            self.entries.remove(&lpn);
        }
        if let Some(version) = waited {
            self.waiting -= 1;
            self.count_safe(version.generation);
        }
        was_here
    }

    fn count_safe(&mut self, generation: u64) {
        let versions = self.unsafe_versions.get_mut(&generation).expect("it was counted");
        *versions -= 1;
        if *versions == 0 {
            self.unsafe_versions.remove(&generation);
        }
    }

    /// Begins a new generation. Versions now in the buffer belong to the returned generation or to
    /// earlier ones.
    pub(crate) fn begin_generation(&mut self) -> u64 {
        self.generation += 1;
        self.generation - 1
    }

    /// Returns whether all versions of `generation` and of earlier ones are on flash.
    pub(crate) fn is_safe(&self, generation: u64) -> bool {
        self.unsafe_versions.keys().next().is_none_or(|oldest| *oldest > generation)
    }

    /// Returns the newest version of each buffered block, for the dump at a power cut.
    pub(crate) fn newest(&self) -> impl Iterator<Item = Versioned> + '_ {
        self.entries.iter().filter_map(|(lpn, entry)| {
            let landing = entry.programming.as_ref().filter(|_| !entry.is_discarded);
            let version = entry.waiting.as_ref().or(landing)?;
            let (sequence, block) = (version.sequence, version.block.clone());
            Some(Versioned { lpn: *lpn, sequence, block: Some(block) })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use runtime::Semaphore;

    use super::*;

    fn room() -> Permit {
        let mut acquire = std::pin::pin!(Semaphore::new(1).acquire(1));
        match acquire.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(permit) => permit,
            Poll::Pending => unreachable!("the semaphore is free"),
        }
    }

    fn insert(buffer: &mut Buffer, lpn: u32, sequence: u64) {
        let block = Block::new(&sequence.to_le_bytes());
        buffer.insert(Lpn(lpn), Sequence(sequence), block, room());
    }

    fn sequences(taken: &[Versioned]) -> Vec<(u32, u64)> {
        taken.iter().map(|v| (v.lpn.0, v.sequence.0)).collect()
    }

    #[test]
    fn the_newest_version_goes_to_flash_once() {
        let mut buffer = Buffer::default();
        insert(&mut buffer, 7, 1);
        insert(&mut buffer, 8, 2);
        insert(&mut buffer, 7, 3);
        assert_eq!(sequences(&buffer.take(9)), [(7, 3), (8, 2)]);
        assert!(buffer.landed(Lpn(7)) && buffer.landed(Lpn(8)));
        assert!(buffer.is_empty());
    }

    #[test]
    fn a_version_waits_for_the_one_before_it() {
        let mut buffer = Buffer::default();
        insert(&mut buffer, 7, 1);
        buffer.take(1);
        insert(&mut buffer, 7, 2);
        assert_eq!(sequences(&buffer.take(1)), []);
        assert_eq!(buffer.get(Lpn(7)), Some(&Block::new(&[2])));
        assert!(buffer.landed(Lpn(7)));
        assert_eq!(sequences(&buffer.take(1)), [(7, 2)]);
    }

    #[test]
    fn what_lands_after_a_discard_is_not_wanted() {
        let mut buffer = Buffer::default();
        insert(&mut buffer, 7, 1);
        buffer.take(1);
        assert!(buffer.discard(Lpn(7)) && !buffer.discard(Lpn(7)));
        assert_eq!(buffer.get(Lpn(7)), None);
        insert(&mut buffer, 7, 2);
        assert_eq!(buffer.get(Lpn(7)), Some(&Block::new(&[2])));
        assert!(!buffer.landed(Lpn(7)));
        assert_eq!(sequences(&buffer.take(1)), [(7, 2)]);
        assert!(buffer.landed(Lpn(7)));
    }

    #[test]
    fn a_flush_waits_for_what_was_there_and_for_what_replaces_it() {
        let mut buffer = Buffer::default();
        insert(&mut buffer, 7, 1);
        let generation = buffer.begin_generation();
        insert(&mut buffer, 8, 2);
        insert(&mut buffer, 7, 3);
        assert!(!buffer.is_safe(generation));
        assert_eq!(sequences(&buffer.take(1)), [(7, 3)]);
        assert!(!buffer.is_safe(generation));
        buffer.landed(Lpn(7));
        assert!(buffer.is_safe(generation), "block 8 came later");
        assert!(!buffer.is_safe(generation + 1));
    }
}
