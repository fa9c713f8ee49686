//! A permutation that is computed, not stored: pseudo-random, and its own inverse is as cheap.
//!
//! A Feistel network over the next power of four, walked until the result is within bounds.

use runtime::mix64;

const ROUNDS: u64 = 4;

/// A seeded permutation of `0..count`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permutation {
    count: u32,
    half_bits: u32,
    seed: u64,
}

impl Permutation {
    pub(crate) fn new(count: u32, seed: u64) -> Self {
        let bits = u32::BITS - count.saturating_sub(1).leading_zeros();
        Self { count, half_bits: bits.div_ceil(2).max(1), seed }
    }

    /// Where `index` goes.
    pub(crate) fn forward(&self, index: u32) -> u32 {
        self.walk(index, |x| (0..ROUNDS).fold(x, |x, round| self.round(x, round)))
    }

    /// Where the image `index` comes from.
    pub(crate) fn backward(&self, index: u32) -> u32 {
        self.walk(index, |x| (0..ROUNDS).rev().fold(x, |x, round| self.unround(x, round)))
    }

    fn walk(&self, index: u32, step: impl Fn(u64) -> u64) -> u32 {
        debug_assert!(index < self.count);
        let mut x = u64::from(index);
        loop {
            x = step(x);
            if x < u64::from(self.count) {
                return x as u32;
            }
        }
    }

    fn mask(&self) -> u64 {
        (1 << self.half_bits) - 1
    }

    fn scramble(&self, half: u64, round: u64) -> u64 {
        mix64(self.seed ^ half ^ round << 40) & self.mask()
    }

    fn round(&self, x: u64, round: u64) -> u64 {
        let (left, right) = (x >> self.half_bits, x & self.mask());
        right << self.half_bits | (left ^ self.scramble(right, round))
    }

    fn unround(&self, x: u64, round: u64) -> u64 {
        let (right, mixed) = (x >> self.half_bits, x & self.mask());
        (mixed ^ self.scramble(right, round)) << self.half_bits | right
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
        let near = |i: &u32| permutation.forward(*i).abs_diff(permutation.forward(i + 1)) < 1_000;
        assert!((0..10_000).filter(near).count() < 60, "about 20 in 10,000 by chance");
    }
}
