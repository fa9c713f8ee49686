//! Power cut of a set: the dump that capacitors save.
//!
//! ```text
//! dump = bytes of discarded ranges u32 | discarded ranges
//!        | for each buffered block: number u32, sequence u64, bytes u16, bytes
//! ```

use std::rc::Rc;

use block::{BLOCK_BYTES, Block};
use runtime::Rng;

use super::Set;
use crate::nand::{CutReport, NandArray};
use crate::ssd::discards::Discards;
use crate::ssd::failure::SetFailure;
use crate::ssd::page::{Lpn, Sequence, Versioned};
use crate::ssd::planted::Fault;
use crate::ssd::prefill::Prefill;

/// The state of a set without power.
pub(crate) struct SetImage {
    pub array: NandArray,
    /// Contents of the cells that were prefilled.
    pub prefill: Option<Rc<Prefill>>,
    /// Why the set was lost before the power cut. Power does not restore a lost set.
    pub failure: Option<SetFailure>,
}

/// Contents of a dump.
#[derive(Default)]
pub(crate) struct Saved {
    pub discards: Discards,
    pub buffered: Vec<Versioned>,
}

impl Set {
    /// Cuts the power now. `rng` decides how flash operations in flight end.
    pub(crate) fn power_cut(&self, rng: &mut Rng) -> (SetImage, CutReport) {
        let (mut array, report) = self.flash.power_cut(rng);
        // A recovery that is cut short has taken no command: the dump it began with is still valid.
        if self.profile.buffer.has_capacitors && self.is_up.get() {
            let dump = self.encode_dump(!self.planted.has(Fault::DumpWithoutBuffer));
            self.dumps.reserve.write(&mut array, self.dumps.epoch.get(), &dump);
        }
        (SetImage { array, prefill: self.prefill.clone(), failure: self.failure.get() }, report)
    }

    pub(super) fn encode_dump(&self, with_buffer: bool) -> Vec<u8> {
        let buffer = self.buffer.borrow();
        let buffered = buffer.newest().filter(|_| with_buffer).collect();
        Saved { discards: self.discards.borrow().clone(), buffered }.encode()
    }
}

impl Saved {
    /// Encodes the dump.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let discards = self.discards.encode();
        let mut dump = (discards.len() as u32).to_le_bytes().to_vec();
        dump.extend(discards);
        for version in &self.buffered {
            let bytes = version.block.as_ref().map_or(&[][..], Block::bytes);
            dump.extend_from_slice(&version.lpn.0.to_le_bytes());
            dump.extend_from_slice(&version.sequence.0.to_le_bytes());
            dump.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
            dump.extend_from_slice(bytes);
        }
        dump
    }

    /// Returns whether a set of `blocks` blocks with a buffer of `buffered` blocks can have saved
    /// this.
    pub(crate) fn fits(&self, blocks: u32, buffered: u32) -> bool {
        let has_room = self.buffered.len() <= buffered as usize;
        let are_its = self.buffered.iter().all(|version| version.lpn.0 < blocks);
        has_room && are_its && self.discards.ranges().all(|range| range.end <= blocks)
    }

    /// Decodes a dump; `None` if the bytes are invalid.
    pub(crate) fn decode(dump: &[u8]) -> Option<Self> {
        let (length, rest) = dump.split_first_chunk()?;
        let (discards, mut rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        let mut buffered = Vec::new();
        while !rest.is_empty() {
            let (lpn, tail) = rest.split_first_chunk()?;
            let (sequence, tail) = tail.split_first_chunk()?;
            let (length, tail) = tail.split_first_chunk()?;
            let (bytes, tail) = tail.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
            (bytes.len() <= BLOCK_BYTES as usize).then_some(())?;
            buffered.push(Versioned {
                lpn: Lpn(u32::from_le_bytes(*lpn)),
                sequence: Sequence(u64::from_le_bytes(*sequence)),
                block: Some(Block::new(bytes)),
            });
            rest = tail;
        }
        Some(Self { discards: Discards::decode(discards)?, buffered })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(lpn: u32, discarded: std::ops::Range<u32>) -> Saved {
        let block = Some(Block::new(&[7; 9]));
        let version = Versioned { lpn: Lpn(lpn), sequence: Sequence(3), block };
        let mut discards = Discards::default();
        discards.add(discarded, Sequence(2));
        Saved { discards, buffered: vec![version] }
    }

    #[test]
    fn a_dump_with_a_block_that_is_too_long_is_none() {
        let mut dump = saved(1, 0..0).encode();
        assert!(Saved::decode(&dump).is_some());
        let length = dump.len() - 9 - 2;
        dump[length..length + 2].copy_from_slice(&4_097_u16.to_le_bytes());
        dump.resize(length + 2 + 4_097, 1);
        assert!(Saved::decode(&dump).is_none());
    }

    #[test]
    fn a_dump_fits_the_set_it_is_of() {
        assert!(saved(9, 2..10).fits(10, 1));
        assert!(!saved(10, 2..10).fits(10, 1), "a block beyond the last");
        assert!(!saved(9, 2..11).fits(10, 1), "one that was discarded");
        assert!(!saved(9, 2..10).fits(10, 0), "more than the buffer holds");
    }
}
