//! The places of random operations: fio's `random_distribution`. Plain arithmetic and seeded
//! randomness.
//!
//! `zipf` and `pareto` rank the places of a stream's part by popularity; a permutation scatters the
//! ranks over the part, so that hot places are not neighbours. `normal` is a bell curve around the
//! middle of the part, and `zoned` gives each zone of the part a share of the operations.
//!
//! Cost of a draw: some tens of nanoseconds, independent of the number of places. No memory per
//! place.

use std::f64::consts::TAU;
use std::fmt;

use runtime::Rng;
use serde::de;
use serde::de::{Deserialize, Deserializer};
use workload::scrambled;

/// The distribution of a stream's random operations over its part of the set.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Distribution {
    /// Uniform.
    #[default]
    Random,
    /// The place of rank i with a probability proportional to `1 / i^theta`.
    Zipf(f64),
    /// By a power law: with h = 0.2, a fifth of the places gets four fifths of the operations.
    Pareto(f64),
    /// Around the middle, with this standard deviation in percent of the part.
    Normal(f64),
    /// Successive zones: percent of the operations, percent of the part.
    Zoned(Vec<(f64, f64)>),
}

const WORDS: &str = "random, zipf:THETA (above 0 to 10), pareto:H (between 0 and 1), normal:PERCENT (above 0 to 100), \
                     zoned:OPERATIONS/SIZE:... in percent (zoned:60/10:30/20:10/70)";
/// The allowed difference of a sum of percentages from 100: thirds are rounded.
const ROUNDING: f64 = 0.2;

impl Distribution {
    /// Parses the notation of fio.
    ///
    /// # Errors
    /// Returns the allowed values as text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let refused = || format!("`{text}`: allowed are {WORDS}");
        let (word, rest) = text.split_once(':').unwrap_or((text, ""));
        let number = |is_allowed: fn(f64) -> bool| {
            rest.trim().parse::<f64>().ok().filter(|number| is_allowed(*number)).ok_or_else(refused)
        };
        match word.trim() {
            "random" if rest.is_empty() => Ok(Self::Random),
            "zipf" => number(|theta| theta > 0.0 && theta <= 10.0).map(Self::Zipf),
            "pareto" => number(|h| h > 0.0 && h < 1.0).map(Self::Pareto),
            "normal" => number(|percent| percent > 0.0 && percent <= 100.0).map(Self::Normal),
            "zoned" => zones(rest).ok_or_else(refused).map(Self::Zoned),
            _ => Err(refused()),
        }
    }

    /// Whether the distribution is uniform.
    pub(super) fn is_uniform(&self) -> bool {
        matches!(self, Self::Random)
    }
}

/// Parses zones. Their percentages of operations, and of the part, must add up to 100.
fn zones(text: &str) -> Option<Vec<(f64, f64)>> {
    let percent =
        |text: &str| text.trim().parse::<f64>().ok().filter(|n| (0.0..=100.0).contains(n));
    // Zones without a size divide the rest equally.
    let zone = |part: &str| {
        let (operations, size) = part.split_once('/')?;
        let is_open = size.trim().is_empty();
        Some((percent(operations)?, if is_open { None } else { Some(percent(size)?) }))
    };
    let zones: Vec<(f64, Option<f64>)> = text.split(':').map(zone).collect::<Option<_>>()?;
    let given: f64 = zones.iter().filter_map(|zone| zone.1).sum();
    let open = zones.iter().filter(|zone| zone.1.is_none()).count();
    let rest = (100.0 - given).max(0.0) / open.max(1) as f64;
    let zones: Vec<(f64, f64)> =
        zones.into_iter().map(|(share, size)| (share, size.unwrap_or(rest))).collect();
    let is_whole = |sum: f64| (sum - 100.0).abs() <= ROUNDING;
    let operations = zones.iter().map(|zone| zone.0).sum();
    let sizes = zones.iter().map(|zone| zone.1).sum();
    // A zone of size 0 cannot have operations.
    let has_room = zones.iter().all(|(operations, size)| *size > 0.0 || *operations <= 0.0);
    (is_whole(operations) && is_whole(sizes) && has_room).then_some(zones)
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Random => f.write_str("random"),
            Self::Zipf(theta) => write!(f, "zipf:{theta}"),
            Self::Pareto(h) => write!(f, "pareto:{h}"),
            Self::Normal(percent) => write!(f, "normal:{percent}"),
            Self::Zoned(zones) => {
                f.write_str("zoned")?;
                zones.iter().try_for_each(|(operations, size)| write!(f, ":{operations}/{size}"))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Distribution {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

/// A distribution, prepared for draws.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Places {
    Random,
    Zipf(Zipf),
    /// The exponent, for numbers from 0 to 1.
    Pareto(f64),
    /// The standard deviation, as a share of the part.
    Normal(f64),
    /// For each zone: the sum of the shares of operations up to and including it, its start and its
    /// end, as shares of the part.
    Zoned(Vec<(f64, f64, f64)>),
}

impl Places {
    /// Prepares draws from `count` places, at least one.
    pub(super) fn new(distribution: &Distribution, count: u64) -> Self {
        match distribution {
            Distribution::Random => Self::Random,
            Distribution::Zipf(theta) => Self::Zipf(Zipf::new(count, *theta)),
            Distribution::Pareto(h) => Self::Pareto(h.ln() / (1.0 - h).ln()),
            Distribution::Normal(percent) => Self::Normal(percent / 100.0),
            Distribution::Zoned(zones) => {
                let (mut operations, mut end) = (0.0, 0.0);
                let zone = |(share, size): &(f64, f64)| {
                    let begin = end;
                    operations += share / 100.0;
                    end += size / 100.0;
                    (operations, begin, end)
                };
                Self::Zoned(zones.iter().map(zone).collect())
            }
        }
    }

    /// Draws a place below `count`.
    pub(super) fn draw(&self, count: u64, rng: &mut Rng) -> u64 {
        let at = |share: f64| ((count as f64 * share) as u64).min(count - 1);
        match self {
            Self::Random => rng.below(count),
            Self::Zipf(zipf) => scrambled(zipf.draw(rng).min(count - 1), count),
            Self::Pareto(exponent) => scrambled(at(rng.unit_f64().powf(*exponent)), count),
            Self::Normal(deviation) => at(normal(*deviation, rng)),
            Self::Zoned(zones) => {
                let (sum, ..) = zones[zones.len() - 1];
                let drawn = rng.unit_f64() * sum;
                let zone = zones.iter().find(|(bound, ..)| drawn < *bound);
                let (_, begin, end) = *zone.unwrap_or(&zones[zones.len() - 1]);
                at(begin + rng.unit_f64() * (end - begin))
            }
        }
    }
}

/// Draws a number from 0 to 1 from a normal distribution around 0.5. Numbers outside are drawn
/// again.
fn normal(deviation: f64, rng: &mut Rng) -> f64 {
    loop {
        // Box-Muller transform.
        let radius = (-2.0 * (1.0 - rng.unit_f64()).ln()).sqrt();
        let share = 0.5 + deviation * radius * (TAU * rng.unit_f64()).cos();
        if (0.0..1.0).contains(&share) {
            return share;
        }
    }
}

/// Draws ranks by a power law, exactly, by rejection-inversion (Hörmann and Derflinger 1996):
/// inverts the integral of the law, and draws again if the number falls outside the steps of the
/// sum. Works for any exponent above 0, including 1, and needs no sum in advance.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Zipf {
    theta: f64,
    count: f64,
    /// The integral at the ends of the range of ranks.
    first: f64,
    last: f64,
    /// A number is accepted without a further check if it is at most this far below its rank.
    margin: f64,
}

impl Zipf {
    fn new(count: u64, theta: f64) -> Self {
        let mut zipf = Self { theta, count: count as f64, first: 0.0, last: 0.0, margin: 0.0 };
        zipf.first = zipf.integral(1.5) - 1.0;
        zipf.last = zipf.integral(zipf.count + 0.5);
        zipf.margin = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    /// Draws a rank, from 0.
    fn draw(&self, rng: &mut Rng) -> u64 {
        loop {
            let area = self.last + rng.unit_f64() * (self.first - self.last);
            let x = self.inverse(area);
            let rank = x.round().clamp(1.0, self.count);
            if rank - x <= self.margin || area >= self.integral(rank + 0.5) - self.weight(rank) {
                return rank as u64 - 1;
            }
        }
    }

    fn weight(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// Returns the integral of the weights from 1 to `x`.
    fn integral(&self, x: f64) -> f64 {
        let ln = x.ln();
        let by = (1.0 - self.theta) * ln;
        if by.abs() < 1e-8 { ln * (1.0 + by / 2.0) } else { ln * by.exp_m1() / by }
    }

    fn inverse(&self, area: f64) -> f64 {
        // Below -1 only because of rounding.
        let by = ((1.0 - self.theta) * area).max(-1.0);
        let ln = if by.abs() < 1e-8 { area * (1.0 - by / 2.0) } else { area * by.ln_1p() / by };
        ln.exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u32 = 200_000;

    fn counts(text: &str, places: u64) -> Vec<u32> {
        let distribution = Distribution::parse(text).unwrap();
        assert_eq!(Distribution::parse(&distribution.to_string()).as_ref(), Ok(&distribution));
        let drawn = Places::new(&distribution, places);
        let mut rng = Rng::new(1);
        let mut counts = vec![0; places as usize];
        (0..DRAWS).for_each(|_| counts[drawn.draw(places, &mut rng) as usize] += 1);
        counts
    }

    fn sorted(mut counts: Vec<u32>) -> Vec<u32> {
        counts.sort_unstable_by(|a, b| b.cmp(a));
        counts
    }

    #[test]
    fn ranks_of_zipf_have_the_probabilities_of_the_law() {
        for theta in [0.2, 0.99, 1.0, 1.2, 2.5] {
            let zipf = Zipf::new(50, theta);
            let mut rng = Rng::new(7);
            let mut counts = [0_u32; 50];
            (0..DRAWS).for_each(|_| counts[zipf.draw(&mut rng) as usize] += 1);
            let weights: Vec<f64> = (1..=50).map(|i| f64::from(i).powf(-theta)).collect();
            let sum: f64 = weights.iter().sum();
            for (i, (count, weight)) in counts.iter().zip(&weights).enumerate() {
                let mean = f64::from(DRAWS) * weight / sum;
                let off = (f64::from(*count) - mean).abs();
                assert!(
                    off < 5.0 * mean.sqrt() + 1.0,
                    "theta {theta}, rank {i}: {count}, not {mean}"
                );
            }
        }
    }

    #[test]
    fn hot_places_are_scattered_and_each_rank_has_its_own() {
        let by_place = counts("zipf:1.2", 1_000);
        let mut hottest: Vec<usize> = (0..1_000).collect();
        hottest.sort_unstable_by_key(|place| std::cmp::Reverse(by_place[*place]));
        let gaps = hottest[..20].windows(2).filter(|pair| pair[0].abs_diff(pair[1]) > 1);
        assert!(gaps.count() >= 18, "{:?}", &hottest[..20]);
        let ranks = sorted(by_place);
        assert!((f64::from(ranks[0]) / f64::from(ranks[1]) / 2.0_f64.powf(1.2) - 1.0).abs() < 0.05);
    }

    #[test]
    fn a_fifth_of_the_places_gets_four_fifths_by_pareto() {
        let ranks = sorted(counts("pareto:0.2", 1_000));
        let top: u32 = ranks[..200].iter().sum();
        assert!((f64::from(top) / f64::from(DRAWS) - 0.8).abs() < 0.01, "{top}");
    }

    #[test]
    fn normal_is_a_hill_in_the_middle() {
        let counts = counts("normal:10", 1_000);
        let share = |from: usize, to: usize| {
            f64::from(counts[from..to].iter().sum::<u32>()) / f64::from(DRAWS)
        };
        assert!((share(400, 600) - 0.6827).abs() < 0.01, "{}", share(400, 600));
        assert!((share(0, 500) - 0.5).abs() < 0.01);
        assert!(share(0, 100) < 0.001);
        let wide = counts_of_ends("normal:100");
        assert!(wide.0.abs_diff(wide.1) < 1_000, "both ends alike: {wide:?}");
    }

    fn counts_of_ends(text: &str) -> (u32, u32) {
        let counts = counts(text, 10);
        (counts[0], counts[9])
    }

    #[test]
    fn zones_get_their_shares() {
        let counts = counts("zoned:60/10:30/20:10/70", 1_000);
        for (zone, share) in [(0..100, 0.6), (100..300, 0.3), (300..1000, 0.1)] {
            let got = f64::from(counts[zone.clone()].iter().sum::<u32>()) / f64::from(DRAWS);
            assert!((got - share).abs() < 0.01, "{zone:?}: {got}");
        }
    }

    #[test]
    fn one_place_is_enough_for_each() {
        for text in ["random", "zipf:0.9", "pareto:0.5", "normal:50", "zoned:50/50:50/50"] {
            assert_eq!(counts(text, 1), [DRAWS], "{text}");
        }
    }

    #[test]
    fn other_words_are_refused_with_those_that_are_allowed() {
        for text in [
            "",
            "zipf",
            "zipf:",
            "zipf:0",
            "zipf:-1",
            "zipf:11",
            "zipf:nan",
            "pareto:1",
            "pareto:0",
            "normal:0",
            "normal:101",
            "random:1",
            "zoned:",
            "zoned:60/10",
            "zoned:60/40:40/50",
            "zoned:50/0:50/100",
            "gauss:1",
        ] {
            let error = Distribution::parse(text).unwrap_err();
            assert!(error.contains("allowed are random, zipf:THETA"), "{text}: {error}");
        }
    }
}
