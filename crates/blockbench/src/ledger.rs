//! The versions written to a set, for checking every read.
//!
//! Every block written by a job carries a stamp: its set, its number, and its version, which counts
//! the writes of the block. A block that was never written is zeros. A read may return any version
//! that was current at some moment between its start and its end: no version that was replaced
//! before the read began, and none whose write began after the read ended. Writes to a block that
//! overlap in time may take effect in either order, so all of them remain possible until a later
//! write replaces them.
//!
//! A discard is a version that no block carries. From its start a block may be zeros, until a write
//! that began after the end of the discard is acknowledged. The previous content stays possible as
//! well, because a drive without room to remember a discard may ignore it.
//!
//! Cost of a read: a check for zeros as long as nothing was written, otherwise one lookup per
//! block.

use std::fmt;
use std::ops::Range;

use block::Block;
use block::nvme::SetId;

use crate::versions::Versions;

/// The versions of one set.
pub(super) struct Ledger {
    set: SetId,
    versions: Versions,
    /// Discards in flight.
    discarding: Vec<Range<u64>>,
}

/// A block with a content that the read must not return.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// The set.
    pub set: u16,
    /// The block.
    pub block: u64,
    /// The oldest and the newest allowed version; version 0 is zeros.
    pub allowed: (u32, u32),
    /// The content of the block.
    pub found: Found,
}

/// The content of a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    /// Zeros.
    Zeros,
    /// A stamp.
    Stamp {
        /// The set in the stamp.
        set: u16,
        /// The block in the stamp.
        block: u64,
        /// The version.
        version: u32,
    },
    /// Anything else.
    Other,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (oldest, newest) = self.allowed;
        write!(f, "block {} of set {} may have version ", self.block, self.set)?;
        if oldest == newest {
            write!(f, "{oldest}")?;
        } else {
            write!(f, "{oldest} to {newest}")?;
        }
        match self.found {
            Found::Zeros => f.write_str(" and is zeros (version 0)"),
            Found::Stamp { set, block, version } if (set, block) == (self.set, self.block) => {
                write!(f, " and has version {version}")
            }
            Found::Stamp { set, block, version } => {
                write!(f, " and holds version {version} of block {block} of set {set}")
            }
            Found::Other => f.write_str(" and holds what nobody wrote"),
        }
    }
}

/// Bytes of a stamp: the block, the version, the set.
const STAMP_BYTES: usize = 14;

fn stamp(set: SetId, block: u32, version: u32) -> Block {
    let mut bytes = [0; STAMP_BYTES];
    bytes[0..8].copy_from_slice(&u64::from(block).to_le_bytes());
    bytes[8..12].copy_from_slice(&version.to_le_bytes());
    bytes[12..14].copy_from_slice(&set.get().to_le_bytes());
    Block::new(&bytes)
}

fn found(block: &Block) -> Found {
    let stored = block.bytes();
    if stored.is_empty() {
        return Found::Zeros;
    }
    if stored.len() > STAMP_BYTES {
        return Found::Other;
    }
    let mut bytes = [0; STAMP_BYTES];
    bytes[..stored.len()].copy_from_slice(stored);
    let (block, rest) = bytes.split_first_chunk().expect("a stamp is longer than that");
    let (version, set) = rest.split_first_chunk().expect("a stamp is longer than that");
    Found::Stamp {
        set: u16::from_le_bytes(set.try_into().expect("what is left of a stamp")),
        block: u64::from_le_bytes(*block),
        version: u32::from_le_bytes(*version),
    }
}

impl Ledger {
    pub(super) fn new(set: SetId) -> Self {
        Self { set, versions: Versions::default(), discarding: Vec::new() }
    }

    /// Begins a write of `blocks` blocks from `first`, and returns the blocks to write.
    pub(super) fn begin_write(&mut self, first: u64, blocks: u32) -> Vec<Block> {
        let numbers = first as u32..first as u32 + blocks;
        let versions = numbers.map(|block| {
            let entry = self.versions.entry(block);
            entry.newest += 1;
            if entry.under_way == 0 {
                entry.overlapping = entry.newest;
            }
            entry.under_way += 1;
            stamp(self.set, block, entry.newest)
        });
        versions.collect()
    }

    /// Notes that the write is acknowledged.
    pub(super) fn end_write(&mut self, first: u64, blocks: u32) {
        for block in first as u32..first as u32 + blocks {
            let entry = self.versions.entry(block);
            entry.under_way -= 1;
            if entry.under_way == 0 {
                entry.oldest = entry.overlapping;
            }
        }
    }

    /// Begins a discard. Blocks that were never written are zeros before and after it.
    pub(super) fn begin_discard(&mut self, blocks: Range<u64>) {
        self.note_discard(&blocks);
        self.discarding.push(blocks);
    }

    /// Notes that the discard is acknowledged.
    pub(super) fn end_discard(&mut self, blocks: &Range<u64>) {
        let at = self.discarding.iter().position(|other| other == blocks);
        self.discarding.swap_remove(at.expect("it has begun"));
        // A write that was acknowledged in the meantime may have taken effect before or after the
        // discard.
        self.note_discard(blocks);
    }

    fn note_discard(&mut self, blocks: &Range<u64>) {
        if self.versions.is_empty() {
            return;
        }
        for block in blocks.clone() {
            if let Some(entry) = self.versions.get_mut(block as u32) {
                entry.newest += 1;
                entry.discarded = entry.newest;
            }
        }
    }

    /// Whether a block may be zeros for a read that ends now, if `oldest` was the oldest possible
    /// version at the start of the read.
    fn may_be_zeros(&self, block: u64, oldest: u32) -> bool {
        let discarded = self.versions.get(block as u32).map_or(0, |entry| entry.discarded);
        let is_being_discarded = || self.discarding.iter().any(|blocks| blocks.contains(&block));
        oldest == 0 || oldest <= discarded || is_being_discarded()
    }

    /// Begins a read. Fills `oldest` with the oldest possible version of each block; leaves it
    /// empty if nothing was ever written to the set.
    pub(super) fn begin_read(&self, first: u64, blocks: u32, oldest: &mut Vec<u32>) {
        oldest.clear();
        if !self.versions.is_empty() {
            let numbers = first as u32..first as u32 + blocks;
            let of = |block| self.versions.get(block).map_or(0, |entry| entry.oldest);
            oldest.extend(numbers.map(of));
        }
    }

    /// Ends a read. Returns a [`Mismatch`] for the first wrong block.
    pub(super) fn end_read(
        &self,
        first: u64,
        read: &[Block],
        oldest: &[u32],
    ) -> Result<(), Mismatch> {
        if self.versions.is_empty() && read.iter().all(|block| block.bytes().is_empty()) {
            return Ok(());
        }
        for (i, block) in read.iter().enumerate() {
            let number = first + i as u64;
            let newest = self.versions.get(number as u32).map_or(0, |entry| entry.newest);
            let oldest = oldest.get(i).copied().unwrap_or(0);
            let found = found(block);
            let is_right = match found {
                Found::Zeros => self.may_be_zeros(number, oldest),
                Found::Stamp { set, block, version } => {
                    (set, block) == (self.set.get(), number) && (oldest..=newest).contains(&version)
                }
                Found::Other => false,
            };
            if !is_right {
                let set = self.set.get();
                return Err(Mismatch { set, block: number, allowed: (oldest, newest), found });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger() -> Ledger {
        Ledger::new(SetId::new(2).expect("not zero"))
    }

    /// Reads one block: calls `between` during the read, which then returns `block`.
    fn read(
        ledger: &mut Ledger,
        first: u64,
        between: impl FnOnce(&mut Ledger),
        block: &Block,
    ) -> Result<(), Mismatch> {
        let mut oldest = Vec::new();
        ledger.begin_read(first, 1, &mut oldest);
        between(ledger);
        ledger.end_read(first, std::slice::from_ref(block), &oldest)
    }

    fn write(ledger: &mut Ledger, first: u64) -> Block {
        let block = ledger.begin_write(first, 1).remove(0);
        ledger.end_write(first, 1);
        block
    }

    #[test]
    fn what_nobody_wrote_is_zeros() {
        let mut ledger = ledger();
        assert_eq!(read(&mut ledger, 7, |_| (), &Block::ZERO), Ok(()));
        let stray = read(&mut ledger, 7, |_| (), &Block::new(&[1])).expect_err("not zeros");
        assert_eq!(
            stray.to_string(),
            "block 7 of set 2 may have version 0 and holds version 0 of block 1 of set 0"
        );
        write(&mut ledger, 8);
        assert_eq!(read(&mut ledger, 7, |_| (), &Block::ZERO), Ok(()));
        let other = read(&mut ledger, 7, |_| (), &Block::new(&[1; 99])).expect_err("not zeros");
        assert!(other.to_string().ends_with("holds what nobody wrote"), "{other}");
    }

    #[test]
    fn a_read_returns_what_was_acknowledged_or_is_being_written() {
        let mut ledger = ledger();
        let one = write(&mut ledger, 7);
        assert_eq!(read(&mut ledger, 7, |_| (), &one), Ok(()));
        let lost = read(&mut ledger, 7, |_| (), &Block::ZERO).expect_err("it was written");
        assert_eq!(
            lost.to_string(),
            "block 7 of set 2 may have version 1 and is zeros (version 0)"
        );
        let two = ledger.begin_write(7, 1).remove(0);
        for either in [&one, &two] {
            assert_eq!(read(&mut ledger, 7, |_| (), either), Ok(()));
        }
        let ends = |ledger: &mut Ledger| ledger.end_write(7, 1);
        assert_eq!(read(&mut ledger, 7, ends, &one), Ok(()), "it began before");
        assert_eq!(read(&mut ledger, 7, |_| (), &two), Ok(()));
        let stale = read(&mut ledger, 7, |_| (), &one).expect_err("replaced");
        assert_eq!(stale.allowed, (2, 2));
        let begins = |ledger: &mut Ledger| drop(ledger.begin_write(7, 1));
        assert_eq!(read(&mut ledger, 7, begins, &two), Ok(()));
        let early = stamp(ledger.set, 7, 4);
        let early = read(&mut ledger, 7, |_| (), &early).expect_err("not begun");
        assert_eq!(early.to_string(), "block 7 of set 2 may have version 2 to 3 and has version 4");
    }

    #[test]
    fn writes_that_overlap_come_in_either_order() {
        let mut ledger = ledger();
        write(&mut ledger, 7);
        let (two, three) = (ledger.begin_write(7, 1).remove(0), ledger.begin_write(7, 1).remove(0));
        ledger.end_write(7, 1);
        ledger.end_write(7, 1);
        for either in [&two, &three] {
            assert_eq!(read(&mut ledger, 7, |_| (), either), Ok(()));
        }
        let four = write(&mut ledger, 7);
        assert_eq!(read(&mut ledger, 7, |_| (), &four), Ok(()));
        assert!(read(&mut ledger, 7, |_| (), &three).is_err());
    }

    #[test]
    fn what_was_discarded_is_zeros_or_what_it_was_until_it_is_written_again() {
        let mut ledger = ledger();
        let one = write(&mut ledger, 7);
        ledger.begin_discard(0..100);
        let two = write(&mut ledger, 7);
        for either in [&two, &Block::ZERO] {
            assert_eq!(read(&mut ledger, 7, |_| (), either), Ok(()), "the discard is under way");
        }
        assert!(read(&mut ledger, 7, |_| (), &one).is_err(), "replaced");
        ledger.end_discard(&(0..100));
        for either in [&two, &Block::ZERO] {
            assert_eq!(read(&mut ledger, 7, |_| (), either), Ok(()), "it may have been ignored");
        }
        assert_eq!(read(&mut ledger, 8, |_| (), &Block::ZERO), Ok(()));
        let discards = |ledger: &mut Ledger| {
            ledger.begin_discard(7..8);
            ledger.end_discard(&(7..8));
        };
        let again = write(&mut ledger, 7);
        assert!(read(&mut ledger, 7, |_| (), &Block::ZERO).is_err(), "written again");
        assert_eq!(read(&mut ledger, 7, discards, &Block::ZERO), Ok(()), "discarded meanwhile");
        assert_eq!(read(&mut ledger, 7, |_| (), &again), Ok(()));
    }

    #[test]
    fn each_block_of_a_long_read_is_checked() {
        let mut ledger = ledger();
        write(&mut ledger, 8);
        let blocks = ledger.begin_write(7, 3);
        ledger.end_write(7, 3);
        let mut oldest = Vec::new();
        ledger.begin_read(7, 3, &mut oldest);
        assert_eq!(oldest, [1, 2, 1]);
        assert_eq!(ledger.end_read(7, &blocks, &oldest), Ok(()));
        let swapped = [blocks[0].clone(), blocks[2].clone(), blocks[1].clone()];
        let wrong = ledger.end_read(7, &swapped, &oldest).expect_err("swapped");
        assert_eq!((wrong.block, wrong.allowed), (8, (2, 2)));
        assert!(wrong.to_string().ends_with("holds version 1 of block 9 of set 2"), "{wrong}");
    }
}
