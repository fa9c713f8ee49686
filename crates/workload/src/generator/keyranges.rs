//! Keys as in `db_bench`'s mixgraph: some ranges of keys are hot, and so are some keys within each
//! range.
//!
//! Cost of a draw: a search among the ranges, two random numbers and a power; of a new chooser: two
//! exponentials per range.

use runtime::{Rng, mix64};
use serde::Serialize;

/// The hotness of key ranges, and of the keys within them (Cao et al., FAST 2020, section 7.2).
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct KeyRanges {
    /// `keyrange_num`: the number of ranges, all with the same number of keys.
    pub count: u64,
    /// `keyrange_dist_a` to `keyrange_dist_d`: the hotness of the ranges.
    pub hotness: TwoTermExponential,
    /// `key_dist_a`, `key_dist_b`: the hotness of the keys of a range.
    pub keys: PowerLaw,
}

/// `a e^(b x) + c e^(d x)`: the share of the `x`-th hottest range, from 1, relative to the others.
/// Negative results count as 0.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct TwoTermExponential {
    /// The first term at 0.
    pub a: f64,
    /// Growth of the first term; below 0 it decays.
    pub b: f64,
    /// The second term at 0.
    pub c: f64,
    /// Growth of the second term; below 0 it decays.
    pub d: f64,
}

/// `a x^b`: the part of a range's operations that goes to its `x` hottest keys; `a` and `b` are
/// above 0.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct PowerLaw {
    /// The part of the hottest key.
    pub a: f64,
    /// The exponent: the larger, the less skewed.
    pub b: f64,
}

impl KeyRanges {
    /// Returns the sum of all shares, for normalization; 0 or not finite if the parameters make no
    /// sense.
    pub(crate) fn sum(&self) -> f64 {
        self.shares().sum()
    }

    /// Returns the shares, from the hottest on if the hotness falls.
    fn shares(&self) -> impl Iterator<Item = f64> {
        let TwoTermExponential { a, b, c, d } = self.hotness;
        let share = move |x: f64| a * (b * x).exp() + c * (d * x).exp();
        // Not `max`, which turns NaN into 0.
        let some = |share: f64| if share < 0.0 { 0.0 } else { share };
        (1..=self.count).map(move |x| some(share(x as f64)))
    }
}

impl PowerLaw {
    /// Returns the rank, from 1, up to which the part `u` of the operations goes; 0 for `u` = 0.
    fn rank(&self, u: f64) -> u64 {
        (u / self.a).powf(self.b.recip()).ceil() as u64
    }
}

/// Draws key numbers.
///
/// `db_bench` derives range, key, kind of operation and length of the value from one random number,
/// so that a key always gets the same kind and length, in a way that depends on the number of keys.
/// The published fit has separate distributions: here they are drawn independently. `db_bench` also
/// rounds shares of ranges down to multiples of the smallest, which gives the hottest range 80.7 %
/// instead of the fit's 79.1 %; here the shares are those of the fit.
pub(crate) struct KeyRangeChooser {
    first: u64,
    count: u64,
    keys: PowerLaw,
    /// Cumulative shares of the ranges, in key order.
    bounds: Box<[f64]>,
}

impl KeyRangeChooser {
    /// Creates a chooser of keys `first..first + count`. Requires: at most `count` ranges, of which
    /// some have a share.
    pub(crate) fn new(first: u64, count: u64, ranges: &KeyRanges) -> Self {
        let mut bounds: Box<[f64]> = ranges.shares().collect();
        shuffle(&mut bounds, ranges);
        let mut sum = 0.0;
        for bound in &mut bounds {
            sum += *bound;
            *bound = sum;
        }
        Self { first, count, keys: ranges.keys, bounds }
    }

    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        let last = self.bounds.len() - 1;
        let at = rng.unit_f64() * self.bounds[last];
        let range = self.bounds.partition_point(|bound| *bound <= at).min(last) as u64;
        let (start, end) = (self.start(range), self.start(range + 1));
        // There are many more ranks than keys; a hash assigns ranks to keys, as in `db_bench`.
        let rank = self.keys.rank(rng.unit_f64());
        self.first + start + mix64(rank) % (end - start)
    }

    /// Returns the start of `range`, relative to the first key. Range sizes differ by at most one
    /// key.
    fn start(&self, range: u64) -> u64 {
        self.count * range / self.bounds.len() as u64
    }
}

/// Shuffles the ranges. As in `db_bench` the seed is the hotness, so that runs with other seeds use
/// the same hot ranges.
fn shuffle(shares: &mut [f64], ranges: &KeyRanges) {
    let TwoTermExponential { a, b, c, d } = ranges.hotness;
    let seed = [a, b, c, d].into_iter().fold(ranges.count, |seed, x| mix64(seed ^ x.to_bits()));
    let mut rng = Rng::new(seed);
    for last in (1..shares.len()).rev() {
        shares.swap(last, rng.below(last as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published fit of `ZippyDB`.
    const ZIPPYDB: KeyRanges = KeyRanges {
        count: 30,
        hotness: TwoTermExponential { a: 14.18, b: -2.917, c: 0.0164, d: -0.08082 },
        keys: PowerLaw { a: 0.002_312, b: 0.3467 },
    };

    /// Returns how often each of `count` keys is drawn.
    fn counts(count: u64, draws: u32, ranges: &KeyRanges) -> Vec<u32> {
        let chooser = KeyRangeChooser::new(500, count, ranges);
        let mut rng = Rng::new(8);
        let mut counts = vec![0; count as usize];
        (0..draws).for_each(|_| counts[(chooser.draw(&mut rng) - 500) as usize] += 1);
        counts
    }

    #[test]
    fn ranges_have_the_shares_of_the_fit() {
        let counts = counts(3_000_000, 1_000_000, &ZIPPYDB);
        let ranges = counts.chunks(100_000).map(|range| range.iter().sum::<u32>());
        let mut ranges: Vec<u32> = ranges.collect();
        let hottest = ranges.iter().position(|range| *range > 500_000).unwrap();
        ranges.sort_unstable_by_key(|range| std::cmp::Reverse(*range));
        let share = |first: usize| f64::from(ranges[..first].iter().sum::<u32>()) / 1e6;
        for (first, expected) in [(1, 0.791), (2, 0.847), (10, 0.930), (30, 1.0)] {
            assert!((share(first) - expected).abs() < 0.002, "{first}: {}", share(first));
        }
        assert!(ranges[29] > 1_000, "{ranges:?}");
        assert!((1..29).contains(&hottest), "ranges are shuffled: {hottest}");
    }

    #[test]
    fn keys_of_a_range_are_as_hot_as_the_power_law_says() {
        // With many keys, few ranks share a key.
        let one = KeyRanges { count: 1, ..ZIPPYDB };
        let mut counts = counts(4_000_000, 2_000_000, &one);
        counts.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
        for rank in [1_u32, 10, 100, 1_000] {
            let found = f64::from(counts[..rank as usize].iter().sum::<u32>()) / 2e6;
            let expected = 0.002_312 * f64::from(rank).powf(0.3467);
            assert!((found / expected - 1.0).abs() < 0.05, "{rank}: {found}, {expected}");
        }
        let touched = counts.iter().filter(|count| **count > 0).count();
        assert!((800_000..1_700_000).contains(&touched), "{touched}");
    }

    #[test]
    fn every_range_has_keys_and_every_key_is_in_one() {
        for (count, ranges) in [(1, 1), (30, 30), (31, 30), (100, 30), (59, 30)] {
            let chooser = KeyRangeChooser::new(0, count, &KeyRanges { count: ranges, ..ZIPPYDB });
            assert_eq!((chooser.start(0), chooser.start(ranges)), (0, count));
            assert!((0..ranges).all(|range| chooser.start(range) < chooser.start(range + 1)));
        }
    }

    #[test]
    fn ranges_without_a_share_are_left_alone() {
        let hotness = TwoTermExponential { a: 1.0, b: 0.0, c: -1.0, d: 1.0 };
        let none = KeyRanges { count: 3, hotness, ..ZIPPYDB };
        assert!(none.sum().abs() < 1e-12);
        let falling = TwoTermExponential { a: 20.0, b: 0.0, c: -1.0, d: 1.0 };
        let counts = counts(4_000, 50_000, &KeyRanges { count: 4, hotness: falling, ..ZIPPYDB });
        let mut ranges: Vec<u32> = counts.chunks(1_000).map(|range| range.iter().sum()).collect();
        ranges.sort_unstable();
        assert_eq!(ranges[..2], [0, 0], "{ranges:?}");
        assert!(ranges[2] > 0);
    }

    #[test]
    fn the_hotness_alone_decides_where_ranges_lie() {
        let bounds = |ranges: &KeyRanges| KeyRangeChooser::new(0, 1_000, ranges).bounds;
        assert_eq!(bounds(&ZIPPYDB), bounds(&ZIPPYDB));
        let other = KeyRanges { keys: PowerLaw { a: 0.1, b: 0.9 }, ..ZIPPYDB };
        assert_eq!(bounds(&ZIPPYDB), bounds(&other));
    }

    #[test]
    fn extreme_power_laws_stay_within_their_range() {
        for keys in [PowerLaw { a: 1e-9, b: 1e-3 }, PowerLaw { a: 1e9, b: 100.0 }] {
            let counts = counts(300, 3_000, &KeyRanges { keys, ..ZIPPYDB });
            assert_eq!(counts.iter().sum::<u32>(), 3_000);
        }
    }
}
