//! Counters and latency statistics of the server.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use hdrhistogram::Histogram;

use crate::fault::Fault;

/// Upper bounds of the histogram buckets for Prometheus, in microseconds.
pub(crate) const BUCKETS_US: [u64; 16] = [
    25, 50, 100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 51_200, 102_400, 409_600,
    1_638_400, 6_553_600,
];
/// History of the dashboard, in seconds.
const WINDOWS: usize = 600;
/// Longest duration that the histograms distinguish, in microseconds.
const LONGEST_US: u64 = 600_000_000;

/// Commands whose latencies are measured together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    Read,
    Write,
    Other,
}

impl Class {
    pub(crate) const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Other];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Other => "other",
        }
    }
}

/// Latencies of a class: since the server began, and of the current second.
struct Latencies {
    second: Mutex<Histogram<u64>>,
    buckets: [AtomicU64; BUCKETS_US.len()],
    count: AtomicU64,
    sum_us: AtomicU64,
}

impl Latencies {
    fn new() -> Self {
        let second = Histogram::new_with_bounds(1, LONGEST_US, 2).expect("good bounds");
        Self {
            second: Mutex::new(second),
            buckets: Default::default(),
            count: AtomicU64::new(0),
            sum_us: AtomicU64::new(0),
        }
    }
}

/// Latencies of a class since the server began, as a Prometheus histogram.
pub(crate) struct Totals {
    /// Cumulative counts: commands that took at most the corresponding bound of [`BUCKETS_US`].
    pub up_to: Vec<u64>,
    pub count: u64,
    pub sum_us: u64,
}

/// Latencies of a class in one second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Second {
    pub count: u64,
    pub p50_us: u64,
    pub p99_us: u64,
    pub p999_us: u64,
    pub max_us: u64,
}

/// One second of the dashboard.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    pub at_ms: u64,
    pub classes: [Second; 3],
    /// Current values; their names are [`GAUGES`].
    pub gauges: [u64; GAUGES.len()],
}

/// Names of [`Window::gauges`].
pub(crate) const GAUGES: [&str; 20] = [
    "clients",
    "keys",
    "client_bytes",
    "index_bytes",
    "cache_bytes",
    "memtable_bytes",
    "compaction_bytes",
    "flushes",
    "compactions",
    "collections",
    "stalls",
    "value_cache_hits",
    "value_cache_misses",
    "commits",
    "committed",
    "direct_reads",
    "rebuilt_reads",
    "plm_cache_reads",
    "plm_cache_bytes",
    "plm_cache_waits",
];

/// See the module's documentation.
pub(crate) struct Statistics {
    classes: [Latencies; 3],
    windows: Mutex<VecDeque<Window>>,
    pub faults: AtomicU64,
    /// Errors by kind; there are few kinds.
    kinds: Mutex<BTreeMap<String, u64>>,
    pub refused: AtomicU64,
    /// Clients that were dismissed: they read no replies while their input exceeded its limit.
    pub stuck: AtomicU64,
    pub bytes_in: AtomicU64,
    pub bytes_out: AtomicU64,
    pub expired: AtomicU64,
    pub swept: AtomicU64,
    pub commits: AtomicU64,
    pub committed: AtomicU64,
}

impl Statistics {
    pub(crate) fn new() -> Self {
        Self {
            classes: [Latencies::new(), Latencies::new(), Latencies::new()],
            windows: Mutex::default(),
            faults: AtomicU64::new(0),
            kinds: Mutex::default(),
            refused: AtomicU64::new(0),
            stuck: AtomicU64::new(0),
            bytes_in: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
            expired: AtomicU64::new(0),
            swept: AtomicU64::new(0),
            commits: AtomicU64::new(0),
            committed: AtomicU64::new(0),
        }
    }

    pub(crate) fn count_fault(&self, fault: &Fault) {
        self.faults.fetch_add(1, Ordering::Relaxed);
        let mut kinds = self.kinds.lock().expect("nothing panics with it locked");
        match kinds.get_mut(fault.kind()) {
            Some(count) => *count += 1,
            None => _ = kinds.insert(fault.kind().to_owned(), 1),
        }
    }

    /// Returns the number of error replies, by kind.
    pub(crate) fn faults_by_kind(&self) -> BTreeMap<String, u64> {
        self.kinds.lock().expect("nothing panics with it locked").clone()
    }

    pub(crate) fn count_commit(&self, waiting: usize) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.committed.fetch_add(waiting as u64, Ordering::Relaxed);
    }

    /// Records a command that took `micros` microseconds from its start until its reply could be
    /// sent.
    pub(crate) fn took(&self, class: Class, micros: u64) {
        let latencies = &self.classes[class as usize];
        let bucket = BUCKETS_US.iter().position(|end| micros <= *end);
        if let Some(bucket) = bucket {
            latencies.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        }
        latencies.count.fetch_add(1, Ordering::Relaxed);
        latencies.sum_us.fetch_add(micros, Ordering::Relaxed);
        let mut second = latencies.second.lock().expect("nothing panics with it locked");
        second.saturating_record(micros.max(1));
    }

    /// Returns the number of commands since the server began.
    pub(crate) fn commands(&self) -> u64 {
        self.classes.iter().map(|class| class.count.load(Ordering::Relaxed)).sum()
    }

    pub(crate) fn totals(&self, class: Class) -> Totals {
        let latencies = &self.classes[class as usize];
        let mut sum = 0;
        let up_to = latencies.buckets.iter().map(|bucket| {
            sum += bucket.load(Ordering::Relaxed);
            sum
        });
        Totals {
            up_to: up_to.collect(),
            count: latencies.count.load(Ordering::Relaxed),
            sum_us: latencies.sum_us.load(Ordering::Relaxed),
        }
    }

    /// Ends the current second and adds it to the history.
    pub(crate) fn end_second(&self, at_ms: u64, gauges: [u64; GAUGES.len()]) {
        let classes = [0, 1, 2].map(|class: usize| {
            let mut second =
                self.classes[class].second.lock().expect("nothing panics with it locked");
            let ended = Second {
                count: second.len(),
                p50_us: second.value_at_quantile(0.5),
                p99_us: second.value_at_quantile(0.99),
                p999_us: second.value_at_quantile(0.999),
                max_us: second.max(),
            };
            second.reset();
            ended
        });
        let mut windows = self.windows.lock().expect("nothing panics with it locked");
        if windows.len() == WINDOWS {
            windows.pop_front();
        }
        windows.push_back(Window { at_ms, classes, gauges });
    }

    /// Returns the recent seconds, oldest first.
    pub(crate) fn windows(&self) -> Vec<Window> {
        self.windows.lock().expect("nothing panics with it locked").iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_totals() {
        let statistics = Statistics::new();
        for micros in [10, 90, 90, 5_000_000_000] {
            statistics.took(Class::Read, micros);
        }
        let totals = statistics.totals(Class::Read);
        assert_eq!(
            (totals.count, totals.up_to[0], totals.up_to[2], totals.up_to[15]),
            (4, 1, 3, 3)
        );
        statistics.end_second(1, [0; GAUGES.len()]);
        statistics.end_second(2, [0; GAUGES.len()]);
        let windows = statistics.windows();
        assert_eq!((windows[0].classes[0].count, windows[1].classes[0].count), (4, 0));
        assert_eq!(windows[0].classes[0].p50_us, 90);
        assert_eq!(statistics.commands(), 4);
    }
}
