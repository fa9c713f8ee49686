//! Bloom filters, one per meta segment: they show which segments a Get need not read.
//!
//! Standard filters, not blocked ones: a segment's filter spans a few cache lines at most, so
//! keeping a key's bits in one line would save little, and the false positive rates that Monkey
//! assigns to upper levels (one in millions) are not possible with blocks.
//!
//! All bits of a key are derived from one 64-bit hash by double hashing with a quadratic term.
//! Without that term, two keys whose sequences begin equally continue equally, which happens too
//! often in filters of a few thousand bits: the measured false positive rate is 1.25 times the
//! theoretical rate at 16.5 bits a key and 2.7 times at 22; with the term it is 1.02 and 1.05
//! times.
//!
//! A filter contains every key of its segment: it has false positives but no false negatives. It
//! lives as long as its segment's entry in a level list, is shared by versions, and is dumped with
//! the lists at a power cut.

use std::f64::consts::LN_2;
use std::rc::Rc;

use runtime::mix64;

/// More hashes give no measurable gain.
const MOST_HASHES: u8 = 30;

/// The filter of a segment's keys. Clones share the bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    /// The number of hashes, then the bits: one allocation, so that a probe has fewer cache misses.
    bytes: Rc<[u8]>,
}

/// Returns a hash of the whole key, from which all filters derive their bits.
pub(crate) fn key_hash(key: &[u8]) -> u64 {
    let mut words = key.chunks_exact(8);
    let mut hash = key.len() as u64;
    for word in words.by_ref() {
        hash = mix64(hash ^ u64::from_le_bytes(word.try_into().expect("eight bytes")));
    }
    let mut rest = [0; 8];
    rest[..words.remainder().len()].copy_from_slice(words.remainder());
    mix64(hash ^ u64::from_le_bytes(rest))
}

/// Returns the positions of a key's bits among `bits` bits.
fn places(hash: u64, hashes: u8, bits: usize) -> impl Iterator<Item = usize> {
    let step = mix64(hash) | 1;
    let bend = mix64(step);
    let points = (0..u64::from(hashes)).map(move |n| {
        hash.wrapping_add(n.wrapping_mul(step)).wrapping_add((n * n).wrapping_mul(bend))
    });
    // Takes the upper half of the product: maps to a range of any size without a division.
    points.map(move |point| ((u128::from(point) * bits as u128) >> 64) as usize)
}

impl Filter {
    /// Builds a filter of `bytes` bytes in all for keys with these hashes; `None` if the size is
    /// too small to be useful.
    pub(crate) fn of_bytes(hashes_of_keys: &[u64], bytes: usize) -> Option<Self> {
        let bits = bytes.checked_sub(1)? * 8;
        let best = (bits as f64 / hashes_of_keys.len().max(1) as f64 * LN_2).round();
        if best < 1.0 {
            return None;
        }
        let hashes = best.min(f64::from(MOST_HASHES)) as u8;
        let mut filter = vec![0; bytes];
        filter[0] = hashes;
        for hash in hashes_of_keys {
            for place in places(*hash, hashes, bits) {
                filter[1 + place / 8] |= 1 << (place % 8);
            }
        }
        Some(Self { bytes: filter.into() })
    }

    /// Whether the segment may have a key with that hash. Never false for a key of the segment.
    pub(crate) fn may_have(&self, hash: u64) -> bool {
        let (hashes, bits) = (self.bytes[0], &self.bytes[1..]);
        let mut places = places(hash, hashes, bits.len() * 8);
        places.all(|place| bits[place / 8] & (1 << (place % 8)) != 0)
    }

    /// Returns the filter's encoding, in memory and in a dump.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Decodes the result of [`Self::bytes`]; `None` if there was no filter.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        (bytes.len() > 1).then(|| Self { bytes: bytes.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sizing::monkey;
    use proptest::prelude::*;
    use runtime::Rng;

    fn hashes(rng: &mut Rng, count: usize) -> Vec<u64> {
        let key = |rng: &mut Rng| format!("user{:020}", rng.next_u64());
        (0..count).map(|_| key_hash(key(rng).as_bytes())).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 128,
            failure_persistence: None,
            ..Default::default()
        })]

        #[test]
        fn a_filter_never_denies_a_key_it_was_given(
            keys in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..60), 1..200),
            bytes in 0..600_usize,
        ) {
            let hashes: Vec<u64> = keys.iter().map(|key| key_hash(key)).collect();
            if let Some(filter) = Filter::of_bytes(&hashes, bytes) {
                prop_assert_eq!(filter.bytes().len(), bytes);
                prop_assert!(hashes.iter().all(|hash| filter.may_have(*hash)));
                prop_assert_eq!(Filter::from_bytes(filter.bytes()), Some(filter));
            } else {
                prop_assert!(bytes * 8 <= keys.len() + 8);
            }
        }
    }

    /// Returns the false positive rate of filters of `bits_per_key`: `filters` filters of 215 keys
    /// each (a segment of the paper's drive), each probed with `probes` foreign keys.
    fn measured(bits_per_key: f64, filters: usize, probes: usize) -> f64 {
        let mut rng = Rng::derive(bits_per_key.to_bits(), "filter");
        let mut passed = 0;
        for _ in 0..filters {
            let keys = hashes(&mut rng, 215);
            let filter = Filter::of_bytes(&keys, (bits_per_key * 215.0 / 8.0) as usize);
            let filter = filter.expect("there is memory for it");
            passed += (0..probes).filter(|_| filter.may_have(rng.next_u64())).count();
        }
        passed as f64 / (filters * probes) as f64
    }

    #[test]
    fn rates_are_those_of_theory() {
        // Rounding to whole hashes and bytes and the sample size cause deviations of some per cent.
        for (bits, filters, within) in [(4.0, 100, 0.06), (10.2, 400, 0.08), (16.5, 2_000, 0.1)] {
            let (rate, theory) =
                (measured(bits, filters, 2_000), monkey::false_positive_rate(bits));
            let ratio = rate / theory;
            assert!((ratio - 1.0).abs() < within, "{bits} bits: {rate} for {theory} ({ratio})");
        }
    }

    #[test]
    fn keys_that_differ_in_little_have_hashes_that_differ_in_much() {
        let zeros = [0_u8; 40];
        let mut all: Vec<u64> = (1..=40).map(|len| key_hash(&zeros[..len])).collect();
        for at in 0..40 * 8 {
            let mut key = zeros;
            key[at / 8] ^= 1 << (at % 8);
            let differing = (key_hash(&key) ^ key_hash(&zeros)).count_ones();
            assert!((12..=52).contains(&differing), "bit {at} changes {differing} bits");
            all.push(key_hash(&key));
        }
        all.sort_unstable();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
