//! Zipfian draws by the method of Gray et al., "Quickly Generating Billion-Record Synthetic
//! Databases", SIGMOD 1994, with YCSB's constant, and YCSB's two distributions based on it.
//!
//! Rank `i` (from 0) has probability `1 / ((i + 1)^theta * zeta(n))`. The method is exact for the
//! first two ranks and a close power law beyond. Cost of a draw: one power, about 20 ns; of a new
//! generator: a thousand powers, independent of the number of items; of growing by one item: two
//! powers.

use runtime::Rng;

/// YCSB's skew.
pub(crate) const THETA: f64 = 0.99;

/// Number of ranks of scrambled draws, independent of the number of keys (YCSB).
const SCRAMBLED_ITEMS: u64 = 10_000_000_000;

/// `zeta(SCRAMBLED_ITEMS)` as in YCSB.
const SCRAMBLED_ZETA: f64 = 26.469_028_201_783_02;

/// Terms of zeta that are summed one by one; the rest is integrated, to 14 digits.
const SUMMED_TERMS: u64 = 1000;

/// Growth up to this adds the new terms one by one.
const GROWN_TERMS: u64 = 16;

/// `0.5^THETA`, the weight of rank 1.
const HALF_TO_THETA: f64 = 0.503_477_775_028_359_4;

/// The exponent of the power law, and derived values that draws need.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Skew {
    theta: f64,
    /// `0.5^theta`, the weight of rank 1.
    second: f64,
    /// `1 / (1 - theta)`.
    exponent: f64,
}

impl Skew {
    /// Requires: `theta` is not 1.
    fn new(theta: f64) -> Self {
        let second = if is_ycsbs(theta) { HALF_TO_THETA } else { 0.5_f64.powf(theta) };
        Self { theta, second, exponent: 1.0 / (1.0 - theta) }
    }

    /// Returns the weight of rank `i`, from 1.
    fn term(self, i: u64) -> f64 {
        (i as f64).powf(-self.theta)
    }

    /// Returns the sum of `1 / i^theta` over `i` in `1..=n`, by Euler-Maclaurin beyond the first
    /// terms.
    fn zeta(self, n: u64) -> f64 {
        let summed = n.min(SUMMED_TERMS);
        let head: f64 = (1..=summed).map(|i| self.term(i)).sum();
        if summed == n {
            return head;
        }
        let (from, to) = (summed as f64, n as f64);
        let rest = 1.0 - self.theta;
        let integral = (to.powf(rest) - from.powf(rest)) / rest;
        let ends = (self.term(n) - self.term(summed)) / 2.0;
        let slopes = self.theta / 12.0 * (self.term(summed) / from - self.term(n) / to);
        head + integral + ends + slopes
    }

    fn eta(self, items: u64, zeta: f64) -> f64 {
        let two_of_n = (2.0 / items as f64).powf(1.0 - self.theta);
        (1.0 - two_of_n) / (1.0 - (1.0 + self.second) / zeta)
    }
}

/// Returns whether `theta` is YCSB's.
pub(crate) fn is_ycsbs(theta: f64) -> bool {
    (theta - THETA).abs() < f64::EPSILON
}

/// Draws ranks; rank 0 is the most popular.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Zipfian {
    items: u64,
    skew: Skew,
    zeta: f64,
    eta: f64,
}

impl Zipfian {
    /// Creates ranks `0..items`, with YCSB's skew.
    pub(crate) fn new(items: u64) -> Self {
        Self::with_theta(items, THETA)
    }

    fn with_theta(items: u64, theta: f64) -> Self {
        let skew = Skew::new(theta);
        Self::with_zeta(items, skew, skew.zeta(items))
    }

    fn with_zeta(items: u64, skew: Skew, zeta: f64) -> Self {
        assert!(items > 0, "there is nothing to draw from");
        Self { items, skew, zeta, eta: skew.eta(items, zeta) }
    }

    /// Extends the ranks to `0..items`; never reduces them.
    ///
    /// YCSB keeps the first item count in `eta`; here `eta` follows the growth, as in Gray's paper.
    fn grow_to(&mut self, items: u64) {
        if items > self.items {
            self.grow(items);
        }
    }

    /// Not inlined: otherwise the compiler hoists these powers out of the loop around a draw, and
    /// computes them for every draw of every distribution.
    #[inline(never)]
    fn grow(&mut self, items: u64) {
        let skew = self.skew;
        self.zeta = if items - self.items <= GROWN_TERMS {
            self.zeta + (self.items + 1..=items).map(|i| skew.term(i)).sum::<f64>()
        } else {
            skew.zeta(items)
        };
        self.items = items;
        self.eta = skew.eta(items, self.zeta);
    }

    /// Draws a rank.
    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        let u = rng.unit_f64();
        let uz = u * self.zeta;
        if uz < 1.0 {
            return 0;
        }
        if uz < 1.0 + self.skew.second {
            return 1;
        }
        let share = (self.eta * u - self.eta + 1.0).powf(self.skew.exponent);
        ((self.items as f64 * share) as u64).min(self.items - 1)
    }
}

/// Zipfian popularity, scattered over the keys by a hash: popular keys are not neighbours.
pub(crate) struct ScrambledZipfian {
    ranks: Zipfian,
    first: u64,
    items: u64,
}

impl ScrambledZipfian {
    /// Requires: `theta` is not 1.
    pub(crate) fn new(first: u64, items: u64, theta: f64) -> Self {
        assert!(items > 0, "there is nothing to draw from");
        let skew = Skew::new(theta);
        let zeta = if is_ycsbs(theta) { SCRAMBLED_ZETA } else { skew.zeta(SCRAMBLED_ITEMS) };
        Self { ranks: Zipfian::with_zeta(SCRAMBLED_ITEMS, skew, zeta), first, items }
    }

    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        self.first + fnv64(self.ranks.draw(rng)) % self.items
    }
}

/// The newest key is the most popular, and popularity falls with age (YCSB's "latest").
///
/// YCSB omits key number 0 by an oversight; here it is the least popular key.
pub(crate) struct Latest {
    ages: Zipfian,
}

impl Latest {
    /// Requires: `theta` is not 1.
    pub(crate) fn new(theta: f64) -> Self {
        Self { ages: Zipfian::with_theta(1, theta) }
    }

    pub(crate) fn draw(&mut self, rng: &mut Rng, newest: u64) -> u64 {
        self.ages.grow_to(newest + 1);
        // An age beyond the oldest key is possible only if `newest` has decreased; the caller would
        // then redraw. An insert counter never decreases.
        newest.wrapping_sub(self.ages.draw(rng))
    }
}

/// YCSB's FNV-64 of the eight bytes of `n`, lowest first, made positive like Java's `Math.abs`.
fn fnv64(n: u64) -> u64 {
    let hash = n.to_le_bytes().into_iter().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211)
    });
    hash.cast_signed().unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zeta_by_sum(theta: f64, n: u64) -> f64 {
        (1..=n).rev().map(|i| (i as f64).powf(-theta)).sum()
    }

    #[test]
    fn constants_are_what_they_say() {
        assert!((HALF_TO_THETA - 0.5_f64.powf(THETA)).abs() < 1e-15);
        for theta in [THETA, 0.5, 1.2, 3.0] {
            for n in [1, 2, 999, 1000, 1001, 5000, 1_000_000] {
                let (fast, sum) = (Skew::new(theta).zeta(n), zeta_by_sum(theta, n));
                assert!((fast - sum).abs() < 1e-9, "zeta({n}), {theta}: {fast} and {sum}");
            }
        }
        // YCSB's own figure was summed term by term and includes its rounding errors.
        assert!((Skew::new(THETA).zeta(SCRAMBLED_ITEMS) - SCRAMBLED_ZETA).abs() < 1e-6);
    }

    #[test]
    fn growing_is_the_same_as_starting_larger() {
        let mut grown = Zipfian::new(10);
        for items in [11, 12, 30, 31, 2000, 2001] {
            grown.grow_to(items);
            let fresh = Zipfian::new(items);
            assert!((grown.zeta - fresh.zeta).abs() < 1e-12);
            assert!((grown.eta - fresh.eta).abs() < 1e-12);
        }
        grown.grow_to(5);
        assert_eq!(grown.items, 2001);
    }

    #[test]
    fn one_and_two_items_work() {
        let mut rng = Rng::new(3);
        assert!((0..1000).all(|_| Zipfian::new(1).draw(&mut rng) == 0));
        assert!((0..1000).all(|_| Zipfian::new(2).draw(&mut rng) < 2));
    }

    /// Checks the law of `theta` within `slack` for the first ranks; the first two are exact.
    fn check_law(theta: f64, slack: f64) {
        const ITEMS: u64 = 10_000;
        const DRAWS: u32 = 1_000_000;
        let zipfian = Zipfian::with_theta(ITEMS, theta);
        let mut rng = Rng::new(11);
        let mut counts = vec![0_u32; ITEMS as usize];
        (0..DRAWS).for_each(|_| counts[zipfian.draw(&mut rng) as usize] += 1);
        let share =
            |ranks: u64| f64::from(counts[..ranks as usize].iter().sum::<u32>()) / f64::from(DRAWS);
        for (ranks, slack) in [(1, 0.002), (2, 0.002), (10, slack), (100, slack), (1000, slack)] {
            let theory = zeta_by_sum(theta, ranks) / zeta_by_sum(theta, ITEMS);
            let seen = share(ranks);
            assert!((seen - theory).abs() < slack, "{theta}, {ranks}: {seen}, theory {theory}");
        }
    }

    #[test]
    fn head_and_tail_have_the_mass_of_theory() {
        check_law(THETA, 0.02);
    }

    #[test]
    fn another_skew_has_its_own_law() {
        for theta in [0.5, 0.8, 1.2, 2.0] {
            check_law(theta, 0.025);
        }
    }

    #[test]
    fn scrambling_keeps_the_popularity_and_spreads_it() {
        const ITEMS: u64 = 1_000_000;
        const DRAWS: u32 = 400_000;
        let zipfian = ScrambledZipfian::new(500, ITEMS, THETA);
        let mut rng = Rng::new(2);
        let mut hottest = 0;
        let mut lower_half = 0;
        for _ in 0..DRAWS {
            let key = zipfian.draw(&mut rng);
            assert!((500..500 + ITEMS).contains(&key));
            hottest += u32::from(key == 500 + fnv64(0) % ITEMS);
            lower_half += u32::from(key < 500 + ITEMS / 2);
        }
        let share = f64::from(hottest) / f64::from(DRAWS);
        assert!((share - 1.0 / SCRAMBLED_ZETA).abs() < 0.002, "{share}");
        assert!((0.3..0.7).contains(&(f64::from(lower_half) / f64::from(DRAWS))));
    }

    #[test]
    fn latest_follows_the_newest() {
        check_latest(THETA);
    }

    #[test]
    fn latest_of_another_skew_has_its_own_law() {
        check_latest(0.5);
        check_latest(1.2);
    }

    fn check_latest(theta: f64) {
        let mut latest = Latest::new(theta);
        let mut rng = Rng::new(4);
        for newest in [999, 1000, 1001] {
            let draws: Vec<u64> = (0..50_000).map(|_| latest.draw(&mut rng, newest)).collect();
            assert!(draws.iter().all(|key| *key <= newest));
            let share = draws.iter().filter(|key| **key == newest).count() as f64 / 50_000.0;
            let theory = 1.0 / zeta_by_sum(theta, newest + 1);
            assert!((share - theory).abs() < 0.008, "{theta}: {share}, theory {theory}");
        }
    }

    #[test]
    fn fnv_is_ycsbs() {
        // Java: Utils.fnvhash64(0), (1) and (1000).
        assert_eq!(fnv64(0), 6_284_781_860_667_377_211);
        assert_eq!(fnv64(1), 8_517_097_267_634_966_620);
    }
}
