//! The referee: a small event model of a block drive, to check the large one against.
//!
//! It was written from the description of the mechanism (stations, queues, the choice of the
//! superblock to collect) and shares no code with the crate: no runtime, no flash, no mapping;
//! times are plain numbers of microseconds. Both share the description, so the referee cannot find
//! errors in it; docs/model.md lists the hardware described.

pub(crate) mod greedy;
pub(crate) mod reads;

/// Pseudo-random numbers: Marsaglia's xorshift.
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
