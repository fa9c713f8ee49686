//! The token bucket and its waiting requests: the rules of `RocksDB`'s generic rate limiter
//! (`util/rate_limiter.cc` of 6.23). Pure: the caller has the clock and the random numbers.
//!
//! Every period a fixed number of bytes is added, unless a whole period's bytes are left: at most
//! two periods' bytes pass at once, and a long idle time does not accumulate bytes. A request for
//! more bytes than available waits. Available bytes are assigned to the first request of a queue in
//! parts, so that a request larger than a refill can complete.

use std::collections::VecDeque;

use runtime::Nanos;

use super::class::Lane;

/// A waiting request.
#[derive(Debug)]
struct Request {
    number: u64,
    /// Bytes that the request still lacks.
    left: u64,
}

/// The bytes that may pass.
#[derive(Debug)]
pub(crate) struct Tokens {
    period: Nanos,
    /// Bytes that a refill adds: the burst.
    refill_bytes: u64,
    available: u64,
    /// Bytes that passed without waiting although they were not available.
    owed: u64,
    refills_at: Nanos,
    queues: [VecDeque<Request>; Lane::ALL.len()],
}

/// Returns the bytes of a rate in a period; at least 1.
fn bytes_in(period: Nanos, bytes_per_second: u64) -> u64 {
    let bytes = u128::from(bytes_per_second) * u128::from(period.0) / 1_000_000_000;
    bytes.max(1) as u64
}

impl Tokens {
    pub(crate) fn new(period: Nanos, bytes_per_second: u64) -> Self {
        let refill_bytes = bytes_in(period, bytes_per_second);
        let queues = Default::default();
        Self { period, refill_bytes, available: 0, owed: 0, refills_at: Nanos::ZERO, queues }
    }

    /// Sets the rate from the next refill on.
    pub(crate) fn set_rate(&mut self, bytes_per_second: u64) {
        self.refill_bytes = bytes_in(self.period, bytes_per_second);
    }

    pub(crate) fn is_waited_for(&self) -> bool {
        self.queues.iter().any(|queue| !queue.is_empty())
    }

    /// Returns the time of the next refill, if a request waits.
    pub(crate) fn refills_at(&self) -> Nanos {
        self.refills_at
    }

    /// Takes `bytes`, if they are available and no request waits.
    pub(crate) fn take(&mut self, bytes: u64) -> bool {
        let takes = bytes <= self.available && !self.is_waited_for();
        if takes {
            self.available -= bytes;
        }
        takes
    }

    /// Takes `bytes` for I/O that passes at once; later refills pay for bytes that are not
    /// available.
    pub(crate) fn owe(&mut self, bytes: u64) {
        let taken = bytes.min(self.available);
        self.available -= taken;
        self.owed += bytes - taken;
    }

    /// Queues request `number`, which needs `bytes`.
    pub(crate) fn enqueue(&mut self, lane: Lane, number: u64, bytes: u64) {
        self.queues[lane as usize].push_back(Request { number, left: bytes });
    }

    /// Adds the bytes of a period at `now`. Requires: `now` is not before [`Self::refills_at`].
    /// Returns the requests that may proceed, in order. `rest_first` gives the least urgent queue
    /// priority.
    pub(crate) fn refill(&mut self, now: Nanos, rest_first: bool) -> Vec<(Lane, u64)> {
        self.refills_at = now + self.period;
        if self.available < self.refill_bytes {
            self.available += self.refill_bytes;
        }
        let paid = self.owed.min(self.available);
        (self.owed, self.available) = (self.owed - paid, self.available - paid);
        let first = rest_first.then_some(Lane::Rest);
        let others = Lane::ALL.into_iter().filter(|lane| Some(*lane) != first);
        let mut granted = Vec::new();
        for lane in first.into_iter().chain(others) {
            while let Some(request) = self.queues[lane as usize].front_mut() {
                let bytes = request.left.min(self.available);
                (request.left, self.available) = (request.left - bytes, self.available - bytes);
                if request.left > 0 {
                    return granted;
                }
                granted.push((lane, request.number));
                self.queues[lane as usize].pop_front();
            }
        }
        granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Nanos = Nanos::from_millis(100);

    fn at(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    /// 100 bytes every 100 ms.
    fn tokens() -> Tokens {
        Tokens::new(PERIOD, 1_000)
    }

    fn numbers(granted: Vec<(Lane, u64)>) -> Vec<u64> {
        granted.into_iter().map(|(_, number)| number).collect()
    }

    #[test]
    fn nothing_is_saved_up_but_what_is_left_of_a_refill() {
        let mut tokens = tokens();
        assert!(!tokens.take(1), "nothing is there before the first refill");
        assert_eq!(numbers(tokens.refill(at(0), false)), []);
        assert!(tokens.take(30));
        tokens.refill(at(100), false);
        assert!(tokens.take(170) && !tokens.take(1), "70 are left over");
        tokens.refill(at(200), false);
        tokens.refill(at(1_000_000), false);
        assert!(tokens.take(100) && !tokens.take(1), "a whole refill was left");
        assert_eq!(tokens.refills_at(), at(1_000_100));
    }

    #[test]
    fn the_first_in_the_queue_is_paid_in_parts_and_nobody_passes_it() {
        let mut tokens = tokens();
        tokens.enqueue(Lane::Rest, 1, 250);
        tokens.enqueue(Lane::Rest, 2, 10);
        let granted: Vec<_> = (0..4).map(|n| numbers(tokens.refill(at(100 * n), false))).collect();
        assert_eq!(granted, [vec![], vec![], vec![1, 2], vec![]]);
        assert!(tokens.take(140), "40 were left of the third refill");
    }

    #[test]
    fn flushes_go_first_then_l0_and_with_a_chance_the_rest() {
        let table = [
            (false, 100, vec![2]),
            (true, 100, vec![1]),
            (false, 50, vec![2, 3]),
            (true, 50, vec![1, 2]),
            (false, 30, vec![2, 3, 1]),
        ];
        for (rest_first, bytes, expected) in table {
            let mut tokens = tokens();
            for (lane, number) in [(Lane::Rest, 1), (Lane::Flush, 2), (Lane::L0, 3)] {
                tokens.enqueue(lane, number, bytes);
            }
            let granted = numbers(tokens.refill(at(0), rest_first));
            assert_eq!(granted, expected, "{rest_first}, {bytes}");
        }
    }

    #[test]
    fn who_waits_is_not_overtaken_and_what_passed_is_paid_later() {
        let mut tokens = tokens();
        tokens.refill(at(0), false);
        tokens.owe(130);
        tokens.enqueue(Lane::Flush, 1, 80);
        assert!(!tokens.take(1));
        assert_eq!(numbers(tokens.refill(at(100), false)), [], "30 are owed, 70 go to it");
        assert_eq!(numbers(tokens.refill(at(200), false)), [1]);
        assert!(tokens.take(90));
    }

    #[test]
    fn a_rate_holds_over_a_long_time_however_it_is_asked_for() {
        for size in [1, 7, 99, 100, 101, 1_000] {
            let mut tokens = tokens();
            let mut passed = 0;
            for period in 0..1_000 {
                while !tokens.is_waited_for() {
                    if tokens.take(size) {
                        passed += size;
                    } else {
                        tokens.enqueue(Lane::Rest, period, size);
                    }
                }
                passed += size * tokens.refill(at(100 * period), false).len() as u64;
                assert!(passed <= 100 * (period + 1), "{size}: {passed} by period {period}");
            }
            assert!(passed + size + 100 >= 100 * 1_000, "{size}: {passed}");
        }
    }

    #[test]
    fn a_new_rate_counts_from_the_next_refill_on() {
        let mut tokens = tokens();
        tokens.refill(at(0), false);
        tokens.set_rate(5_000);
        assert!(tokens.take(100) && !tokens.take(1));
        tokens.refill(at(100), false);
        assert!(tokens.take(500));
        tokens.set_rate(1);
        tokens.refill(at(200), false);
        assert!(tokens.take(1), "a rate is never nothing");
    }
}
