//! Seeded randomness: small, fast, and the same on every machine and in every version.
//!
//! A library's generator may change its stream between versions. This one must not, because a seed
//! in a bug report has to replay years later. The generator is xoshiro256++ seeded by `SplitMix64`,
//! both public-domain designs by Blackman and Vigna.

use crate::Carrier;

/// Scrambles 64 bits with the `SplitMix64` finaliser. Pure, bijective and cheap.
pub const fn mix64(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A stream of pseudo-random numbers. Not for secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// Creates the stream for `seed`.
    pub fn new(seed: u64) -> Self {
        let mut state = [0; 4];
        let mut x = seed;
        for word in &mut state {
            *word = mix64(x);
            x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
        }
        Self { state }
    }

    /// Creates a separate stream for the part of the program named `label`, so that drawing more
    /// numbers in one part does not change those of another.
    pub fn derive(seed: u64, label: &str) -> Self {
        let hash = label.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01B3)
        });
        Self::new(mix64(seed) ^ hash)
    }

    /// Carries the position in the stream.
    pub fn carry(&mut self, by: &mut Carrier<'_>) -> Option<()> {
        self.state.iter_mut().try_for_each(|word| by.u64(word))
    }

    /// Returns the next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Returns a number in `0..bound`, with a bias of at most 2^-64 (multiply-shift).
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "an empty range has no random member");
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns a number in `0.0..1.0` with 53 random bits.
    pub fn unit_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns true with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        p > 0.0 && self.unit_f64() < p
    }
}
