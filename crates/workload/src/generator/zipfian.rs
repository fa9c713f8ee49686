//! Zipfian draws by the method of Gray et al., "Quickly Generating Billion-Record Synthetic
//! Databases", SIGMOD 1994, with YCSB's constant, and the two distributions YCSB builds on it.
//!
//! Rank `i` (from 0) has probability `1 / ((i + 1)^theta * zeta(n))`. The method is exact for the
//! first two ranks and a close power law beyond. Cost of a draw: one power, about 20 ns; of a new
//! generator: a thousand powers, however many items there are; of growing by one item: two.

use runtime::Rng;

use super::fnv64;

/// YCSB's skew.
pub(crate) const THETA: f64 = 0.99;

/// Scrambled draws come from so many ranks, whatever the number of keys (YCSB).
const SCRAMBLED_ITEMS: u64 = 10_000_000_000;

/// `zeta(SCRAMBLED_ITEMS)` as YCSB has it.
const SCRAMBLED_ZETA: f64 = 26.469_028_201_783_02;

/// So many terms of zeta are summed one by one; the rest is integrated, to 14 digits.
const SUMMED_TERMS: u64 = 1000;

/// Growing by no more than this adds the new terms one by one.
const GROWN_TERMS: u64 = 16;

/// Draws ranks, rank 0 being the most popular.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Zipfian {
    items: u64,
    zeta: f64,
    eta: f64,
}

impl Zipfian {
    /// Ranks `0..items`.
    pub(crate) fn new(items: u64) -> Self {
        Self::with_zeta(items, zeta(items))
    }

    fn with_zeta(items: u64, zeta: f64) -> Self {
        assert!(items > 0, "there is nothing to draw from");
        Self { items, zeta, eta: eta(items, zeta) }
    }

    /// Widens the ranks to `0..items`; never narrows them.
    ///
    /// YCSB keeps the first item count inside `eta`; here `eta` follows the growth, as in Gray's
    /// paper.
    fn grow_to(&mut self, items: u64) {
        if items > self.items {
            self.grow(items);
        }
    }

    /// Not inlined: a compiler that sees these powers computes them ahead of the loop around a draw,
    /// for every draw of every distribution, wanted or not.
    #[inline(never)]
    fn grow(&mut self, items: u64) {
        self.zeta = if items - self.items <= GROWN_TERMS {
            self.zeta + (self.items + 1..=items).map(term).sum::<f64>()
        } else {
            zeta(items)
        };
        self.items = items;
        self.eta = eta(items, self.zeta);
    }

    /// The next rank.
    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        let u = rng.unit_f64();
        let uz = u * self.zeta;
        if uz < 1.0 {
            return 0;
        }
        if uz < 1.0 + HALF_TO_THETA {
            return 1;
        }
        let share = (self.eta * u - self.eta + 1.0).powf(1.0 / (1.0 - THETA));
        ((self.items as f64 * share) as u64).min(self.items - 1)
    }
}

/// `0.5^THETA`, the weight of rank 1.
const HALF_TO_THETA: f64 = 0.503_477_775_028_359_4;

fn term(i: u64) -> f64 {
    (i as f64).powf(-THETA)
}

/// The sum of `1 / i^THETA` over `i` in `1..=n`, by Euler-Maclaurin beyond the first terms.
fn zeta(n: u64) -> f64 {
    let summed = n.min(SUMMED_TERMS);
    let head: f64 = (1..=summed).map(term).sum();
    if summed == n {
        return head;
    }
    let (from, to) = (summed as f64, n as f64);
    let integral = (to.powf(1.0 - THETA) - from.powf(1.0 - THETA)) / (1.0 - THETA);
    let ends = (term(n) - term(summed)) / 2.0;
    let slopes = THETA / 12.0 * (term(summed) / from - term(n) / to);
    head + integral + ends + slopes
}

fn eta(items: u64, zeta: f64) -> f64 {
    let two_of_n = (2.0 / items as f64).powf(1.0 - THETA);
    (1.0 - two_of_n) / (1.0 - (1.0 + HALF_TO_THETA) / zeta)
}

/// Zipfian popularity, spread over the keys by a hash: popular keys are no neighbours.
pub(crate) struct ScrambledZipfian {
    ranks: Zipfian,
    first: u64,
    items: u64,
}

impl ScrambledZipfian {
    pub(crate) fn new(first: u64, items: u64) -> Self {
        assert!(items > 0, "there is nothing to draw from");
        Self { ranks: Zipfian::with_zeta(SCRAMBLED_ITEMS, SCRAMBLED_ZETA), first, items }
    }

    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        self.first + fnv64(self.ranks.draw(rng)) % self.items
    }
}

/// The newest key is the most popular one, and popularity falls with age (YCSB's "latest").
///
/// YCSB leaves key number 0 out by an oversight; here it is the least popular key.
pub(crate) struct Latest {
    ages: Zipfian,
}

impl Default for Latest {
    fn default() -> Self {
        Self { ages: Zipfian::new(1) }
    }
}

impl Latest {
    pub(crate) fn draw(&mut self, rng: &mut Rng, newest: u64) -> u64 {
        self.ages.grow_to(newest + 1);
        // An age beyond the oldest key is possible only if `newest` has gone back, which the
        // caller's redraw would answer; it does not happen with an insert counter.
        newest.wrapping_sub(self.ages.draw(rng))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zeta_by_sum(n: u64) -> f64 {
        (1..=n).rev().map(term).sum()
    }

    #[test]
    fn constants_are_what_they_say() {
        assert!((HALF_TO_THETA - 0.5_f64.powf(THETA)).abs() < 1e-15);
        for n in [1, 2, 999, 1000, 1001, 5000, 1_000_000] {
            let (fast, sum) = (zeta(n), zeta_by_sum(n));
            assert!((fast - sum).abs() < 1e-9, "zeta({n}): {fast} and {sum}");
        }
        // YCSB's own figure was summed one by one and carries that rounding.
        assert!((zeta(SCRAMBLED_ITEMS) - SCRAMBLED_ZETA).abs() < 1e-6);
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

    #[test]
    fn head_and_tail_have_the_mass_of_theory() {
        const ITEMS: u64 = 10_000;
        const DRAWS: u32 = 1_000_000;
        let zipfian = Zipfian::new(ITEMS);
        let mut rng = Rng::new(11);
        let mut counts = vec![0_u32; ITEMS as usize];
        (0..DRAWS).for_each(|_| counts[zipfian.draw(&mut rng) as usize] += 1);
        let share =
            |ranks: u64| f64::from(counts[..ranks as usize].iter().sum::<u32>()) / f64::from(DRAWS);
        for (ranks, slack) in [(1, 0.002), (2, 0.002), (10, 0.02), (100, 0.02), (1000, 0.02)] {
            let theory = zeta_by_sum(ranks) / zeta_by_sum(ITEMS);
            let seen = share(ranks);
            assert!((seen - theory).abs() < slack, "first {ranks}: {seen}, theory {theory}");
        }
    }

    #[test]
    fn scrambling_keeps_the_popularity_and_spreads_it() {
        const ITEMS: u64 = 1_000_000;
        const DRAWS: u32 = 400_000;
        let zipfian = ScrambledZipfian::new(500, ITEMS);
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
        let mut latest = Latest::default();
        let mut rng = Rng::new(4);
        for newest in [999, 1000, 1001] {
            let draws: Vec<u64> = (0..50_000).map(|_| latest.draw(&mut rng, newest)).collect();
            assert!(draws.iter().all(|key| *key <= newest));
            let share = draws.iter().filter(|key| **key == newest).count() as f64 / 50_000.0;
            assert!((share - 1.0 / zeta(newest + 1)).abs() < 0.005, "{share}");
        }
    }
}
