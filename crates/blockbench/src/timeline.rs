//! The course of a job over virtual time, in buckets.
//!
//! Invariant: buckets are contiguous from the start of the job and have equal lengths. There are at
//! most [`MAX_BUCKETS`]: if more are needed, pairs of neighbours are merged and the length doubles.
//! An operation counts in the bucket in which it begins, so that the last bucket of a stream does
//! not consist of the slowest operations only.
//!
//! Cost: a histogram of 8 KiB for each line and bucket with operations, and one histogram increment
//! per operation.

use hdrhistogram::Histogram;
use runtime::Nanos;

/// The maximum number of buckets: as many as a picture can show.
pub(super) const MAX_BUCKETS: usize = 512;

/// Latencies have a resolution of 1 % from 1 ns to 8 ms; beyond, histograms grow.
const USUAL_NANOS: u64 = 1 << 23;

/// The course of a job.
#[derive(Clone, PartialEq, Debug)]
pub struct Timeline {
    /// The length of each bucket.
    pub bucket: Nanos,
    /// For each line, its buckets with operations.
    pub lines: Vec<Vec<TimelinePoint>>,
}

/// The operations of a line in a bucket.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TimelinePoint {
    /// Start of the bucket, from the start of the job.
    pub start: Nanos,
    /// Operations with their start, or intended start, in the bucket.
    pub count: u64,
    /// Mean latency, in microseconds.
    pub mean_us: f64,
    /// Median latency, within 1 %, in microseconds.
    pub p50_us: f64,
    /// 99th percentile, in microseconds.
    pub p99_us: f64,
    /// 99.9th percentile, in microseconds.
    pub p999_us: f64,
    /// Longest latency, in microseconds.
    pub max_us: f64,
}

/// Builds a timeline.
pub(super) struct TimelineRecorder {
    started: Nanos,
    bucket: Nanos,
    buckets: Vec<Bucket>,
    lines: usize,
}

/// The latencies of each line; `None` if it has no operations in the bucket.
type Bucket = Vec<Option<Latencies>>;

struct Latencies {
    histogram: Histogram<u32>,
    sum: u128,
    max: u64,
}

impl TimelineRecorder {
    pub(super) fn new(started: Nanos, bucket: Nanos, lines: usize) -> Self {
        Self { started, bucket: bucket.max(Nanos(1)), buckets: Vec::new(), lines }
    }

    /// Records an operation of a line that began, or was intended to begin, at `at`.
    pub(super) fn record(&mut self, line: usize, at: Nanos, latency: Nanos) {
        while self.index_of(at) >= MAX_BUCKETS {
            self.double();
        }
        let (index, lines) = (self.index_of(at), self.lines);
        while self.buckets.len() <= index {
            self.buckets.push((0..lines).map(|_| None).collect());
        }
        self.buckets[index][line].get_or_insert_with(Latencies::new).record(latency.0);
    }

    fn index_of(&self, at: Nanos) -> usize {
        (at.saturating_since(self.started).0 / self.bucket.0) as usize
    }

    fn double(&mut self) {
        self.bucket = self.bucket * 2;
        let mut buckets = std::mem::take(&mut self.buckets).into_iter();
        while let Some(mut first) = buckets.next() {
            for (line, late) in first.iter_mut().zip(buckets.next().into_iter().flatten()) {
                join(line, late);
            }
            self.buckets.push(first);
        }
    }

    pub(super) fn finish(&self) -> Timeline {
        let starts = (0..).map(|index| self.started + self.bucket * index);
        let mut lines = vec![Vec::new(); self.lines];
        for (bucket, start) in self.buckets.iter().zip(starts) {
            let start = start.saturating_since(self.started);
            for (points, latencies) in lines.iter_mut().zip(bucket) {
                points.extend(latencies.as_ref().map(|latencies| latencies.point(start)));
            }
        }
        Timeline { bucket: self.bucket, lines }
    }
}

fn join(early: &mut Option<Latencies>, late: Option<Latencies>) {
    match (early.as_mut(), late) {
        (Some(early), Some(late)) => early.add(&late),
        (None, late) => *early = late,
        (Some(_), None) => {}
    }
}

impl Latencies {
    fn new() -> Self {
        let mut histogram =
            Histogram::new_with_bounds(1, USUAL_NANOS, 2).expect("the bounds are constants");
        histogram.auto(true);
        Self { histogram, sum: 0, max: 0 }
    }

    fn record(&mut self, nanos: u64) {
        self.histogram.record(nanos).expect("it grows");
        self.sum += u128::from(nanos);
        self.max = self.max.max(nanos);
    }

    fn add(&mut self, other: &Self) {
        self.histogram.add(&other.histogram).expect("it grows");
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    fn point(&self, start: Nanos) -> TimelinePoint {
        let count = self.histogram.len();
        let at = |quantile| self.histogram.value_at_quantile(quantile).min(self.max) as f64 / 1e3;
        TimelinePoint {
            start,
            count,
            mean_us: self.sum as f64 / count as f64 / 1e3,
            p50_us: at(0.5),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: self.max as f64 / 1e3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Nanos = Nanos::from_millis(7);

    /// Returns the timeline of two lines: on the second, an operation begins at each of these
    /// milliseconds, and takes as many microseconds.
    fn timeline(millis: impl IntoIterator<Item = u64>) -> Timeline {
        let mut recorder = TimelineRecorder::new(START, Nanos::from_millis(1), 2);
        for ms in millis {
            recorder.record(1, START + Nanos::from_millis(ms), Nanos::from_micros(ms));
        }
        recorder.finish()
    }

    #[test]
    fn operations_count_where_they_begin_and_empty_buckets_have_no_point() {
        let timeline = timeline([511, 3, 3, 3]);
        assert_eq!((timeline.bucket, timeline.lines[0].len()), (Nanos::from_millis(1), 0));
        let starts: Vec<u64> = timeline.lines[1].iter().map(|point| point.start.0).collect();
        assert_eq!(starts, [3_000_000, 511_000_000]);
        let first = timeline.lines[1][0];
        assert_eq!((first.count, first.mean_us, first.max_us), (3, 3.0, 3.0));
        assert!((first.p99_us / 3.0 - 1.0).abs() < 0.01);
    }

    #[test]
    fn buckets_double_when_there_are_too_many() {
        let timeline = timeline(0..2_000);
        assert_eq!(timeline.bucket, Nanos::from_millis(4));
        let points = &timeline.lines[1];
        assert_eq!(points.len(), 500);
        assert!(points.iter().all(|point| point.count == 4));
        let last = points[499];
        assert_eq!((last.start, last.max_us), (Nanos::from_millis(1_996), 1_999.0));
        assert!((last.mean_us - 1_997.5).abs() < 1e-6);
    }

    #[test]
    fn a_long_silence_doubles_as_often_as_it_takes() {
        let timeline = timeline([0, 1, 1_000_000]);
        let counts: Vec<u64> = timeline.lines[1].iter().map(|point| point.count).collect();
        assert_eq!(counts, [2, 1]);
        assert!(timeline.lines[1][1].max_us > 8_388.0, "longer than histograms begin with");
    }

    #[test]
    fn a_job_without_operations_has_no_points() {
        assert_eq!(timeline([]).lines, [vec![], vec![]]);
    }
}
