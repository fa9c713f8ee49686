//! What a member was seen to write. Arithmetic only.

use std::collections::VecDeque;

use runtime::Nanos;

/// Bytes a second, by what was measured lately.
#[derive(Clone, Debug)]
pub(crate) struct Bandwidth {
    assumed: u64,
    seen: VecDeque<u64>,
}

/// Measurements that count.
const KEPT: usize = 8;
/// Less than that says more of latency than of bandwidth.
const LEAST_BYTES: u64 = 4 << 20;

impl Bandwidth {
    /// Nothing was measured yet.
    pub(crate) fn new(assumed: u64) -> Self {
        Self { assumed, seen: VecDeque::new() }
    }

    /// So many bytes took so long, with always some under way.
    pub(crate) fn observe(&mut self, bytes: u64, span: Nanos) {
        if bytes < LEAST_BYTES || span == Nanos::ZERO {
            return;
        }
        if self.seen.len() == KEPT {
            self.seen.pop_front();
        }
        let per_second = u128::from(bytes) * 1_000_000_000 / u128::from(span.0);
        self.seen.push_back(u64::try_from(per_second).unwrap_or(u64::MAX).max(1));
    }

    /// What may be counted on: the least of the last measurements. Bandwidth of writes varies in NDWIN, so
    /// Vigil-KV counts on the worst case.
    pub(crate) fn worst(&self) -> u64 {
        self.seen.iter().copied().min().unwrap_or(self.assumed).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_the_last_measurements_counts() {
        let (mib, second) = (1 << 20, Nanos(1_000_000_000));
        let mut bandwidth = Bandwidth::new(77);
        bandwidth.observe(mib, second);
        assert_eq!(bandwidth.worst(), 77, "too little was written");
        bandwidth.observe(10 * mib, second);
        bandwidth.observe(100 * mib, second);
        assert_eq!(bandwidth.worst(), 10 * mib);
        (0..KEPT).for_each(|_| bandwidth.observe(50 * mib, second));
        assert_eq!(bandwidth.worst(), 50 * mib, "old ones are forgotten");
    }
}
