//! SILK's bandwidth for internal work: the bandwidth of the drive that clients leave, computed at
//! the end of every interval. Pure: the caller supplies the time.

use std::collections::VecDeque;

use runtime::Nanos;

use super::options::SilkOptions;

/// Measures the bandwidth of clients and computes the budget of internal work.
#[derive(Debug)]
pub(crate) struct Bandwidth {
    options: SilkOptions,
    /// Start of the current interval.
    began: Nanos,
    /// Bytes of clients in the current interval.
    bytes: u64,
    /// Bytes of clients in the previous intervals, the newest last.
    before: VecDeque<u64>,
    budget: u64,
    paused_since: Option<Nanos>,
    pub changes: u64,
    pub pauses: u64,
    pub paused: Nanos,
}

impl Bandwidth {
    pub(crate) fn new(options: &SilkOptions) -> Self {
        Self {
            budget: target(options, 0.0),
            before: vec![0; options.window_intervals as usize].into(),
            options: options.clone(),
            began: Nanos::ZERO,
            bytes: 0,
            paused_since: None,
            changes: 0,
            pauses: 0,
            paused: Nanos::ZERO,
        }
    }

    /// Returns the budget of internal work, in bytes per second.
    pub(crate) fn budget(&self) -> u64 {
        self.budget
    }

    /// Whether compactions below L0 are paused.
    pub(crate) fn is_paused(&self) -> bool {
        self.paused_since.is_some()
    }

    /// Counts bytes that a client reads or writes, in the interval that [`Self::advance`] has
    /// reached.
    pub(crate) fn count(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Ends the intervals that are over at `now`. Returns whether the budget has changed.
    pub(crate) fn advance(&mut self, now: Nanos) -> bool {
        let before = self.budget;
        let interval = self.options.interval();
        // Once the window holds only empty intervals, further empty ones change nothing.
        let mut left = self.before.len() + 1;
        while self.began + interval <= now && left > 0 {
            self.began += interval;
            left -= 1;
            self.end_interval();
        }
        if self.began + interval <= now {
            self.began = Nanos(now.0 - now.0 % interval.0);
        }
        before != self.budget
    }

    fn end_interval(&mut self) {
        self.before.push_back(std::mem::take(&mut self.bytes));
        self.before.pop_front();
        let span = self.options.interval().as_secs_f64() * self.before.len() as f64;
        let of_clients = self.before.iter().sum::<u64>() as f64 / span;
        let target = target(&self.options, of_clients);
        let moved = target.abs_diff(self.budget);
        if moved > 0 && moved >= self.options.hysteresis_bytes_per_second {
            self.budget = target;
            self.changes += 1;
        }
        self.pause(of_clients);
    }

    fn pause(&mut self, of_clients: f64) {
        let most = self.options.bandwidth_bytes_per_second as f64 * self.options.pause_share;
        if of_clients > most {
            self.pauses += u64::from(!self.is_paused());
            self.paused_since.get_or_insert(self.began);
        } else if let Some(since) = self.paused_since.take() {
            self.paused += self.began - since;
        }
    }
}

/// Returns the budget: T minus clients minus epsilon, but not less than the floor.
fn target(options: &SilkOptions, of_clients: f64) -> u64 {
    let taken = of_clients as u64 + options.epsilon_bytes_per_second;
    let left = options.bandwidth_bytes_per_second.saturating_sub(taken);
    left.max(options.floor_bytes_per_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;

    /// T of 200 MB/s, a floor of 50 MB/s, epsilon of 5 MB/s.
    fn options() -> SilkOptions {
        let published = SilkOptions::new(200 * MB, "published");
        SilkOptions { epsilon_bytes_per_second: 5 * MB, ..published }
    }

    /// Returns the budget in MB/s, and whether compactions are paused, after each interval with
    /// these MB/s of clients.
    fn budgets(options: &SilkOptions, clients: &[u64]) -> Vec<(u64, bool)> {
        let mut bandwidth = Bandwidth::new(options);
        let after = |(n, mb): (u64, &u64)| {
            bandwidth.advance(Nanos::from_millis(10 * n));
            bandwidth.count(mb * MB / 100);
            bandwidth.advance(Nanos::from_millis(10 * n + 10));
            (bandwidth.budget() / MB, bandwidth.is_paused())
        };
        (0..).zip(clients).map(after).collect()
    }

    #[test]
    fn internal_work_gets_what_clients_leave() {
        let table = [
            (0, (195, false)),
            // A change of less than 10 MB/s.
            (9, (195, false)),
            (10, (185, false)),
            // 176: a change of 9 MB/s.
            (19, (185, false)),
            (100, (95, false)),
            // 45 would be less than the floor.
            (150, (50, false)),
            (151, (50, true)),
            (500, (50, true)),
            (150, (50, false)),
            // 59: a change of 9 MB/s.
            (136, (50, false)),
            (0, (195, false)),
        ];
        let clients: Vec<u64> = table.iter().map(|(mb, _)| *mb).collect();
        let expected: Vec<(u64, bool)> = table.iter().map(|(_, after)| *after).collect();
        assert_eq!(budgets(&options(), &clients), expected);
    }

    #[test]
    fn a_longer_window_evens_out_what_clients_take() {
        let options = SilkOptions { window_intervals: 4, ..options() };
        let bursts = budgets(&options, &[160, 0, 0, 0, 160, 160, 160, 160]);
        let budgets: Vec<u64> = bursts.iter().map(|(budget, _)| *budget).collect();
        assert_eq!(budgets, [155, 155, 155, 155, 155, 115, 75, 50]);
        assert!(bursts[7].1 && !bursts[6].1);
    }

    #[test]
    fn a_long_silence_is_as_good_as_a_short_one() {
        let mut bandwidth = Bandwidth::new(&options());
        bandwidth.count(2 * MB);
        assert!(bandwidth.advance(Nanos::from_millis(10)));
        assert!(bandwidth.is_paused() && bandwidth.budget() == 50 * MB);
        assert!(bandwidth.advance(Nanos::from_millis(3_600_007)));
        assert_eq!((bandwidth.budget(), bandwidth.is_paused()), (195 * MB, false));
        assert_eq!((bandwidth.pauses, bandwidth.paused), (1, Nanos::from_millis(10)));
        bandwidth.count(2 * MB);
        assert!(!bandwidth.advance(Nanos::from_millis(3_600_009)), "the interval is not over");
        assert!(bandwidth.advance(Nanos::from_millis(3_600_010)));
        assert_eq!(bandwidth.changes, 3);
    }
}
