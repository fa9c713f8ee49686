//! The referee: a small event model of a block drive, to check the large one against.
//!
//! It was written from the description of the mechanism (stations, who waits for whom, which superblock is
//! collected) and shares no code with the crate: no runtime, no flash, no mapping, times as plain numbers
//! of microseconds. What both have in common is the description, so what the referee cannot find is a fault of
//! that; docs/model.md says what hardware is described.

pub(crate) mod greedy;
pub(crate) mod reads;

/// Numbers that look random: Marsaglia's xorshift.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) % bound as u64) as usize
    }
}
