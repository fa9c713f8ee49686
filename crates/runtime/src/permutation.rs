//! A pseudo-random permutation that is computed, not stored. Its inverse is as cheap.
//!
//! It is a Feistel network over the next power of two, with two halves that may differ by one bit,
//! repeated until the result is in range: at most twice on average.

use crate::mix64;

const ROUNDS: u64 = 4;

/// A seeded permutation of `0..count`.
#[derive(Clone, Copy, Debug)]
pub struct Permutation {
    count: u64,
    low_bits: u32,
    high_bits: u32,
    seed: u64,
}

impl Permutation {
    /// Returns the permutation for `seed`.
    pub fn new(count: u64, seed: u64) -> Self {
        let bits = (u64::BITS - count.saturating_sub(1).leading_zeros()).max(2);
        Self { count, low_bits: bits / 2, high_bits: bits - bits / 2, seed }
    }

    /// Returns the image of `index`.
    pub fn forward(&self, index: u64) -> u64 {
        self.walk(index, |x| (0..ROUNDS).fold(x, |x, round| self.round(x, round)))
    }

    /// Returns the index whose image is `index`.
    pub fn backward(&self, index: u64) -> u64 {
        self.walk(index, |x| (0..ROUNDS).rev().fold(x, |x, round| self.round(x, round)))
    }

    fn walk(&self, index: u64, step: impl Fn(u64) -> u64) -> u64 {
        debug_assert!(index < self.count);
        let mut x = index;
        loop {
            x = step(x);
            if x < self.count {
                return x;
            }
        }
    }

    /// Scrambles one half by the other, alternating between the halves. Its own inverse.
    fn round(&self, x: u64, round: u64) -> u64 {
        let (high, low) = (x >> self.low_bits, x & ((1 << self.low_bits) - 1));
        let (high, low) = if round.is_multiple_of(2) {
            (high ^ self.scramble(low, round, self.high_bits), low)
        } else {
            (high, low ^ self.scramble(high, round, self.low_bits))
        };
        high << self.low_bits | low
    }

    fn scramble(&self, half: u64, round: u64, bits: u32) -> u64 {
        mix64(self.seed ^ half ^ round << 40) & ((1 << bits) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_has_one_image_and_is_found_from_it() {
        for count in [1, 2, 3, 5, 64, 1000, 4097] {
            let permutation = Permutation::new(count, 17);
            let mut seen = vec![false; count as usize];
            for index in 0..count {
                let image = permutation.forward(index);
                assert!(!std::mem::replace(&mut seen[image as usize], true), "{count}: {index}");
                assert_eq!(permutation.backward(image), index);
            }
        }
    }

    #[test]
    fn neighbours_are_torn_apart() {
        let permutation = Permutation::new(1_000_000, 3);
        let near = |i: &u64| permutation.forward(*i).abs_diff(permutation.forward(i + 1)) < 1_000;
        assert!((0..10_000).filter(near).count() < 60, "about 20 in 10,000 by chance");
    }
}
