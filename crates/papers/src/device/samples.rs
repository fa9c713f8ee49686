//! Statistics of a series of reads.

use drives::nand::{Blocker, FlashStats};
use report::units::count_text;
use runtime::Nanos;
use serde::{Deserialize, Serialize};

use super::clients::Sample;

/// Latencies of a part of the reads of an experiment, in microseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Latency {
    pub reads: usize,
    pub mean_us: f64,
    pub median_us: f64,
    pub p999_us: f64,
    pub longest_us: f64,
}

impl Latency {
    /// Returns the latencies of the reads that started in `from..to`.
    pub(super) fn between(samples: &[Sample], from: Nanos, to: Nanos) -> Self {
        let within = samples.iter().filter(|sample| sample.at >= from && sample.at < to);
        Self::of(within.map(|sample| sample.took).collect())
    }

    /// Returns the latencies of all reads.
    pub(super) fn all(samples: &[Sample]) -> Self {
        Self::between(samples, Nanos::ZERO, Nanos::MAX)
    }

    fn of(mut took: Vec<Nanos>) -> Self {
        took.sort_unstable();
        let at = |share: f64| {
            let index = (took.len() as f64 * share) as usize;
            took.get(index.min(took.len().saturating_sub(1))).map_or(0.0, |t| t.as_micros_f64())
        };
        let total: f64 = took.iter().map(|took| took.as_micros_f64()).sum();
        Self {
            reads: took.len(),
            mean_us: total / took.len().max(1) as f64,
            median_us: at(0.5),
            p999_us: at(0.999),
            longest_us: at(1.0),
        }
    }
}

/// Returns one statistic of the reads in each of `buckets` periods, as points of seconds since the
/// first read and microseconds. Periods without reads have no point.
pub(super) fn over_time(
    samples: &[Sample],
    buckets: usize,
    statistic: impl Fn(&Latency) -> f64,
) -> Vec<(f64, f64)> {
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return Vec::new() };
    let span = ((last.at - first.at).0 / buckets as u64).max(1);
    let bucket = |sample: &Sample| (((sample.at - first.at).0 / span) as usize).min(buckets - 1);
    let chunks = samples.chunk_by(|a, b| bucket(a) == bucket(b));
    let point = |chunk: &[Sample]| {
        let latency = Latency::of(chunk.iter().map(|sample| sample.took).collect());
        ((chunk[0].at - first.at).as_secs_f64(), statistic(&latency))
    };
    chunks.map(point).collect()
}

/// Flash reads that found their die occupied by one kind of operation.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Meeting {
    reads: u64,
    /// Mean wait, in microseconds.
    waited_us: f64,
}

/// Flash reads by the operation that occupied their die.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Met {
    another_read: Meeting,
    program: Meeting,
    erase: Meeting,
}

impl Met {
    /// Returns the difference between the counters `before` and `now`.
    pub(super) fn between(before: &FlashStats, now: &FlashStats) -> Self {
        let met = |blocker: Blocker| {
            let (before, now) = (before.waits(blocker), now.waits(blocker));
            let (reads, waited) = (now.reads - before.reads, now.waited - before.waited);
            Meeting { reads, waited_us: waited.as_micros_f64() / reads.max(1) as f64 }
        };
        Self {
            another_read: met(Blocker::Read),
            program: met(Blocker::Program),
            erase: met(Blocker::Erase),
        }
    }

    /// Returns the counts as text.
    pub(super) fn text(&self) -> String {
        let met = |meeting: Meeting, what: &str| match meeting.reads {
            0 => format!("none {what}"),
            reads => {
                let waited = meeting.waited_us;
                format!("{} {what} (waited {waited:.0} us on average)", count_text(reads))
            }
        };
        format!(
            "Of the flash reads meanwhile {}, {}, {}",
            met(self.another_read, "met another read"),
            met(self.program, "a program"),
            met(self.erase, "an erase"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Sample> {
        let sample = |i: u64| Sample { at: Nanos::from_millis(i), took: Nanos::from_micros(i) };
        (0..1_000).map(sample).collect()
    }

    #[test]
    fn a_part_of_the_reads_has_its_own_latency() {
        let latency =
            Latency::between(&samples(), Nanos::from_millis(100), Nanos::from_millis(200));
        assert_eq!((latency.reads, latency.median_us, latency.longest_us), (100, 150.0, 199.0));
        assert!((latency.mean_us - 149.5).abs() < 1e-9);
        assert_eq!(Latency::all(&[]).reads, 0);
    }

    #[test]
    fn stretches_of_time_have_a_point_each() {
        let points = over_time(&samples(), 10, |latency| latency.longest_us);
        assert_eq!((points.len(), points[0]), (10, (0.0, 99.0)));
        let later = over_time(&samples()[500..], 10, |latency| latency.longest_us);
        assert_eq!((later.len(), later[0]), (10, (0.0, 549.0)));
    }
}
