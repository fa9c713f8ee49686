//! The hash of a key: the start of its search, and its signature.
//!
//! The key is hashed eight bytes at a time, chained with `runtime::mix64` (the finaliser of
//! `SplitMix64`: each bit of its input changes each bit of its output with probability one half).
//! The lowest 8 bits of the result determine the signature and the other 56 bits the place, so that
//! the two are independent. The published 32 bits would favour some slots of a table of a thousand
//! million slots. The published code folds SHA-256, which costs more and has no advantage here:
//! with either hash an attacker can slow the drive down with keys that collide.

use runtime::mix64;

/// The properties of a key that the table uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct KeyHash {
    /// The start of the search. 56 bits.
    pub place: u64,
    /// 1 to 255.
    pub signature: u8,
}

impl KeyHash {
    pub(crate) fn of(key: &[u8]) -> Self {
        let mut hash = mix64(key.len() as u64);
        for chunk in key.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            hash = mix64(hash ^ u64::from_le_bytes(word));
        }
        // There are 255 signatures; 0 marks slots without a key.
        let signature = 1 + (((hash & 0xFF) * 255) >> 8) as u8;
        Self { place: hash >> 8, signature }
    }
}

#[cfg(test)]
mod tests {
    use super::KeyHash;

    #[test]
    fn keys_spread_evenly_over_places_and_signatures() {
        let (mut places, mut signatures) = ([0_u32; 64], [0_u32; 256]);
        let keys = 64 * 1024;
        for i in 0..keys {
            let hash = KeyHash::of(format!("user{i:012}").as_bytes());
            places[(hash.place % 64) as usize] += 1;
            signatures[hash.signature as usize] += 1;
        }
        // Within five standard deviations. Signature 1 is the result for two of 256 numbers.
        assert!(places.iter().all(|count| count.abs_diff(1024) < 160), "{places:?}");
        assert_eq!(signatures[0], 0);
        assert!(signatures[2..].iter().all(|count| count.abs_diff(256) < 80), "{signatures:?}");
        assert!(signatures[1].abs_diff(512) < 115, "{signatures:?}");
    }

    #[test]
    fn keys_that_differ_only_in_trailing_zeros_differ() {
        let hashes: Vec<KeyHash> = (1..=255).map(|len| KeyHash::of(&vec![0; len])).collect();
        for (i, hash) in hashes.iter().enumerate() {
            assert!(!hashes[..i].contains(hash));
        }
    }
}
