//! Choice of keys and scan lengths: the distributions of YCSB's core workload, and of `db_bench`'s
//! mixgraph.
//!
//! Each generator follows YCSB's definition, driven by the session's random stream; the generators
//! document their deviations. Generators never allocate; the most expensive draw needs two hashes
//! and a power, some tens of nanoseconds.

mod inserts;
mod keyranges;
mod lengths;
mod pareto;
mod range;
mod zipfian;

pub(crate) use inserts::InsertCounter;
pub use keyranges::{KeyRanges, PowerLaw, TwoTermExponential};
pub(crate) use lengths::LengthChooser;
pub use pareto::Pareto;
pub(crate) use zipfian::{THETA, Zipfian, is_ycsbs};

use runtime::Rng;

use crate::{CoreWorkload, RequestDistribution};
use keyranges::KeyRangeChooser;
use range::{Exponential, Hotspot, Sequential, Uniform};
use zipfian::{Latest, ScrambledZipfian};

/// Rejected draws after which a key is drawn uniformly. YCSB redraws without limit, and can loop
/// forever if a run has many more inserts than records.
const MAX_REDRAWS: u32 = 64;

/// Draws key numbers for operations on existing records.
pub(crate) struct KeyChooser {
    distribution: Distribution,
    first: u64,
}

enum Distribution {
    Uniform(Uniform),
    Sequential(Sequential),
    Hotspot(Hotspot),
    Exponential(Exponential),
    Scrambled(ScrambledZipfian),
    Latest(Latest),
    KeyRanges(KeyRangeChooser),
}

impl KeyChooser {
    pub(crate) fn new(workload: &CoreWorkload) -> Self {
        let (first, count) = (workload.insert_start, workload.insert_count);
        let distribution = match workload.request_distribution {
            RequestDistribution::Uniform => Distribution::Uniform(Uniform::new(first, count)),
            RequestDistribution::Sequential => {
                Distribution::Sequential(Sequential::new(first, count))
            }
            RequestDistribution::Hotspot { data_fraction, operation_fraction } => {
                Distribution::Hotspot(Hotspot::new(first, count, data_fraction, operation_fraction))
            }
            RequestDistribution::Exponential { percentile, fraction } => {
                let within = workload.record_count as f64 * fraction;
                Distribution::Exponential(Exponential::new(percentile, within))
            }
            RequestDistribution::Zipfian => scrambled(workload, THETA),
            RequestDistribution::ZipfianOf { theta } => scrambled(workload, theta),
            RequestDistribution::Latest => Distribution::Latest(Latest::new(THETA)),
            RequestDistribution::LatestOf { theta } => Distribution::Latest(Latest::new(theta)),
            RequestDistribution::KeyRanges(ranges) => {
                Distribution::KeyRanges(KeyRangeChooser::new(first, count, &ranges))
            }
        };
        Self { distribution, first }
    }

    /// Returns the next key number: never greater than `newest`, the newest acknowledged insert.
    pub(crate) fn draw(&mut self, rng: &mut Rng, newest: u64) -> u64 {
        for _ in 0..MAX_REDRAWS {
            let key = match &mut self.distribution {
                Distribution::Uniform(uniform) => uniform.draw(rng),
                Distribution::Sequential(sequential) => sequential.draw(),
                Distribution::Hotspot(hotspot) => hotspot.draw(rng),
                Distribution::Scrambled(zipfian) => zipfian.draw(rng),
                Distribution::Latest(latest) => latest.draw(rng, newest),
                Distribution::KeyRanges(ranges) => ranges.draw(rng),
                // Keys older than the oldest one wrap around to numbers beyond the newest.
                Distribution::Exponential(back) => newest.wrapping_sub(back.draw(rng)),
            };
            if key <= newest {
                return key;
            }
        }
        let first = self.first.min(newest);
        first + rng.below(newest - first + 1)
    }
}

/// Returns YCSB's scrambled distribution, with room for twice the expected inserts, so that the
/// popular keys stay the same while the store grows.
fn scrambled(workload: &CoreWorkload, theta: f64) -> Distribution {
    let expected = workload.operation_count as f64 * workload.mix.insert_share() * 2.0;
    let items = workload.insert_count + expected as u64;
    Distribution::Scrambled(ScrambledZipfian::new(workload.insert_start, items, theta))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Properties, builtin};

    fn chooser(settings: &[(&str, &str)]) -> KeyChooser {
        let mut properties: Properties = builtin("a").unwrap();
        for (name, value) in settings {
            properties.set(name, value);
        }
        KeyChooser::new(&CoreWorkload::from_properties(&properties).unwrap())
    }

    #[test]
    fn no_distribution_picks_beyond_the_newest_acknowledged_insert() {
        let inserts = [("insertproportion", "1"), ("operationcount", "100000")];
        let names = ["uniform", "zipfian", "latest", "sequential", "hotspot", "exponential"];
        for name in names.into_iter().chain(["keyranges"]) {
            let mut chooser = chooser(&[inserts[0], inserts[1], ("requestdistribution", name)]);
            let mut rng = Rng::new(7);
            for newest in [0, 1, 5, 998, 999, 1000, 1001, 5000] {
                for _ in 0..2000 {
                    let key = chooser.draw(&mut rng, newest);
                    assert!(key <= newest, "{name}: {key} beyond {newest}");
                }
            }
        }
    }

    #[test]
    fn zipfian_reaches_keys_inserted_later() {
        let settings = [("insertproportion", "1"), ("operationcount", "1000")];
        let mut chooser = chooser(&settings);
        let mut rng = Rng::new(1);
        assert!((0..10_000).any(|_| chooser.draw(&mut rng, 1999) > 999));
    }

    #[test]
    fn exponential_prefers_the_recent() {
        let mut chooser = chooser(&[("requestdistribution", "exponential")]);
        let mut rng = Rng::new(5);
        let draws: Vec<u64> = (0..100_000).map(|_| chooser.draw(&mut rng, 999)).collect();
        // 95 % are within the newest 857 of an unbounded past; with a cutoff at 1000 keys it is
        // 0.95 / 0.9697 of them.
        let recent = draws.iter().filter(|key| **key >= 143).count() as f64 / 1e5;
        assert!((recent - 0.9797).abs() < 0.005, "{recent}");
    }
}
