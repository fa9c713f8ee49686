//! The division of filter memory among levels: Monkey (Dayan, Athanassoulis and Idreos, SIGMOD
//! 2017).
//!
//! A Get whose key is in a lower level reads an upper level's segment without finding the key as
//! often as the filter has a false positive. Spending the same bits on every key is wasteful: a bit
//! per key of the largest level costs twenty times as much memory as one level up, and saves no
//! more reads. For a given memory, the sum of all false positive rates is smallest if each rate is
//! proportional to the level's size, so rates grow by the size factor from level to level.

use std::f64::consts::LN_2;

/// The maximum size of a filter: its false positive rate would be one in a billion.
pub const MOST_BITS_PER_KEY: f64 = 43.0;

/// Returns the false positive rate of a filter with that many bits per key and the best number of
/// hashes.
pub fn false_positive_rate(bits_per_key: f64) -> f64 {
    (-bits_per_key * LN_2 * LN_2).exp()
}

/// Returns the bits per key of each level's filters, for levels with these numbers of keys and
/// `memory_bytes` for all filters together. 0 means no filter: with little memory the largest
/// levels have none.
///
/// With rates `c * keys`, the memory is `sum(keys * -ln(c * keys)) / ln(2)^2`, which determines
/// `c`; levels whose rate would be 1 or more are removed, largest first.
pub fn bits_per_key(keys: &[u64], memory_bytes: u64) -> Vec<f64> {
    let size = |level: usize| keys[level].max(1) as f64;
    let mut filtered: Vec<usize> = (0..keys.len()).collect();
    filtered.sort_by_key(|level| keys[*level]);
    let bits = memory_bytes as f64 * 8.0;
    let mut result = vec![0.0; keys.len()];
    while let Some(largest) = filtered.last() {
        let all: f64 = filtered.iter().map(|level| size(*level)).sum();
        let weighted: f64 = filtered.iter().map(|level| size(*level) * size(*level).ln()).sum();
        let ln_c = -(bits * LN_2 * LN_2 + weighted) / all;
        if ln_c + size(*largest).ln() < 0.0 {
            for level in filtered {
                let ln_rate = ln_c + size(level).ln();
                result[level] = (-ln_rate / (LN_2 * LN_2)).min(MOST_BITS_PER_KEY);
            }
            break;
        }
        filtered.pop();
    }
    result
}

/// Returns the bytes of filters of `bits` per key for levels with these numbers of keys.
pub fn memory_bytes(keys: &[u64], bits: &[f64]) -> u64 {
    let all: f64 = keys.iter().zip(bits).map(|(keys, bits)| *keys as f64 * bits).sum();
    (all / 8.0).floor() as u64
}

/// Returns the expected number of segments read without finding the key by a Get of an absent key.
pub fn expected_vain_reads(bits: &[f64]) -> f64 {
    bits.iter().map(|bits| false_positive_rate(*bits)).sum()
}

/// Like [`expected_vain_reads`], for a key that is in one of the levels: a Get probes the filters
/// of the levels above. `keys` are the numbers of keys of each level.
pub fn vain_reads_of_present_keys(keys: &[u64], bits: &[f64]) -> f64 {
    let all = keys.iter().sum::<u64>().max(1) as f64;
    let mut above = 0.0;
    keys.iter().zip(bits).fold(0.0, |sum, (keys, bits)| {
        let of_level = *keys as f64 / all * above;
        above += false_positive_rate(*bits);
        sum + of_level
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the keys of four levels that grow by `factor` and have `keys` keys in all.
    fn levels(keys: f64, factor: f64) -> Vec<u64> {
        let first = keys * (factor - 1.0) / (factor.powi(4) - 1.0);
        (0..4).map(|n| (first * factor.powi(n)).round() as u64).collect()
    }

    #[test]
    fn the_paper_s_baseline() {
        // The paper: 44 M keys in four levels with factor 21, 55 MiB of filters.
        let keys = levels(44e6, 21.0);
        let memory = 55 << 20;
        let bits = bits_per_key(&keys, memory);
        let all: u64 = keys.iter().sum();
        let overall = memory as f64 * 8.0 / all as f64;
        assert!((overall - 10.5).abs() < 0.02, "{overall} bits a key");
        assert!((memory_bytes(&keys, &bits) as f64 / memory as f64 - 1.0).abs() < 1e-3);
        let vain = expected_vain_reads(&bits);
        assert!((vain - 0.0079).abs() < 0.0001, "{vain} reads in vain");
        for pair in bits.windows(2) {
            let growth = false_positive_rate(pair[1]) / false_positive_rate(pair[0]);
            assert!((growth - 21.0).abs() < 0.05, "rates grow by {growth}");
        }
    }

    #[test]
    fn with_little_memory_the_largest_level_goes_without() {
        let keys = levels(44e6, 21.0);
        let bits = bits_per_key(&keys, 100 << 10);
        assert!(bits[3] <= 0.0 && bits[0] > bits[1], "{bits:?}");
        assert!(memory_bytes(&keys, &bits) <= 100 << 10);
        assert_eq!(bits_per_key(&keys, 0), [0.0; 4]);
    }

    #[test]
    fn with_much_memory_filters_stop_growing_and_empty_levels_do_no_harm() {
        assert_eq!(bits_per_key(&[0, 10, 100], 1 << 30), [MOST_BITS_PER_KEY; 3]);
        assert!(bits_per_key(&[], 100).is_empty());
    }

    #[test]
    fn no_other_split_of_the_memory_does_better() {
        let keys = levels(1e6, 10.0);
        let memory = 1_000_000;
        let best = expected_vain_reads(&bits_per_key(&keys, memory));
        let even = [memory as f64 * 8.0 / keys.iter().sum::<u64>() as f64; 4];
        assert!(best < expected_vain_reads(&even));
        // Moving a little memory from one level to another never helps.
        let bits = bits_per_key(&keys, memory);
        for from in 0..4 {
            for to in (0..4).filter(|to| *to != from) {
                let mut moved = bits.clone();
                moved[from] -= 1_000.0 / keys[from] as f64;
                moved[to] += 1_000.0 / keys[to] as f64;
                assert!(expected_vain_reads(&moved) >= best, "from {from} to {to}");
            }
        }
    }
}
